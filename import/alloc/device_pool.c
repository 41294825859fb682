/* SPDX-License-Identifier: Apache-2.0 */
#include "import/alloc/device_pool.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "import/alloc/memory.h"
#include "import/export/export.h"
#include "import/export/host_registration.h"
#include "util/log.h"
#include "util/publish.h"

/* Of a device's memory, a fifth may be kept without use. */
#define DEVICE_POOL_KEPT 5
#define DEVICE_POOLS 64

static void *_Atomic device_pools[DEVICE_POOLS]; /* struct pool, by ordinal */

static int device_pool_vmm_alloc(struct pool *pool, size_t size, struct pool_memory *memory)
{
	return memory_alloc(MEMORY_DEVICE, size, 0, pool->order.uuid, &memory->base);
}

static void device_pool_vmm_free(struct pool *pool, const struct pool_memory *memory)
{
	(void)pool;
	memory_free(memory->base);
}

static int device_pool_ipc_alloc(struct pool *pool, size_t size, struct pool_memory *memory)
{
	return cuda_order_alloc(&pool->order, size, &memory->base);
}

static void device_pool_ipc_free(struct pool *pool, const struct pool_memory *memory)
{
	export_invalidate(memory->base, memory->size);
	cuda_order_free(&pool->order, memory->base);
}

/* Without a registration each import pins its own pages. */
static void device_pool_host_register(struct pool_memory *memory)
{
	struct host_registration made;
	int ret;

	log_hold();
	ret = host_registration_make(memory->base, memory->size, &made);
	log_resume(false);
	memory->registration = ret ? 0 : made.number;
	memory->slot = ret ? NULL : made.slot;
}

/* CUDA may unmap the pages, so no registration may promise the pages. */
static void device_pool_host_detach(struct pool *pool, struct pool_memory *memory)
{
	(void)pool;
	if (memory->registration)
		host_registration_put(memory->slot, memory->registration);
	memory->registration = 0;
}

static int device_pool_host_alloc(struct pool *pool, size_t size, struct pool_memory *memory)
{
	int ret = cuda_order_host_alloc(&pool->order, size, &memory->base);

	if (ret)
		return ret;
	memory->buffer_id = cuda_buffer_id(memory->base);
	device_pool_host_register(memory);
	return 0;
}

/* The end of a context that was destroyed has freed the memory, and may have given the address away. */
static void device_pool_host_free(struct pool *pool, const struct pool_memory *memory)
{
	struct pool_memory last = *memory;

	device_pool_host_detach(pool, &last);
	if (!pool->closed || cuda_buffer_id(last.base) == last.buffer_id)
		cuda_order_host_free(&pool->order, last.base);
}

static const struct pool_source device_pool_sources[] = {
	[DEVICE_POOL_VMM] = {
		.slab_alloc = device_pool_vmm_alloc,
		.slab_free = device_pool_vmm_free,
	},
	[DEVICE_POOL_IPC] = {
		.slab_alloc = device_pool_ipc_alloc,
		.slab_free = device_pool_ipc_free,
	},
	[DEVICE_POOL_HOST] = {
		.slab_alloc = device_pool_host_alloc,
		.slab_free = device_pool_host_free,
		.slab_detach = device_pool_host_detach,
	},
};

int device_pool_create(int ordinal, enum device_pool_memory memory, struct pool **out)
{
	struct pool *pool = malloc(sizeof(*pool));
	struct cuda_order order;
	int ret = pool ? cuda_order_open(&order, ordinal)
		       : log_errno(ENOMEM, "no memory for a pool");

	if (ret) {
		free(pool);
		return ret;
	}
	pool_init(pool, &device_pool_sources[memory], order.memory / DEVICE_POOL_KEPT);
	pool->order = order;
	*out = pool;
	return 0;
}

void device_pool_destroy(struct pool *pool)
{
	bool closed = pool->closed;

	pool_destroy(pool);
	if (!closed)
		cuda_order_close(&pool->order);
	free(pool);
}

void device_pool_close(struct pool *pool)
{
	if (!pool->source->slab_detach) {
		device_pool_destroy(pool);
		return;
	}
	pool_detach(pool);
	cuda_order_close(&pool->order);
	if (pool_close(pool))
		device_pool_destroy(pool);
}

/* The key of the pool for a use in streams. */
static uint64_t device_pool_key(const struct pool *pool, enum device_pool_streams streams,
				void *stream)
{
	uint64_t id;

	if (streams == STREAMS_BLOCKING)
		return POOL_BLOCKING;
	if (streams == STREAMS_ALL || !cuda_order_stream_id(&pool->order, stream, &id))
		return POOL_ANY;
	return POOL_STREAMS + id;
}

/* Each replay of a graph would use the memory, also after the memory's free. */
static int device_pool_check_capture(const struct pool *pool, enum device_pool_streams streams,
				     void *stream)
{
	if (streams != STREAM_ONE || !cuda_order_is_capturing(&pool->order, stream))
		return 0;
	return log_errno(EBUSY, "the stream captures a CUDA graph, whose replays would use the "
				"memory after its free: allocate before the capture");
}

int device_pool_alloc(struct pool *pool, size_t size, enum device_pool_streams streams,
		      void *stream, void **addresses, int count)
{
	int ret = device_pool_check_capture(pool, streams, stream);

	return ret ? ret
		   : pool_alloc(pool, size, device_pool_key(pool, streams, stream), addresses,
				count);
}

bool device_pool_free(struct pool *pool, uintptr_t address, enum device_pool_streams streams,
		      void *stream)
{
	uint64_t key = device_pool_key(pool, streams, stream);
	bool last = false, live = pool_free(pool, address, key, &last);

	if (last)
		device_pool_destroy(pool);
	return live;
}

static struct pool *device_pool_publish(void *_Atomic *place, int ordinal)
{
	struct pool *mine, *winner;

	if (device_pool_create(ordinal, DEVICE_POOL_VMM, &mine))
		return NULL;
	winner = publish_first(place, mine);
	if (winner != mine)
		device_pool_destroy(mine);
	return winner;
}

struct pool *device_pool_of(int ordinal, bool make)
{
	struct pool *pool;

	if (ordinal < 0 || ordinal >= DEVICE_POOLS) {
		log_error("there is no CUDA device %d", ordinal);
		return NULL;
	}
	pool = publish_get(&device_pools[ordinal]);
	return pool || !make ? pool : device_pool_publish(&device_pools[ordinal], ordinal);
}

void device_pools_trim(void)
{
	for (size_t i = 0; i < DEVICE_POOLS; i++) {
		struct pool *pool = publish_get(&device_pools[i]);

		if (pool)
			pool_trim(pool, 0);
	}
}

void device_pools_mark_shared(uintptr_t address)
{
	for (size_t i = 0; i < DEVICE_POOLS; i++) {
		struct pool *pool = publish_get(&device_pools[i]);

		if (pool && pool_mark_shared(pool, address))
			return;
	}
}
