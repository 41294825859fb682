/* SPDX-License-Identifier: Apache-2.0 */
#include "import/alloc/pool.h"

#include <errno.h>
#include <stdlib.h>

#include "import/alloc/pool_batch.h"
#include "util/log.h"

/* A request for parts of exactly @part bytes. */
struct pool_request {
	size_t part;
	uint64_t key;
	void **addresses;
	int count, done;
};

/* The other threads inside are not in the child. */
static void pool_in_child(struct lock *lock) TSA(no_thread_safety_analysis)
{
	struct pool *pool = container_of(lock, struct pool, lock);

	pthread_cond_init(&pool->left, NULL);
	pool->inside = 0;
	pool->alone = 0;
}

void pool_init(struct pool *pool, const struct pool_source *source, uint64_t limit)
{
	*pool = (struct pool){ .source = source, .limit = limit };
	list_init(&pool->slabs);
	list_init(&pool->batches);
	list_init(&pool->spare);
	pthread_cond_init(&pool->left, NULL);
	lock_init(&pool->lock, LOCK_LAST, pool_in_child);
}

/* Threads are inside together, but for threads of pool_enter_alone(), which come first. */
static void pool_enter(struct pool *pool)
{
	lock_acquire(&pool->lock);
	while (pool->alone > 0 && !lock_wait(&pool->lock, &pool->left, NULL))
		;
	pool->inside++;
	lock_release(&pool->lock);
}

static void pool_leave(struct pool *pool)
{
	lock_acquire(&pool->lock);
	pool->inside--;
	pthread_cond_broadcast(&pool->left);
	lock_release(&pool->lock);
}

static void pool_enter_alone(struct pool *pool)
{
	lock_acquire(&pool->lock);
	pool->alone++;
	while (pool->inside > 0 && !lock_wait(&pool->lock, &pool->left, NULL))
		;
	pool->inside++;
	lock_release(&pool->lock);
}

static void pool_leave_alone(struct pool *pool)
{
	lock_acquire(&pool->lock);
	pool->inside--;
	pool->alone--;
	pthread_cond_broadcast(&pool->left);
	lock_release(&pool->lock);
}

static bool pool_is_unused(const struct pool_slab *slab)
{
	return slab->idle == slab->count;
}

/* Bytes of unused slabs; or 0 if all idle parts, which are counted, are not beyond @limit. */
static size_t pool_unused_bytes(struct pool *pool, uint64_t limit) REQUIRES(pool->lock)
{
	size_t bytes = 0;

	if (pool->bytes - pool->used - pool->busy <= limit)
		return 0;
	for (struct list *link = pool->slabs.next; link != &pool->slabs; link = link->next) {
		const struct pool_slab *slab = container_of(link, struct pool_slab, link);

		bytes += pool_is_unused(slab) ? slab->memory.size : 0;
	}
	return bytes;
}

/* Moves the oldest unused slabs beyond @limit bytes to @gone. */
static void pool_take_unused(struct pool *pool, uint64_t limit, struct list *gone)
	REQUIRES(pool->lock)
{
	size_t bytes = pool_unused_bytes(pool, limit);
	struct list *next;

	for (struct list *link = pool->slabs.next; link != &pool->slabs && bytes > limit;
	     link = next) {
		struct pool_slab *slab = container_of(link, struct pool_slab, link);

		next = link->next;
		if (!pool_is_unused(slab))
			continue;
		bytes -= slab->memory.size;
		pool_slab_remove(pool, slab);
		list_add(gone, &slab->link);
	}
}

static void pool_slabs_free(struct pool *pool, struct list *slabs)
{
	struct list *link;

	while ((link = list_take(slabs))) {
		struct pool_slab *slab = container_of(link, struct pool_slab, link);

		pool->source->slab_free(pool, &slab->memory);
		free(slab);
	}
}

/* Gives unused slabs back, without waiting. */
static void pool_shrink(struct pool *pool, uint64_t limit)
{
	struct list gone = LIST_INIT(gone);

	lock_acquire(&pool->lock);
	pool_take_unused(pool, limit, &gone);
	lock_release(&pool->lock);
	pool_slabs_free(pool, &gone);
}

static void pool_take_more(struct pool *pool, struct pool_request *request) REQUIRES(pool->lock)
{
	struct pool_part *part;

	while (request->done < request->count) {
		part = request->key >= POOL_STREAMS
			       ? pool_bin_take(pool, request->part, request->key)
			       : NULL;
		if (!part)
			part = pool_bin_take(pool, request->part, POOL_IDLE);
		if (!part)
			return;
		request->addresses[request->done++] = (void *)pool_part_address(part);
	}
}

/* Takes parts that any use may follow.  False: there are none. */
static bool pool_take(struct pool *pool, struct pool_request *request)
{
	lock_acquire(&pool->lock);
	pool_take_more(pool, request);
	lock_release(&pool->lock);
	return request->done;
}

static bool pool_has_shared(struct pool *pool, size_t part)
{
	bool has;

	lock_acquire(&pool->lock);
	has = pool_bin_has(pool, part, POOL_ANY);
	lock_release(&pool->lock);
	return has;
}

static bool pool_is_ahead(struct pool *pool)
{
	bool ahead;

	lock_acquire(&pool->lock);
	ahead = pool->busy > pool->limit;
	lock_release(&pool->lock);
	return ahead;
}

