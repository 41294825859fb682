/* SPDX-License-Identifier: Apache-2.0 */
#include "import/export/origin.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "import/nvidia/cuda/cuda.h"
#include "util/lock.h"
#include "util/log.h"

#define ORIGIN_BUCKETS 4096

struct origin_record {
	struct origin_record *next; /* in the bucket */
	ino_t inode;
	struct origin origin;
	bool used;
};

LOCK_DEFINE(origin_lock, LOCK_LAST); /* the three below */
static struct origin_record origin_ring[ORIGINS] GUARDED_BY(origin_lock);
static struct origin_record *origin_buckets[ORIGIN_BUCKETS] GUARDED_BY(origin_lock);
static unsigned int origin_oldest GUARDED_BY(origin_lock);
atomic_bool origin_any;

static struct origin_record **origin_bucket_of(ino_t inode) REQUIRES(origin_lock)
{
	return &origin_buckets[inode % ORIGIN_BUCKETS];
}

static struct origin_record *origin_find_inode(ino_t inode) REQUIRES(origin_lock)
{
	struct origin_record *record = *origin_bucket_of(inode);

	while (record && record->inode != inode)
		record = record->next;
	return record;
}

/* A new dma-buf replaces the oldest. */
static struct origin_record *origin_take(ino_t inode) REQUIRES(origin_lock)
{
	struct origin_record *record = &origin_ring[origin_oldest++ % ORIGINS];
	struct origin_record **link = origin_bucket_of(record->inode);

	while (record->used && *link != record)
		link = &(*link)->next;
	if (record->used)
		*link = record->next;
	record->used = true;
	atomic_store_explicit(&origin_any, true, memory_order_relaxed);
	record->inode = inode;
	record->next = *origin_bucket_of(inode);
	*origin_bucket_of(inode) = record;
	return record;
}

void origin_add(const struct descriptor_id *id, const struct origin *origin)
{
	struct origin_record *record;

	if (!origin->buffer_id)
		return;
	lock_acquire(&origin_lock);
	record = origin_find_inode(id->inode);
	if (!record)
		record = origin_take(id->inode);
	record->origin = *origin;
	lock_release(&origin_lock);
}

int origin_find_kept(const struct descriptor_id *id, uintptr_t *address)
{
	struct origin origin = { 0 };
	const struct origin_record *record;

	lock_acquire(&origin_lock);
	record = origin_find_inode(id->inode);
	if (record)
		origin = record->origin;
	lock_release(&origin_lock);
	if (!record)
		return -ENOENT;
	if (cuda_buffer_id(origin.inside) != origin.buffer_id)
		return log_errno(ENODEV,
				 "the memory at %#zx was freed since it was exported as a dma-buf",
				 (size_t)origin.address);
	*address = origin.address;
	return 0;
}
