/* SPDX-License-Identifier: Apache-2.0 */
#include "import/alloc/pool_slab.h"

#include <errno.h>
#include <stdlib.h>

#include "util/log.h"

#define POOL_SMALLEST ((size_t)512)

size_t pool_part_size(size_t size)
{
	size_t part = POOL_SMALLEST;

	if (size > SIZE_MAX - POOL_SLAB)
		return 0;
	if (size > POOL_SLAB / 2)
		return (size + POOL_SLAB - 1) / POOL_SLAB * POOL_SLAB;
	while (part < size)
		part *= 2;
	return part;
}

static struct pool_slab **pool_slab_bucket(struct pool *pool, uintptr_t base) REQUIRES(pool->lock)
{
	return &pool->slab_buckets[base / POOL_SLAB % POOL_BUCKETS];
}

static struct pool_bin **pool_bin_bucket(struct pool *pool, size_t size, uint64_t key)
	REQUIRES(pool->lock)
{
	uint64_t hash = (size / POOL_SMALLEST + key * 31) * UINT64_C(0x9e3779b97f4a7c15);

	return &pool->bin_buckets[hash >> 32 & (POOL_BUCKETS - 1)];
}

static struct pool_bin *pool_bin_find(struct pool *pool, size_t size, uint64_t key)
	REQUIRES(pool->lock)
{
	struct pool_bin *bin = *pool_bin_bucket(pool, size, key);

	while (bin && (bin->part != size || bin->key != key))
		bin = bin->next;
	return bin;
}

/* NULL: no memory of the host, or one stream too many. */
static struct pool_bin *pool_bin_get(struct pool *pool, size_t size, uint64_t key)
	REQUIRES(pool->lock)
{
	struct pool_bin *bin = pool_bin_find(pool, size, key),
			**bucket = pool_bin_bucket(pool, size, key);

	if (bin)
		return bin;
	if (key >= POOL_STREAMS && pool->streams >= POOL_BINS_OF_STREAMS)
		return NULL;
	bin = malloc(sizeof(*bin));
	if (!bin)
		return NULL;
	*bin = (struct pool_bin){ .next = *bucket, .part = size, .key = key };
	list_init(&bin->parts);
	*bucket = bin;
	pool->streams += key >= POOL_STREAMS;
	return bin;
}

/* A free has to find the bins of every slab's parts. */
static bool pool_bins_make(struct pool *pool, size_t size) REQUIRES(pool->lock)
{
	return pool_bin_get(pool, size, POOL_IDLE) && pool_bin_get(pool, size, POOL_BLOCKING) &&
	       pool_bin_get(pool, size, POOL_ANY);
}

int pool_slab_add(struct pool *pool, const struct pool_memory *memory, size_t part)
{
	size_t count = part < POOL_SLAB ? POOL_SLAB / part : 1;
	struct pool_slab *slab = calloc(1, sizeof(*slab) + count * sizeof(slab->parts[0]));

	if (!slab || !pool_bins_make(pool, part)) {
		free(slab);
		return log_errno(ENOMEM, "no memory for a slab");
	}
	slab->memory = *memory;
	slab->part = part;
	slab->count = count;
	slab->next = *pool_slab_bucket(pool, memory->base);
	*pool_slab_bucket(pool, memory->base) = slab;
	list_add(&pool->slabs, &slab->link);
	pool->bytes += memory->size;
	for (size_t i = count; i-- > 0;) {
		slab->parts[i].slab = slab;
		pool_bin_add(pool, &slab->parts[i], POOL_IDLE);
	}
	return 0;
}

void pool_slab_remove(struct pool *pool, struct pool_slab *slab)
{
	struct pool_slab **link = pool_slab_bucket(pool, slab->memory.base);

	while (*link != slab)
		link = &(*link)->next;
	*link = slab->next;
	list_remove(&slab->link);
	for (size_t i = 0; i < slab->count; i++)
		list_remove(&slab->parts[i].link);
	pool->bytes -= slab->memory.size;
}

