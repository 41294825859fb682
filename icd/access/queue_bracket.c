/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/access/queue_bracket.h"

#include <pthread.h>
#include <stdlib.h>

#include "icd/access/idle.h"
#include "icd/layer.h"
#include "icd/objects/table.h"
#include "util/lock.h"

struct queue_bracket {
	struct queue_bracket *next; /* queues_lock */
	bool listed;		    /* the same */
	atomic_uint refs;	    /* 1 for the table, and users */
	cl_command_queue queue;
	atomic_bool in_order;  /* as far as is known: each row asks anew */
	pthread_mutex_t mutex; /* all below; taken first */
	struct bracket *open;
	bool fresh;	 /* a kernel came since the last tick */
	bool entered;	 /* this thread is in the driver, with the bracket or a kernel that joins */
	bool close_left; /* to be closed when it has left */
};

static void queues_in_child(struct lock *lock) TSA(no_thread_safety_analysis);

LOCK_DEFINE_IN_CHILD(queues_lock, LOCK_LAST, queues_in_child); /* the table and the list */
static struct table queues = TABLE_INIT; /* cl_command_queue -> struct queue_bracket */
static struct queue_bracket *queue_list GUARDED_BY(queues_lock);
static atomic_bool forbidden;
atomic_uint queue_bracket_count;

/*
 * The queues are the parent's, where the thread that idles closes them; a child cannot use them,
 * and their locks may be held by threads that it does not have.
 */
static void queues_in_child(struct lock *lock)
{
	(void)lock;
	queues = (struct table)TABLE_INIT;
	queue_list = NULL;
	atomic_store(&queue_bracket_count, 0);
}