/* A program that is far ahead of the device waits, rather than take all memory. */
static void pool_wait_for_room(struct pool *pool)
{
	while (pool_is_ahead(pool))
		if (!pool_wait_oldest(pool)) {
			pool_drain(pool);
			return;
		}
}

/* Parts of a new slab. */
static int pool_grow(struct pool *pool, struct pool_request *request)
{
	size_t size = request->part < POOL_SLAB ? POOL_SLAB : request->part;
	struct pool_memory memory = { .size = size };
	int ret = pool->source->slab_alloc(pool, size, &memory);

	if (ret)
		return ret;
	lock_acquire(&pool->lock);
	ret = pool_slab_add(pool, &memory, request->part);
	if (!ret)
		pool_take_more(pool, request);
	lock_release(&pool->lock);
	if (ret)
		pool->source->slab_free(pool, &memory);
	return ret;
}

static uint64_t pool_limit(struct pool *pool)
{
	uint64_t limit;

	lock_acquire(&pool->lock);
	limit = pool->limit;
	lock_release(&pool->lock);
	return limit;
}

/*
 * The device's memory is used up: what the program has freed comes first.  All memory that is not live
 * is this thread's, until there is a part or room for a slab: no other thread gets a part in between.
 */
static int pool_alloc_last(struct pool *pool, struct pool_request *request)
{
	struct list parts, gone = LIST_INIT(gone);
	int ret;

	if (pool_take(pool, request))
		return 0;
	pool_drain_begin(pool, POOL_IDLE, &parts);
	ret = cuda_order_drain(&pool->order);
	lock_acquire(&pool->lock);
	pool_drain_end(pool, ret, &parts);
	pool_take_more(pool, request);
	if (!request->done)
		pool_take_unused(pool, 0, &gone);
	lock_release(&pool->lock);
	pool_slabs_free(pool, &gone);
	return request->done ? 0 : pool_grow(pool, request);
}

static int pool_alloc_inside(struct pool *pool, struct pool_request *request)
{
	int ret;

	pool_collect(pool);
	if (pool_take(pool, request))
		return 0;
	pool_wait_for_room(pool);
	if (pool_has_shared(pool, request->part))
		pool_drain(pool);
	if (pool_take(pool, request))
		return 0;
	pool_shrink(pool, pool_limit(pool));
	log_hold();
	ret = pool_grow(pool, request);
	log_resume(ret && ret != -ENOMEM);
	return ret;
}

static int pool_alloc_slowly(struct pool *pool, struct pool_request *request)
{
	int ret;

	pool_enter(pool);
	ret = pool_alloc_inside(pool, request);
	pool_leave(pool);
	if (ret != -ENOMEM)
		return ret;
	pool_enter_alone(pool);
	ret = pool_alloc_last(pool, request);
	pool_leave_alone(pool);
	return ret;
}

int pool_alloc(struct pool *pool, size_t size, uint64_t key, void **addresses, int count)
{
	struct pool_request request = { pool_part_size(size), key, addresses, count, 0 };
	int ret;

	if (!request.part)
		return log_errno(ENOMEM, "%#zx bytes exceed the address space", size);
	if (pool_take(pool, &request))
		return request.done;
	ret = pool_alloc_slowly(pool, &request);
	return ret ? ret : request.done;
}

bool pool_free(struct pool *pool, uintptr_t address, uint64_t key, bool *last)
{
	struct pool_part *part;

	lock_acquire(&pool->lock);
	part = pool_part_find(pool, address);
	if (part) {
		part->live = false;
		pool->used -= part->slab->part;
		pool->busy += part->slab->part;
		pool_bin_add(pool, part, part->shared ? POOL_ANY : key);
		*last = pool->closed && !pool->used;
	}
	lock_release(&pool->lock);
	return part;
}

bool pool_mark_shared(struct pool *pool, uintptr_t address)
{
	struct pool_part *part;

	lock_acquire(&pool->lock);
	part = pool_part_find(pool, address);
	if (part)
		part->shared = true;
	lock_release(&pool->lock);
	return part;
}

void pool_set_limit(struct pool *pool, uint64_t limit)
{
	lock_acquire(&pool->lock);
	pool->limit = limit;
	lock_release(&pool->lock);
}

void pool_trim(struct pool *pool, uint64_t limit)
{
	pool_enter(pool);
	pool_drain(pool);
	pool_shrink(pool, limit);
	pool_leave(pool);
}

/* No thread allocates any more, so the list of slabs stays as it is. */
void pool_detach(struct pool *pool) TSA(no_thread_safety_analysis)
{
	pool_drain(pool);
	for (struct list *link = pool->slabs.next; link != &pool->slabs; link = link->next)
		pool->source->slab_detach(pool,
					  &container_of(link, struct pool_slab, link)->memory);
	pool_batches_free(pool, &pool->batches);
	pool_batches_free(pool, &pool->spare);
}

bool pool_close(struct pool *pool)
{
	bool unused;

	lock_acquire(&pool->lock);
	pool->closed = true;
	unused = !pool->used;
	lock_release(&pool->lock);
	return unused;
}

/* No other thread uses the pool any more. */
void pool_destroy(struct pool *pool) TSA(no_thread_safety_analysis)
{
	if (!pool->closed)
		pool_drain(pool);
	pool_slabs_free(pool, &pool->slabs);
	pool_batches_free(pool, &pool->batches);
	pool_batches_free(pool, &pool->spare);
	pool_bins_free(pool);
	lock_destroy(&pool->lock);
	pthread_cond_destroy(&pool->left);
}
