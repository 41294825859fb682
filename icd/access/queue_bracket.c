/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/access/queue_bracket.h"

#include <pthread.h>
#include <stdlib.h>

#include "icd/layer.h"
#include "icd/objects/handle_table.h"
#include "util/idle.h"

struct queue_bracket {
	struct handle_record record;
	cl_command_queue queue;
	pthread_mutex_t mutex; /* all below; taken before other locks */
	struct bracket *open;
	bool fresh; /* a kernel came since the last tick */
	bool entered; /* the mutex's owner is in the driver, with the bracket or a kernel that joins */
	bool close_left; /* the bracket is to be closed when the owner leaves the driver */
};

static void queue_bracket_in_child(struct lock *lock);

/* cl_command_queue -> struct queue_bracket */
static HANDLE_TABLE_DEFINE(queue_bracket_table, queue_bracket_in_child);
static atomic_bool forbidden;
atomic_uint queue_bracket_count;

/*
 * The queues are the parent's, where the idle thread closes their brackets.  A child cannot use the
 * queues, and threads of the parent may hold the queues' locks.
 */
static void queue_bracket_in_child(struct lock *lock)
{
	(void)lock;
	handle_table_forget(&queue_bracket_table);
	atomic_store(&queue_bracket_count, 0);
}

/* The record of @queue, added if needed; NULL: no memory. */
static struct queue_bracket *queue_bracket_add(cl_command_queue queue)
{
	struct queue_bracket *made = malloc(sizeof(*made)), *q;

	if (!made)
		return NULL;
	*made = (struct queue_bracket){ .queue = queue,
					.mutex = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP };
	q = handle_table_publish(&queue_bracket_table, queue, made);
	if (q != made)
		free(made);
	return q;
}

/*
 * With the queue's mutex.  The count is lowered last: a thread that finds no open bracket goes
 * straight to the driver, and the marker has to be in the queue by then.
 */
static cl_int queue_bracket_close_locked(struct queue_bracket *q, cl_event *marker)
{
	struct bracket *b = q->open;
	cl_int err;

	if (!b)
		return CL_SUCCESS;
	q->open = NULL;
	if (bracket_is_acquired(b))
		bracket_mark_begin(b);
	err = bracket_end(b, marker);
	atomic_fetch_sub(&queue_bracket_count, 1);
	return err;
}

/* A driver may call the application in the middle of an enqueue: the bracket is closed later. */
static void queue_bracket_close_or_defer(struct queue_bracket *q)
{
	if (q->entered)
		q->close_left = true;
	else
		queue_bracket_close_locked(q, NULL);
}

void queue_bracket_close_slowpath(cl_command_queue queue)
{
	struct queue_bracket *q = handle_table_get(&queue_bracket_table, queue);

	if (!q)
		return;
	pthread_mutex_lock(&q->mutex);
	queue_bracket_close_or_defer(q);
	pthread_mutex_unlock(&q->mutex);
	handle_record_free(q);
}

/*
 * A driver may block in a flush, and the application's commands must not wait for the flush.  So
 * the mutex is released; a reference keeps the queue alive.
 */
static void queue_bracket_flush(struct queue_bracket *q)
{
	if (next.clRetainCommandQueue(q->queue))
		return;
	pthread_mutex_unlock(&q->mutex);
	next.clFlush(q->queue);
	next.clReleaseCommandQueue(q->queue);
	pthread_mutex_lock(&q->mutex);
}

/*
 * Closes the bracket if no kernel came since the last tick.  Then flushes the queue, because an
 * application that has flushed the queue does not flush again.
 */
static void queue_bracket_close_idle(struct queue_bracket *q)
{
	bool idles = q->open && !q->fresh;

	q->fresh = false;
	if (!idles)
		return;
	queue_bracket_close_locked(q, NULL);
	queue_bracket_flush(q);
}

/* A queue whose mutex is taken is not idle: a thread enqueues just now. */
static bool queue_bracket_tick(void)
{
	struct handle_cursor cursor = { 0 };
	struct queue_bracket *q;

	while ((q = handle_table_next(&queue_bracket_table, &cursor))) {
		if (!pthread_mutex_trylock(&q->mutex)) {
			queue_bracket_close_idle(q);
			pthread_mutex_unlock(&q->mutex);
		}
		handle_record_free(q);
	}
	return queue_bracket_any();
}