/* False: there is no such queue. */
static bool queue_is_in_order(cl_command_queue queue, bool *in_order)
{
	cl_command_queue_properties properties = 0;

	if (next.clGetCommandQueueInfo(queue, CL_QUEUE_PROPERTIES, sizeof(properties), &properties,
				       NULL))
		return false;
	*in_order = !(properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
	return true;
}

static struct queue_bracket *queue_bracket_create(cl_command_queue queue)
{
	struct queue_bracket *q;
	pthread_mutexattr_t recursive;
	bool in_order;

	if (!queue || !queue_is_in_order(queue, &in_order))
		return NULL;
	q = calloc(1, sizeof(*q));
	if (!q)
		return NULL;
	q->queue = queue;
	q->in_order = in_order;
	q->refs = 1;
	pthread_mutexattr_init(&recursive);
	pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
	pthread_mutex_init(&q->mutex, &recursive);
	pthread_mutexattr_destroy(&recursive);
	return q;
}

static void queue_bracket_put(struct queue_bracket *q)
{
	if (atomic_fetch_sub_explicit(&q->refs, 1, memory_order_acq_rel) != 1)
		return;
	pthread_mutex_destroy(&q->mutex);
	free(q);
}

static struct queue_bracket *queue_bracket_find(cl_command_queue queue) REQUIRES(queues_lock)
{
	struct queue_bracket *q = table_get(&queues, queue);

	if (q)
		atomic_fetch_add_explicit(&q->refs, 1, memory_order_relaxed);
	return q;
}

static struct queue_bracket *queue_bracket_get(cl_command_queue queue)
{
	struct queue_bracket *q;

	if (!table_get(&queues, queue))
		return NULL;
	lock_acquire(&queues_lock);
	q = queue_bracket_find(queue);
	lock_release(&queues_lock);
	return q;
}

/* The record of @queue, which may be another thread's by now; NULL: no memory, or no queue. */
static struct queue_bracket *queue_bracket_add(cl_command_queue queue)
{
	struct queue_bracket *made = queue_bracket_create(queue), *q;

	if (!made)
		return NULL;
	lock_acquire(&queues_lock);
	q = queue_bracket_find(queue);
	if (!q && table_set(&queues, queue, made)) {
		made->next = queue_list;
		made->listed = true;
		queue_list = made;
		q = queue_bracket_find(queue);
	}
	lock_release(&queues_lock);
	if (q != made)
		queue_bracket_put(made);
	return q;
}

struct bracket *queue_bracket_of(const struct queue_bracket *q)
{
	return q->open;
}

/*
 * With the queue's mutex.  The count comes last: a thread that finds no open bracket goes straight
 * to the driver, and the marker has to be in the queue by then.
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

static void queue_bracket_close_locked(struct queue_bracket *q)
{
	if (q->open)
		queue_bracket_end(q, NULL);
}

/* The driver may have called the application in the middle of an enqueue: then a bit later. */
static void queue_bracket_close_or_defer(struct queue_bracket *q)
{
	if (q->entered)
		q->close_left = true;
	else
		queue_bracket_close_locked(q);
}

void queue_bracket_leave(struct queue_bracket *q)
{
	q->entered = false;
	if (q->open && (q->close_left || bracket_is_empty(q->open))) /* its command was refused */
		queue_bracket_close_locked(q);
	q->close_left = false;
	pthread_mutex_unlock(&q->mutex);
	queue_bracket_put(q);
}

/*
 * The driver is asked again: the record may be that of another queue, which was at the address
 * before.
 */
static bool queue_bracket_is_in_order(struct queue_bracket *q)
{
	bool in_order;

	if (!queue_is_in_order(q->queue, &in_order))
		return false;
	atomic_store(&q->in_order, in_order);
	return in_order;
}

static bool queue_bracket_tick(void);

static struct idle_watcher queue_watcher = { .tick = queue_bracket_tick, .period_ms = 1 };

/* Opens a bracket for a kernel, with the queue's mutex; none where a kernel needs one of its own. */
static void queue_bracket_open(struct queue_bracket *q, struct memobj *const *objs, size_t count)
{
	struct bracket *b;

	if (!queue_bracket_is_in_order(q) || bracket_create(q->queue, objs, count, ACCESS_BOTH, &b))
		return;
	/* First it must be sure that the bracket is closed some day: who watches stops at none. */
	atomic_fetch_add(&queue_bracket_count, 1);
	if (atomic_load(&forbidden) || !bracket_needs_end(b) || !idle_watch(&queue_watcher) ||
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
	if (!atomic_load_explicit(&q->in_order, memory_order_relaxed)) {
		queue_bracket_put(q);
		return NULL;
	}
	pthread_mutex_lock(&q->mutex);
	if (queue_bracket_prepare(q, objs, count, may_open))
		return q;
	pthread_mutex_unlock(&q->mutex);
	queue_bracket_put(q);
	return NULL;
}

void queue_bracket_close_slowly(cl_command_queue queue)
{
	struct queue_bracket *q = queue_bracket_get(queue);

	if (!q)
		return;
	pthread_mutex_lock(&q->mutex);
	queue_bracket_close_or_defer(q);
	pthread_mutex_unlock(&q->mutex);
	queue_bracket_put(q);
}

/*
 * The queue behind @q, or the first one for NULL; held, @q no more.  The list may change in between:
 * a queue can be seen twice then, but none is left out.
 */
static struct queue_bracket *queue_bracket_next(struct queue_bracket *q)
{
	struct queue_bracket *found;

	lock_acquire(&queues_lock);
	found = q && q->listed ? q->next : queue_list;
	if (found)
		atomic_fetch_add_explicit(&found->refs, 1, memory_order_relaxed);
	lock_release(&queues_lock);
	if (q)
		queue_bracket_put(q);
	return found;
}

/*
 * The driver may block in a flush, which the application's commands are not to wait for.  The
 * reference keeps the queue alive without the mutex.
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
 * Closes those without a kernel since the last tick.  Who enqueues just now is not idle, and is
 * not waited for.  The driver is told to go on, because an application that has flushed the queue
 * does not do so again.
 */
static bool queue_bracket_tick(void)
{
	bool idles;

	for (struct queue_bracket *q = queue_bracket_next(NULL); q; q = queue_bracket_next(q)) {
		if (pthread_mutex_trylock(&q->mutex))
			continue;
		idles = q->open && !q->fresh;
		q->fresh = false;
		if (idles) {
			queue_bracket_close_locked(q);
			queue_bracket_flush(q);
		}
		pthread_mutex_unlock(&q->mutex);
	}
	return queue_bracket_any();
}

/* Closes those that use @region; all for NULL. */
static void queue_bracket_close_using(const struct import_region *region)
{
	for (struct queue_bracket *q = queue_bracket_next(NULL); q; q = queue_bracket_next(q)) {
		pthread_mutex_lock(&q->mutex);
		if (q->open && (!region || bracket_uses(q->open, region)))
			queue_bracket_close_or_defer(q);
		pthread_mutex_unlock(&q->mutex);
	}
}

void queue_bracket_close_all(void)
{
	if (queue_bracket_any())
		queue_bracket_close_using(NULL);
}

void queue_bracket_close_region(const struct import_region *region)
{
	if (queue_bracket_any())
		queue_bracket_close_using(region);
}

static void queue_bracket_remove(cl_command_queue queue)
{
	struct queue_bracket **link = &queue_list, *q;

	lock_acquire(&queues_lock);
	q = table_remove(&queues, queue);
	while (*link && *link != q)
		link = &(*link)->next;
	if (q) {
		*link = q->next;
		q->listed = false;
	}
	lock_release(&queues_lock);
	if (q)
		queue_bracket_put(q);
}

/*
 * With one reference left its only owner gives it up.  Where commands (PoCL) or the thread that
 * idles hold the queue, and where two threads release the last two at once, the record stays
 * behind.  It has no open bracket, and serves the next queue at that address, which is asked for
 * its order.
 */
void queue_bracket_forget(cl_command_queue queue)
{
	struct queue_bracket *q = queue_bracket_get(queue);
	cl_uint refs = 0;

	if (!q)
		return;
	atomic_store(&q->in_order, true);
	queue_bracket_put(q);
	queue_bracket_close_slowly(queue);
	if (!next.clGetCommandQueueInfo(queue, CL_QUEUE_REFERENCE_COUNT, sizeof(refs), &refs,
					NULL) &&
	    refs == 1)
		queue_bracket_remove(queue);
}

void queue_bracket_reorder(cl_command_queue queue)
{
	struct queue_bracket *q = queue_bracket_get(queue);

	if (!q)
		return;
	queue_bracket_is_in_order(q);
	queue_bracket_put(q);
}

void queue_bracket_forbid(void)
{
	atomic_store(&forbidden, true);
	/* queue_bracket_open() counts first, and looks then: one of the two sees the other. */
	atomic_thread_fence(memory_order_seq_cst);
	queue_bracket_close_all();
}
