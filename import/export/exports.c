/* SPDX-License-Identifier: Apache-2.0 */
#include "import/export/exports.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "import/export/gdmabuf.h"
#include "import/nvidia/cuda/cuda.h"
#include "util/lock.h"
#include "util/log.h"

#define BUCKETS 4096

struct export
{
	struct export *next; /* in the bucket */
	ino_t inode;
	struct exported made_of;
	bool used;
};

LOCK_DEFINE(exports_lock, LOCK_LAST); /* the three below */
static struct export exports_ring[EXPORTS] GUARDED_BY(exports_lock);
static struct export *exports_buckets[BUCKETS] GUARDED_BY(exports_lock);
static unsigned int exports_oldest GUARDED_BY(exports_lock);

static struct export **exports_bucket_of(ino_t inode) REQUIRES(exports_lock)
{
	return &exports_buckets[inode % BUCKETS];
}

/* Whether the address still means the exported memory. */
static bool exports_is_current(const struct exported *made_of)
{
	const struct gdmabuf_range range = {
		.context = made_of->context,
		.slot = made_of->slot,
		.generation = made_of->generation,
	};

	if (made_of->buffer_id)
		return cuda_buffer_id(made_of->inside) == made_of->buffer_id;
	return gdmabuf_is_current(&range);
}

static struct export *exports_find_inode(ino_t inode) REQUIRES(exports_lock)
{
	struct export *e = *exports_bucket_of(inode);

	while (e && e->inode != inode)
		e = e->next;
	return e;
}

/* A new dma-buf replaces the oldest. */
static struct export *exports_take(ino_t inode) REQUIRES(exports_lock)
{
	struct export *e = &exports_ring[exports_oldest++ % EXPORTS];
	struct export **link = exports_bucket_of(e->inode);

	while (e->used && *link != e)
		link = &(*link)->next;
	if (e->used)
		*link = e->next;
	e->used = true;
	e->inode = inode;
	e->next = *exports_bucket_of(inode);
	*exports_bucket_of(inode) = e;
	return e;
}

int exports_add(int fd, const struct exported *exported, const struct descriptor_id *expected)
{
	struct descriptor_id id;
	struct export *e;

	if (!exported->buffer_id && !exported->generation)
		return 0;
	if (descriptor_identify(fd, &id))
		return -EBADF;
	if (expected && (id.device != expected->device || id.inode != expected->inode))
		return -ESTALE;
	lock_acquire(&exports_lock);
	e = exports_find_inode(id.inode);
	if (!e)
		e = exports_take(id.inode);
	e->made_of = *exported;
	lock_release(&exports_lock);
	return 0;
}

int exports_find(int fd, uintptr_t *address)
{
	struct exported made_of = { 0 };
	struct descriptor_id id;
	const struct export *e;

	if (descriptor_identify(fd, &id))
		return -EBADF;
	lock_acquire(&exports_lock);
	e = exports_find_inode(id.inode);
	if (e)
		made_of = e->made_of;
	lock_release(&exports_lock);
	if (!e)
		return -ENOENT;
	if (!exports_is_current(&made_of))
		return log_errno(ENODEV,
				 "the memory at %#zx was freed since it was exported as a dma-buf",
				 (size_t)made_of.address);
	*address = made_of.address;
	return 0;
}
