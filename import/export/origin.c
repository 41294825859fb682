/* SPDX-License-Identifier: Apache-2.0 */
#include "import/export/origin.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "import/nvidia/cuda/cuda.h"
#include "util/lock.h"
#include "util/log.h"

#define ORIGIN_BUCKETS 4096

struct origin_entry {
	struct origin_entry *next; /* in the bucket */
	ino_t inode;
	struct origin origin;
	bool used;
};

LOCK_DEFINE(origin_lock, LOCK_LAST); /* the three below */
static struct origin_entry origin_ring[ORIGINS] GUARDED_BY(origin_lock);
static struct origin_entry *origin_buckets[ORIGIN_BUCKETS] GUARDED_BY(origin_lock);
static unsigned int origin_oldest GUARDED_BY(origin_lock);
atomic_bool origin_any;

static struct origin_entry **origin_bucket_of(ino_t inode) REQUIRES(origin_lock)
{
	return &origin_buckets[inode % ORIGIN_BUCKETS];
}

static struct origin_entry *origin_find_inode(ino_t inode) REQUIRES(origin_lock)
{
	struct origin_entry *entry = *origin_bucket_of(inode);

	while (entry && entry->inode != inode)
		entry = entry->next;
	return entry;
}

/* A new dma-buf replaces the oldest. */
static struct origin_entry *origin_take(ino_t inode) REQUIRES(origin_lock)
{
	struct origin_entry *entry = &origin_ring[origin_oldest++ % ORIGINS];
	struct origin_entry **link = origin_bucket_of(entry->inode);

	while (entry->used && *link != entry)
		link = &(*link)->next;
	if (entry->used)
		*link = entry->next;
	entry->used = true;
	atomic_store_explicit(&origin_any, true, memory_order_relaxed);
	entry->inode = inode;
	entry->next = *origin_bucket_of(inode);
	*origin_bucket_of(inode) = entry;
	return entry;
}

void origin_add(const struct descriptor_id *id, const struct origin *origin)
{
	struct origin_entry *entry;

	if (!origin->buffer_id)
		return;
	lock_acquire(&origin_lock);
	entry = origin_find_inode(id->inode);
	if (!entry)
		entry = origin_take(id->inode);
	entry->origin = *origin;
	lock_release(&origin_lock);
}

int origin_find_kept(const struct descriptor_id *id, uintptr_t *address)
{
	struct origin origin = { 0 };
	const struct origin_entry *entry;

	lock_acquire(&origin_lock);
	entry = origin_find_inode(id->inode);
	if (entry)
		origin = entry->origin;
	lock_release(&origin_lock);
	if (!entry)
		return -ENOENT;
	if (cuda_buffer_id(origin.inside) != origin.buffer_id)
		return log_errno(ENODEV,
				 "the memory at %#zx was freed since it was exported as a dma-buf",
				 (size_t)origin.address);
	*address = origin.address;
	return 0;
}
