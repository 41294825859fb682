/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CL_IMPORT_TYPE_HOST_ARM: memory of the process.  Nothing is mapped or kept:
 * the range is checked, and stays the application's.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <unistd.h>

#include "import/kinds/maps.h"
#include "import/import.h"
#include "util/address.h"
#include "util/list.h"
#include "util/lock.h"
#include "util/log.h"

#define ACCESS_KINDS ((IMPORT_READ | IMPORT_WRITE) + 1)

/*
 * "Importing two allocations that aren't page-aligned and that request
 * different memory flags is unsupported; an error will be returned."
 *
 * The live unaligned ranges, by requested access.
 */
LOCK_DEFINE(unaligned_lock, LOCK_LAST); /* the lists below */
static struct list unaligned[ACCESS_KINDS] GUARDED_BY(unaligned_lock);

static uintptr_t host_page_mask;

__attribute__((constructor)) static void host_init(void)
{
	host_page_mask = ~((uintptr_t)sysconf(_SC_PAGESIZE) - 1);
	for (unsigned int kind = 0; kind < ACCESS_KINDS; kind++)
		list_init(&unaligned[kind]);
}

static bool host_is_aligned(const struct import_region *r)
{
	return !(((uintptr_t)r->addr | r->size) & ~host_page_mask);
}

static uintptr_t host_first_page(const struct import_region *r)
{
	return address_of(r->addr) & host_page_mask;
}

static uintptr_t host_last_page(const struct import_region *r)
{
	return (address_of(r->addr) + r->size - 1) & host_page_mask;
}

static const struct import_region *host_find_sharing(const struct list *list,
						     const struct import_region *region)
{
	for (const struct list *link = list->next; link != list; link = link->next) {
		const struct import_region *other =
			container_of(link, struct import_region, unaligned);

		if (host_first_page(other) <= host_last_page(region) &&
		    host_first_page(region) <= host_last_page(other))
			return other;
	}
	return NULL;
}

static const struct import_region *host_unaligned_conflict(const struct import_region *region)
	REQUIRES(unaligned_lock)
{
	const struct import_region *found = NULL;

	for (unsigned int kind = 0; kind < ACCESS_KINDS && !found; kind++)
		if (kind != region->wanted)
			found = host_find_sharing(&unaligned[kind], region);
	return found;
}

static int host_unaligned_add(struct import_region *region)
{
	const struct import_region *other;
	int ret = 0;

	lock_acquire(&unaligned_lock);
	other = host_unaligned_conflict(region);
	if (other)
		ret = log_errno(EBUSY,
				"%zu bytes at %p share a page with an unaligned import at %p "
				"that has other access flags",
				region->size, region->addr, other->addr);
	else
		list_add(&unaligned[region->wanted], &region->unaligned);
	lock_release(&unaligned_lock);
	return ret;
}

static void host_close(struct import_region *region)
{
	if (host_is_aligned(region))
		return;
	lock_acquire(&unaligned_lock);
	if (region->unaligned.next)
		list_remove(&region->unaligned);
	region->unaligned.next = NULL;
	lock_release(&unaligned_lock);
}

static int host_open(const struct import_desc *desc, struct import_region *region)
{
	int ret =
		maps_check(desc->memory, desc->size, desc->access, &region->access, &region->kinds);

	if (ret)
		return ret;
	region->addr = desc->memory;
	region->is_borrowed = true;
	return host_is_aligned(region) ? 0 : host_unaligned_add(region);
}

const struct import_ops import_host_ops = {
	.open = host_open,
	.close = host_close,
	.released = host_close,
};
