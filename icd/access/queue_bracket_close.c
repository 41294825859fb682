/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When a queue's open bracket is closed: before the application can observe that a kernel is
 * complete, at the end of an import, and after a moment without kernels.
 */
#include "icd/access/queue_bracket_state.h"

#include "icd/layer.h"

/* A driver may call the application in the middle of an enqueue: the bracket is closed later. */
static void queue_bracket_close_or_defer(struct queue_bracket *q)
{
	if (q->entered)
		q->close_left = true;
	else
		queue_bracket_close_locked(q);
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
	queue_bracket_close_locked(q);
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
		queue_bracket_put(q);
	}
	return queue_bracket_any();
}

struct idle_watcher queue_bracket_watcher = { .tick = queue_bracket_tick, .period_ms = 1 };

/* Closes the brackets that use @region; NULL: all brackets. */
static void queue_bracket_close_using(const struct import_region *region)
{
	struct handle_cursor cursor = { 0 };
	struct queue_bracket *q;

	while ((q = handle_table_next(&queue_bracket_table, &cursor))) {
		pthread_mutex_lock(&q->mutex);
		if (q->open && (!region || bracket_uses(q->open, region)))
			queue_bracket_close_or_defer(q);
		pthread_mutex_unlock(&q->mutex);
		queue_bracket_put(q);
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
