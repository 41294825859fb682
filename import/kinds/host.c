/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CL_IMPORT_TYPE_HOST_ARM: memory of the process.  Nothing is mapped or kept:
 * the range is checked, and stays the application's.
 */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include "import/kinds/maps.h"
#include "import/import.h"
#include "util/lock.h"
#include "util/log.h"

#define ACCESS_KINDS ((IMPORT_READ | IMPORT_WRITE) + 1)

/*
 * "Importing two allocations that aren't page-aligned and that request
 * different memory flags is unsupported; an error will be returned."
 *
 * The pages of live unaligned ranges, by requested access.
 */
LOCK_DEFINE(unaligned_lock, LOCK_LAST); /* the sets below */
static struct range *unaligned[ACCESS_KINDS] GUARDED_BY(unaligned_lock);

static uintptr_t host_page_mask;

__attribute__((constructor)) static void host_page_mask_set(void)
{
	host_page_mask = ~((uintptr_t)sysconf(_SC_PAGESIZE) - 1);
}

static bool host_is_aligned(const struct import_region *r)
{
	return !(((uintptr_t)r->addr | r->size) & ~host_page_mask);
}

static struct range host_pages_of(const struct import_region *r)
{
	uintptr_t first = (uintptr_t)r->addr, last = first + r->size - 1;

	return (struct range){ .first = first & host_page_mask, .last = last | ~host_page_mask };
}

static const struct import_region *host_region_of(const struct range *range)
{
	return (const void *)((const char *)range - offsetof(struct import_region, pages));
}

static const struct import_region *host_unaligned_conflict(const struct import_region *region)
	REQUIRES(unaligned_lock)
{
	struct range *found = NULL;

	for (unsigned int kind = 0; kind < ACCESS_KINDS && !found; kind++)
		if (kind != region->wanted)
			found = ranges_find(unaligned[kind], region->pages.first,
					    region->pages.last);
	return found ? host_region_of(found) : NULL;
}

static void host_unaligned_insert(struct import_region *region) REQUIRES(unaligned_lock)
{
	region->listed = true;
	ranges_insert(&unaligned[region->wanted], &region->pages);
}

static int host_unaligned_add(struct import_region *region)
{
	const struct import_region *other;
	int ret = 0;

	region->pages = host_pages_of(region);
	lock_acquire(&unaligned_lock);
	other = host_unaligned_conflict(region);
	if (other)
		ret = log_errno(EBUSY,
				"%zu bytes at %p share a page with an unaligned import at %p "
				"that has other access flags",
				region->size, region->addr, other->addr);
	else
		host_unaligned_insert(region);
	lock_release(&unaligned_lock);
	return ret;
}

static void host_unaligned_remove(struct import_region *region)
{
	lock_acquire(&unaligned_lock);
	if (region->listed)
		ranges_remove(&unaligned[region->wanted], &region->pages);
	region->listed = false;
	lock_release(&unaligned_lock);
}

static int host_pin(const struct import_desc *desc, struct import_region *region)
{
	int ret =
		maps_check(desc->memory, desc->size, desc->access, &region->access, &region->kinds);

	if (ret)
		return ret;
	region->addr = desc->memory;
	region->is_borrowed = true;
	return host_is_aligned(region) ? 0 : host_unaligned_add(region);
}

static void host_unpin(struct import_region *region)
{
	if (region->pages.last)
		host_unaligned_remove(region);
}

const struct import_ops import_host_ops = {
	.name = "host",
	.pin = host_pin,
	.unpin = host_unpin,
	.released = host_unpin,
};
