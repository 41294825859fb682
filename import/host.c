/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CL_IMPORT_TYPE_HOST_ARM: memory of this process.  Nothing is mapped or kept:
 * the range is checked, and stays the application's.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <unistd.h>

#include "lock.h"
#include "log.h"
#include "maps.h"
#include "ops.h"

#define ACCESS_KINDS ((IMPORT_READ | IMPORT_WRITE) + 1)

/*
 * "Importing two allocations that aren't page-aligned and that request
 * different memory flags is unsupported; an error will be returned."
 *
 * Live unaligned ranges.  Programs ask for one kind of access almost always:
 * the counts let an import skip the list unless another kind is alive.
 */
LOCK_DEFINE(unaligned_lock, LOCK_LAST); /* the two below */
static struct import_region *unaligned GUARDED_BY(unaligned_lock);
static size_t unaligned_count[ACCESS_KINDS] GUARDED_BY(unaligned_lock);

static uintptr_t page_mask(void)
{
	static uintptr_t mask; /* the same value from every thread */
	uintptr_t known = __atomic_load_n(&mask, __ATOMIC_RELAXED);

	if (!known) {
		known = ~((uintptr_t)sysconf(_SC_PAGESIZE) - 1);
		__atomic_store_n(&mask, known, __ATOMIC_RELAXED);
	}
	return known;
}

static bool is_aligned(const struct import_region *r)
{
	return !(((uintptr_t)r->addr | r->size) & ~page_mask());
}

static bool share_a_page(const struct import_region *a, const struct import_region *b)
{
	uintptr_t mask = page_mask();
	uintptr_t a_last = (uintptr_t)a->addr + a->size - 1,
		  b_last = (uintptr_t)b->addr + b->size - 1;

	return ((uintptr_t)a->addr & mask) <= (b_last & mask) &&
	       ((uintptr_t)b->addr & mask) <= (a_last & mask);
}

static const struct import_region *unaligned_conflict(const struct import_region *region)
	REQUIRES(unaligned_lock)
{
	bool others = false;

	for (unsigned int kind = 0; kind < ACCESS_KINDS; kind++)
		others |= kind != region->wanted && unaligned_count[kind];
	if (!others)
		return NULL;
	for (const struct import_region *r = unaligned; r; r = r->next)
		if (r->wanted != region->wanted && share_a_page(r, region))
			return r;
	return NULL;
}

static void unaligned_insert(struct import_region *region) REQUIRES(unaligned_lock)
{
	region->listed = true;
	region->next = unaligned;
	if (unaligned)
		unaligned->prev = region;
	unaligned = region;
	unaligned_count[region->wanted]++;
}

static int unaligned_add(struct import_region *region)
{
	const struct import_region *other;
	int ret = 0;

	lock_acquire(&unaligned_lock);
	other = unaligned_conflict(region);
	if (other)
		ret = log_errno(EBUSY,
				"%zu bytes at %p share a page with an unaligned import at %p "
				"that has other access flags",
				region->size, region->addr, other->addr);
	else
		unaligned_insert(region);
	lock_release(&unaligned_lock);
	return ret;
}

static void unaligned_unlink(struct import_region *region) REQUIRES(unaligned_lock)
{
	region->listed = false;
	if (region->prev)
		region->prev->next = region->next;
	else
		unaligned = region->next;
	if (region->next)
		region->next->prev = region->prev;
	unaligned_count[region->wanted]--;
}

static void unaligned_remove(struct import_region *region)
{
	lock_acquire(&unaligned_lock);
	if (region->listed)
		unaligned_unlink(region);
	lock_release(&unaligned_lock);
}

static int host_pin(const struct import_desc *desc, struct import_region *region)
{
	int ret = maps_check(desc->memory, desc->size, desc->access, &region->access);

	if (ret)
		return ret;
	region->addr = desc->memory;
	return is_aligned(region) ? 0 : unaligned_add(region);
}

static void host_unpin(struct import_region *region)
{
	if (!is_aligned(region))
		unaligned_remove(region);
}

const struct import_ops import_host_ops = {
	.name = "host",
	.pin = host_pin,
	.unpin = host_unpin,
	.released = host_unpin,
};
