/* SPDX-License-Identifier: Apache-2.0 */
/* A pool's slabs, parts and bins: pool.h.  The caller has the pool's lock, and no driver is called. */
#ifndef IMPORT_ALLOC_POOL_SLAB_H
#define IMPORT_ALLOC_POOL_SLAB_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "import/nvidia/cuda/cuda_order.h"
#include "util/list.h"
#include "util/lock.h"

/* Keys of streams begin at POOL_STREAMS. */
enum { POOL_IDLE, POOL_BLOCKING, POOL_ANY, POOL_STREAMS };

#define POOL_BUCKETS 1024
#define POOL_BINS_OF_STREAMS 2048 /* the most */

struct pool;

/* Memory of a source, and the source's notes. */
struct pool_memory {
	uintptr_t base;
	size_t size;
	uint64_t buffer_id;
	uint64_t registration;
	struct host_slot *slot; /* of the registration */
};

/* Where slabs come from. */
struct pool_source {
	/* 0 or a negative errno, logged.  -ENOMEM: the device has no memory left.  @base is a multiple of 512. */
	int (*slab_alloc)(struct pool *pool, size_t size, struct pool_memory *memory);
	void (*slab_free)(struct pool *pool, const struct pool_memory *memory);
	/* pool_detach(): the memory stays, and its context may go.  May be NULL. */
	void (*slab_detach)(struct pool *pool, struct pool_memory *memory);
};

struct pool {
	const struct pool_source *source;
	struct cuda_order order;
	struct lock lock; /* of all below */
	bool closed;
	uint64_t limit; /* bytes that may be kept without use */
	struct pool_slab *slab_buckets[POOL_BUCKETS];
	struct pool_bin *bin_buckets[POOL_BUCKETS];
	struct list slabs;   /* the oldest first */
	struct list batches; /* likewise */
	struct list spare;   /* batches for reuse */
	size_t streams;	     /* bins of streams */
	size_t bytes;	     /* of slabs */
	size_t used;	     /* of live parts */
	size_t busy;	     /* of parts that are neither live nor idle */
	int inside;	     /* threads that call drivers */
	int alone;	     /* threads that are inside alone, or wait for that */
	pthread_cond_t left; /* @inside or @alone is less */
};

#define POOL_SLAB ((size_t)2 << 20)

struct pool_part {
	struct list link; /* in a bin or a batch, unless live */
	struct pool_slab *slab;
	bool live;
	bool shared; /* pool_mark_shared() */
};

struct pool_slab {
	struct list link;	/* of the pool's slabs */
	struct pool_slab *next; /* in the bucket */
	struct pool_memory memory;
	size_t part, count, idle; /* bytes of a part; parts; idle parts */
	struct pool_part parts[];
};

/* Freed parts of a size with a key. */
struct pool_bin {
	struct pool_bin *next; /* in the bucket */
	size_t part;
	uint64_t key;
	struct list parts;
};

/* The bytes of a part for @size bytes; 0: too many. */
size_t pool_part_size(size_t size);

/* A slab with parts of @part bytes, all idle.  -ENOMEM, logged: no memory of the host. */
int pool_slab_add(struct pool *pool, const struct pool_memory *memory, size_t part)
	REQUIRES(pool->lock);

/* Takes out an unused slab, whose memory is the caller's. */
void pool_slab_remove(struct pool *pool, struct pool_slab *slab) REQUIRES(pool->lock);

/* The live part at @address, or NULL. */
struct pool_part *pool_part_find(struct pool *pool, uintptr_t address) REQUIRES(pool->lock);

uintptr_t pool_part_address(const struct pool_part *part);

/* A freed part of exactly @size bytes with the key, now live and counted so; or NULL. */
struct pool_part *pool_bin_take(struct pool *pool, size_t size, uint64_t key) REQUIRES(pool->lock);

/* Whether there is such a part. */
bool pool_bin_has(struct pool *pool, size_t size, uint64_t key) REQUIRES(pool->lock);

/* Adds a part that is in no list.  The caller counts pool->busy. */
void pool_bin_add(struct pool *pool, struct pool_part *part, uint64_t key) REQUIRES(pool->lock);

/*
 * Moves all parts with keys from @least to @most to the end of @parts.  No part is idle any more, and
 * the bins of streams go.
 */
void pool_bins_empty(struct pool *pool, uint64_t least, uint64_t most, struct list *parts)
	REQUIRES(pool->lock);

/* The end of the pool. */
void pool_bins_free(struct pool *pool) REQUIRES(pool->lock);

#endif
