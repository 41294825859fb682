/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/access/queue_bracket_state.h"

#include <stdlib.h>

#include "icd/driver_info.h"
#include "icd/layer.h"
#include "util/idle.h"

static void queue_bracket_in_child(struct lock *lock);

HANDLE_TABLE_DEFINE(queue_bracket_table, queue_bracket_in_child);
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

static struct queue_bracket *queue_bracket_create(cl_command_queue queue)
{
	struct queue_bracket *q;
	pthread_mutexattr_t recursive;

	if (!queue || !queue_is_in_order(queue))
		return NULL;
	q = calloc(1, sizeof(*q));
	if (!q)
		return NULL;
	q->queue = queue;
	pthread_mutexattr_init(&recursive);
	pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
	pthread_mutex_init(&q->mutex, &recursive);
	pthread_mutexattr_destroy(&recursive);
	return q;
}

static void queue_bracket_destroy(struct queue_bracket *q)
{
	pthread_mutex_destroy(&q->mutex);
	free(q);
}

void queue_bracket_put(struct queue_bracket *q)
{
	if (q && handle_record_put(&q->record))
		queue_bracket_destroy(q);
}

struct queue_bracket *queue_bracket_get(cl_command_queue queue)
{
	return handle_table_get(&queue_bracket_table, queue);
}

/* The record of @queue, added if needed; NULL: no memory, or no queue that is in order. */
static struct queue_bracket *queue_bracket_add(cl_command_queue queue)
{
	struct queue_bracket *made = queue_bracket_create(queue), *q;

	if (!made)
		return NULL;
	q = handle_table_publish(&queue_bracket_table, queue, made);
	if (q != made)
		queue_bracket_destroy(made);
	return q;
}

struct bracket *queue_bracket_of(const struct queue_bracket *q)
{
	return q->open;
}

/*
 * With the queue's mutex.  The count is lowered last: a thread that finds no open bracket goes
 * straight to the driver, and the marker has to be in the queue by then.
 */
void queue_bracket_end(struct queue_bracket *q, cl_event *marker)
{
	struct bracket *b = q->open;

	q->open = NULL;
	if (bracket_is_empty(b))
		bracket_cancel(b);
	else
		bracket_end(b, marker);
	atomic_fetch_sub(&queue_bracket_count, 1);
}

void queue_bracket_close_locked(struct queue_bracket *q)
{
	if (q->open)
		queue_bracket_end(q, NULL);
}

void queue_bracket_leave(struct queue_bracket *q)
{
	q->entered = false;
	if (q->open && (q->close_left || bracket_is_empty(q->open))) /* the command was refused */
		queue_bracket_close_locked(q);
	q->close_left = false;
	pthread_mutex_unlock(&q->mutex);
	queue_bracket_put(q);
}

/*
 * With the mutex: opens a bracket for a kernel, unless the kernel needs a bracket of its own.  The driver is asked
 * again, because an older queue at the same address may have left the record.
 */
static void queue_bracket_open(struct queue_bracket *q, struct memobj *const *objs, size_t count)
{
	struct bracket *b;

	if (!queue_is_in_order(q->queue) || bracket_create(q->queue, objs, count, ACCESS_BOTH, &b))
		return;
	/* Counted before idle_watch(): the idle thread stops when the count is 0. */
	atomic_fetch_add(&queue_bracket_count, 1);
	if (atomic_load(&forbidden) || !idle_watch(&queue_bracket_watcher) ||
	    bracket_begin(b, 0, NULL)) {
		atomic_fetch_sub(&queue_bracket_count, 1);
		bracket_cancel(b);
		return;
	}
	q->open = b;
}

static bool queue_bracket_is_usable(const struct queue_bracket *q, struct memobj *const *objs,
				    size_t count)
{
	return bracket_admits(q->open, objs, count) && !bracket_is_started(q->open) &&
	       bracket_reserve(q->open);
}

/* With the queue's mutex.  A driver may call the application in any of its functions. */
static bool queue_bracket_prepare(struct queue_bracket *q, struct memobj *const *objs, size_t count,
				  bool may_open)
{
	if (q->entered)
		return false;
	q->entered = true;
	if (q->open && !queue_bracket_is_usable(q, objs, count))
		queue_bracket_close_locked(q);
	if (!q->open && may_open)
		queue_bracket_open(q, objs, count);
	q->fresh = true;
	q->entered = q->open;
	return q->open;
}

struct queue_bracket *queue_bracket_enter(cl_command_queue queue, struct memobj *const *objs,
					  size_t count, bool may_open)
{
	struct queue_bracket *q;

	may_open = may_open && !atomic_load_explicit(&forbidden, memory_order_relaxed);
	if (!may_open && !queue_bracket_any())
		return NULL;
	q = queue_bracket_get(queue);
	if (!q && may_open)
		q = queue_bracket_add(queue);
	if (!q)
		return NULL;
	pthread_mutex_lock(&q->mutex);
	if (queue_bracket_prepare(q, objs, count, may_open))
		return q;
	pthread_mutex_unlock(&q->mutex);
	queue_bracket_put(q);
	return NULL;
}

static void queue_bracket_remove(cl_command_queue queue)
{
	struct queue_bracket *gone;

	lock_acquire(&queue_bracket_table.lock);
	gone = handle_table_remove(&queue_bracket_table, queue);
	lock_release(&queue_bracket_table.lock);
	queue_bracket_put(gone);
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
	queue_bracket_close_slowly(queue);
	if (!next.clGetCommandQueueInfo(queue, CL_QUEUE_REFERENCE_COUNT, sizeof(refs), &refs,
					NULL) &&
	    refs == 1)
		queue_bracket_remove(queue);
}

void queue_bracket_forbid(void)
{
	atomic_store(&forbidden, true);
	/* queue_bracket_open() counts first, then looks: at least one side sees the other side. */
	atomic_thread_fence(memory_order_seq_cst);
	queue_bracket_close_all();
}