static struct idle_task queue_bracket_task = { .tick = queue_bracket_tick, .period_ms = 1 };

cl_int queue_bracket_leave(struct queue_bracket *q, cl_event command, cl_event *marker)
{
	cl_int err = CL_SUCCESS;

	q->entered = false;
	if (command)
		bracket_add(q->open, command);
	if (marker || q->close_left || !(command || bracket_is_acquired(q->open)))
		err = queue_bracket_close_locked(q, marker);
	q->close_left = false;
	pthread_mutex_unlock(&q->mutex);
	handle_record_free(q);
	return err;
}

/* With the mutex: opens a bracket, unless the command needs a bracket of its own. */
static void queue_bracket_open(struct queue_bracket *q, const struct memobj_list *imports,
			       unsigned int edges)
{
	if (!(edges & ACCESS_IN_ORDER) && !queue_is_in_order(q->queue))
		return;
	/* Counted before idle_request(): the idle thread stops when the count is 0. */
	atomic_fetch_add(&queue_bracket_count, 1);
	if (atomic_load(&forbidden) || !idle_request(&queue_bracket_task) ||
	    bracket_open(q->queue, imports, edges | ACCESS_IN_ORDER, 0, NULL, &q->open))
		atomic_fetch_sub(&queue_bracket_count, 1);
}

/* With the mutex.  A driver may call the application in any of its functions: then it has entered. */
static bool queue_bracket_prepare(struct queue_bracket *q, const struct memobj_list *imports,
				  unsigned int edges, bool may_open)
{
	if (q->entered || !(imports->count || (q->open && bracket_is_acquired(q->open))))
		return false;
	q->entered = true;
	if (q->open && !bracket_admits(q->open, imports, edges))
		queue_bracket_close_locked(q, NULL);
	if (!q->open && may_open)
		queue_bracket_open(q, imports, edges);
	q->fresh = true;
	q->entered = q->open;
	return q->open;
}

struct queue_bracket *queue_bracket_enter(cl_command_queue queue, const struct memobj_list *imports,
					  unsigned int edges, bool may_open, struct bracket **open)
{
	struct queue_bracket *q;

	may_open = may_open && !atomic_load_explicit(&forbidden, memory_order_relaxed);
	if (!may_open && !queue_bracket_any())
		return NULL;
	q = handle_table_get(&queue_bracket_table, queue);
	if (!q && may_open)
		q = queue_bracket_add(queue);
	if (!q)
		return NULL;
	pthread_mutex_lock(&q->mutex);
	if (queue_bracket_prepare(q, imports, edges, may_open)) {
		*open = q->open;
		return q;
	}
	pthread_mutex_unlock(&q->mutex);
	handle_record_free(q);
	return NULL;
}

/*
 * The last reference has a single owner, who gives the queue up.  The record stays behind if
 * commands (PoCL) or the idle thread hold the queue, or if two threads release the last two
 * references at once.  Such a record has no open bracket, and serves the next queue at the address,
 * after the driver was asked for the order of the queue.
 */
void queue_bracket_forget(cl_command_queue queue)
{
	cl_uint refs = 0;

	if (!handle_table_has(&queue_bracket_table, queue))
		return;
	queue_bracket_close_slowpath(queue);
	if (!next.clGetCommandQueueInfo(queue, CL_QUEUE_REFERENCE_COUNT, sizeof(refs), &refs,
					NULL) &&
	    refs == 1)
		handle_record_free(handle_table_release(&queue_bracket_table, queue));
}

void queue_bracket_close_all(const struct import_region *region)
{
	struct handle_cursor cursor = { 0 };
	struct queue_bracket *q;

	if (!queue_bracket_any())
		return;
	while ((q = handle_table_next(&queue_bracket_table, &cursor))) {
		pthread_mutex_lock(&q->mutex);
		if (q->open && (!region || bracket_serves(q->open, region, 0)))
			queue_bracket_close_or_defer(q);
		pthread_mutex_unlock(&q->mutex);
		handle_record_free(q);
	}
}

void queue_bracket_forbid(void)
{
	atomic_store(&forbidden, true);
	/* queue_bracket_open() counts first, then looks: at least one side sees the other side. */
	atomic_thread_fence(memory_order_seq_cst);
	queue_bracket_close_all(NULL);
}