static struct pool_part *pool_part_in(struct pool *pool, uintptr_t block, uintptr_t address)
	REQUIRES(pool->lock)
{
	struct pool_slab *slab = *pool_slab_bucket(pool, block);

	while (slab && address - slab->memory.base >= slab->memory.size)
		slab = slab->next;
	if (!slab || (address - slab->memory.base) % slab->part)
		return NULL;
	return &slab->parts[(address - slab->memory.base) / slab->part];
}

/* A slab may begin inside of a block of 2 MiB, so a part may be in the block after. */
struct pool_part *pool_part_find(struct pool *pool, uintptr_t address)
{
	struct pool_part *part = pool_part_in(pool, address, address);

	if (!part && address >= POOL_SLAB)
		part = pool_part_in(pool, address - POOL_SLAB, address);
	return part && part->live ? part : NULL;
}

uintptr_t pool_part_address(const struct pool_part *part)
{
	const struct pool_slab *slab = part->slab;

	return slab->memory.base + (size_t)(part - slab->parts) * slab->part;
}

bool pool_bin_has(struct pool *pool, size_t size, uint64_t key)
{
	const struct pool_bin *bin = pool_bin_find(pool, size, key);

	return bin && !list_is_empty(&bin->parts);
}

struct pool_part *pool_bin_take(struct pool *pool, size_t size, uint64_t key)
{
	struct pool_bin *bin = pool_bin_find(pool, size, key);
	struct pool_part *part;

	if (!bin || list_is_empty(&bin->parts))
		return NULL;
	part = container_of(bin->parts.prev, struct pool_part,
			    link); /* the part that was used last */
	list_remove(&part->link);
	if (key == POOL_IDLE)
		part->slab->idle--;
	else
		pool->busy -= size;
	part->live = true;
	part->shared = false;
	pool->used += size;
	return part;
}

void pool_bin_add(struct pool *pool, struct pool_part *part, uint64_t key)
{
	struct pool_bin *bin = pool_bin_get(pool, part->slab->part, key);

	if (!bin) {
		key = POOL_ANY;
		bin = pool_bin_find(pool, part->slab->part, key);
	}
	list_add(&bin->parts, &part->link);
	if (key == POOL_IDLE)
		part->slab->idle++;
}

static void pool_bin_empty(struct pool *pool, struct pool_bin *bin, struct list *parts)
	REQUIRES(pool->lock)
{
	struct list *link;

	while ((link = list_take(&bin->parts))) {
		list_add(parts, link);
		if (bin->key == POOL_IDLE) {
			container_of(link, struct pool_part, link)->slab->idle--;
			pool->busy += bin->part;
		}
	}
}

/* The stream may have ended. */
static void pool_bin_free(struct pool *pool, struct pool_bin **link) REQUIRES(pool->lock)
{
	struct pool_bin *bin = *link;

	*link = bin->next;
	pool->streams--;
	free(bin);
}

static void pool_bins_empty_bucket(struct pool *pool, struct pool_bin **link, uint64_t least,
				   uint64_t most, struct list *parts) REQUIRES(pool->lock)
{
	while (*link) {
		struct pool_bin *bin = *link;

		if (bin->key >= least && bin->key <= most)
			pool_bin_empty(pool, bin, parts);
		if (bin->key >= POOL_STREAMS && bin->key >= least && bin->key <= most)
			pool_bin_free(pool, link);
		else
			link = &bin->next;
	}
}

void pool_bins_empty(struct pool *pool, uint64_t least, uint64_t most, struct list *parts)
{
	for (size_t i = 0; i < POOL_BUCKETS; i++)
		pool_bins_empty_bucket(pool, &pool->bin_buckets[i], least, most, parts);
}

void pool_bins_free(struct pool *pool)
{
	for (size_t i = 0; i < POOL_BUCKETS; i++) {
		struct pool_bin *bin;

		while ((bin = pool->bin_buckets[i])) {
			pool->bin_buckets[i] = bin->next;
			free(bin);
		}
	}
}
