/* SPDX-License-Identifier: Apache-2.0 */
/* A pool over a source that has memory without end, and a device that is never busy. */
#include "fake_cuda.h"
#include "harness.h"
#include "import/alloc/pool.h"

#define SLAB ((size_t)2 << 20)

static uintptr_t source_next;

static int source_slab_alloc(struct pool *pool, size_t size, struct pool_memory *memory)
{
	(void)pool;
	memory->base = source_next += SLAB;
	memory->size = size;
	return 0;
}

static void source_slab_free(struct pool *pool, const struct pool_memory *memory)
{
	(void)pool, (void)memory;
}

static const struct pool_source source = {
	.slab_alloc = source_slab_alloc,
	.slab_free = source_slab_free,
};

static void source_pool_begin(struct pool *pool)
{
	fake_cuda_reset(1);
	pool_init(pool, &source, 64 * SLAB);
	EXPECT_EQ(cuda_order_open(&pool->order, 0), 0);
}

static void source_pool_end(struct pool *pool)
{
	pool_destroy(pool);
	cuda_order_close(&pool->order);
}

/* An allocation of 512 bytes that a stream frees. */
static void pool_use_stream(struct pool *pool, uint64_t stream)
{
	const uint64_t key = POOL_STREAMS + stream;
	void *address;
	bool last;

	EXPECT_EQ(pool_alloc(pool, 512, key, &address, 1), 1);
	EXPECT(pool_free(pool, (uintptr_t)address, key, &last));
}

TEST(streams_without_end, "A program that makes a stream for each request has a slab, and 2,048 "
			  "bins of streams at most.")
{
	struct pool pool;

	source_pool_begin(&pool);
	for (uint64_t stream = 0; stream < 20000; stream++) {
		pool_use_stream(&pool, stream);
		EXPECT(pool.streams <= POOL_BINS_OF_STREAMS);
	}
	EXPECT_EQ(pool.bytes, SLAB);
	source_pool_end(&pool);
}

TEST(streams_few, "A program of 2,048 streams never waits for the device.")
{
	struct pool pool;

	source_pool_begin(&pool);
	for (uint64_t i = 0; i < 20 * POOL_BINS_OF_STREAMS; i++)
		pool_use_stream(&pool, i % POOL_BINS_OF_STREAMS);
	EXPECT_EQ(fake_cuda_calls("cuCtxSynchronize"), 0);
	EXPECT_EQ(pool.streams, POOL_BINS_OF_STREAMS);
	pool_trim(&pool, 0);
	EXPECT_EQ(pool.streams, 0);
	EXPECT_EQ(pool.bytes, 0);
	source_pool_end(&pool);
}
