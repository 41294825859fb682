/* SPDX-License-Identifier: Apache-2.0 */
#include "import/alloc/pool_batch.h"

#include <stdlib.h>

/* Of a batch in the pool's list, and of no list's, the event and the parts are one thread's. */
struct pool_batch {
	struct list link;
	void *event; /* NULL: not made yet */
	struct list parts;
};

/* Makes parts idle, which are in no bin. */
static void pool_set_idle(struct pool *pool, struct list *parts) REQUIRES(pool->lock)
{
	struct list *link;

	while ((link = list_take(parts))) {
		struct pool_part *part = container_of(link, struct pool_part, link);

		pool->busy -= part->slab->part;
		pool_bin_add(pool, part, POOL_IDLE);
	}
}

/* The parts wait as before. */
static void pool_put_back(struct pool *pool, struct list *parts, uint64_t key) REQUIRES(pool->lock)
{
	struct list *link;

	while ((link = list_take(parts)))
		pool_bin_add(pool, container_of(link, struct pool_part, link), key);
}

static struct pool_batch *pool_batch_of(struct list *link)
{
	return link ? container_of(link, struct pool_batch, link) : NULL;
}

/* A batch of all parts with POOL_BLOCKING.  NULL: there is no such part, or no memory. */
static struct pool_batch *pool_batch_begin(struct pool *pool)
{
	struct pool_batch *batch;

	lock_acquire(&pool->lock);
	batch = pool_batch_of(list_take(&pool->spare));
	if (!batch)
		batch = calloc(1, sizeof(*batch));
	if (batch) {
		list_init(&batch->parts);
		pool_bins_empty(pool, POOL_BLOCKING, POOL_BLOCKING, &batch->parts);
		if (list_is_empty(&batch->parts)) {
			list_add(&pool->spare, &batch->link);
			batch = NULL;
		}
	}
	lock_release(&pool->lock);
	return batch;
}

/* An event for the parts that were freed so far.  Without an event the parts wait for a later one. */
static void pool_seal(struct pool *pool)
{
	struct pool_batch *batch = pool_batch_begin(pool);
	int ret;

	if (!batch)
		return;
	ret = cuda_order_record(&pool->order, &batch->event);
	lock_acquire(&pool->lock);
	if (ret)
		pool_put_back(pool, &batch->parts, POOL_BLOCKING);
	list_add(ret ? &pool->spare : &pool->batches, &batch->link);
	lock_release(&pool->lock);
}

/* The oldest batch, which is the caller's until pool_batch_end() or pool_batch_put(). */
static struct pool_batch *pool_batch_take(struct pool *pool)
{
	struct pool_batch *batch;

	lock_acquire(&pool->lock);
	batch = pool_batch_of(list_take(&pool->batches));
	lock_release(&pool->lock);
	return batch;
}

/* The device has reached the event. */
static void pool_batch_end(struct pool *pool, struct pool_batch *batch)
{
	lock_acquire(&pool->lock);
	pool_set_idle(pool, &batch->parts);
	list_add(&pool->spare, &batch->link);
	lock_release(&pool->lock);
}

/* The batch is the oldest again. */
static void pool_batch_put(struct pool *pool, struct pool_batch *batch)
{
	lock_acquire(&pool->lock);
	list_add(pool->batches.next, &batch->link);
	lock_release(&pool->lock);
}

void pool_collect(struct pool *pool)
{
	struct pool_batch *batch;

	pool_seal(pool);
	while ((batch = pool_batch_take(pool))) {
		if (!cuda_order_is_reached(&pool->order, batch->event)) {
			pool_batch_put(pool, batch);
			return;
		}
		pool_batch_end(pool, batch);
	}
}

bool pool_wait_oldest(struct pool *pool)
{
	struct pool_batch *batch = pool_batch_take(pool);

	if (!batch)
		return false;
	if (cuda_order_wait(&pool->order, batch->event)) {
		pool_batch_put(pool, batch);
		return false;
	}
	pool_batch_end(pool, batch);
	return true;
}

void pool_drain_begin(struct pool *pool, uint64_t least, struct list *parts)
{
	struct list *link, *part;

	list_init(parts);
	lock_acquire(&pool->lock);
	pool_bins_empty(pool, least, UINT64_MAX, parts);
	while ((link = list_take(&pool->batches))) {
		struct pool_batch *batch = pool_batch_of(link);

		while ((part = list_take(&batch->parts)))
			list_add(parts, part);
		list_add(&pool->spare, link);
	}
	lock_release(&pool->lock);
}

void pool_drain_end(struct pool *pool, int error, struct list *parts)
{
	if (error)
		pool_put_back(pool, parts, POOL_ANY);
	else
		pool_set_idle(pool, parts);
}

void pool_drain(struct pool *pool)
{
	struct list parts;
	int ret;

	pool_drain_begin(pool, POOL_BLOCKING, &parts);
	ret = cuda_order_drain(&pool->order);
	lock_acquire(&pool->lock);
	pool_drain_end(pool, ret, &parts);
	lock_release(&pool->lock);
}

void pool_batches_free(struct pool *pool, struct list *batches)
{
	struct list *link;

	while ((link = list_take(batches))) {
		struct pool_batch *batch = pool_batch_of(link);

		if (batch->event)
			cuda_order_event_destroy(&pool->order, batch->event);
		free(batch);
	}
}
