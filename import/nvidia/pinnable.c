/* SPDX-License-Identifier: Apache-2.0 */
#include "import/nvidia/pinnable.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "import/kinds/maps.h"
#include "util/address.h"
#include "util/log.h"

#define PINNABLE_SHOWN 48 /* bytes of a name */

/* The end of a long name: the end of the message, which has 255 bytes, is the advice. */
static const char *pinnable_shown(const char *name)
{
	size_t size = name ? strlen(name) : 0;

	if (!size)
		return "anonymous";
	return size > PINNABLE_SHOWN ? name + size - PINNABLE_SHOWN : name;
}

static int pinnable_refuse(const struct maps_mapping *m)
{
	char *name = maps_name(m->start);
	int ret;

	if (m->access & IMPORT_WRITE)
		ret = log_errno(EOPNOTSUPP,
				"host memory at %#" PRIxPTR
				" is a mapping of %s, which this device cannot "
				"pin",
				m->start, pinnable_shown(name));
	else
		ret = log_errno(
			EOPNOTSUPP,
			"host memory at %#" PRIxPTR " (%s) is mapped without write access, which "
			"this device needs to pin the memory: map the memory writable, with "
			"MAP_PRIVATE if the file must not change",
			m->start, pinnable_shown(name));
	free(name);
	return ret;
}

/*
 * Whether a page is of a mapping that has no pages to pin: VM_PFNMAP or VM_IO.  The kind of a
 * mapping is by the file's name, and an unlinked device node on a tmpfs has a name like shared
 * memory.  MADV_POPULATE_WRITE does the first step of a pin and is EINVAL for such a mapping, but
 * kernels before 5.14 give EINVAL for any memory: then the name decides alone.
 */
static bool pinnable_is_device(uintptr_t page, size_t size)
{
	const uintptr_t known = (uintptr_t)&page & ~(size - 1);

	return madvise((void *)page, size, MADV_POPULATE_WRITE) && errno == EINVAL &&
	       !madvise((void *)known, size, MADV_POPULATE_WRITE);
}

/* A range, and a bit for each enum import_kind that is pinned. */
struct pinnable_range {
	uintptr_t start;
	unsigned int kinds;
};

/* A writable mapping of no file has ordinary pages. */
static bool pinnable_is_one(const struct maps_mapping *m, const struct pinnable_range *range)
{
	const size_t size = (size_t)sysconf(_SC_PAGESIZE);
	const uintptr_t page = m->start > range->start ? m->start : range->start & ~(size - 1);

	return m->access & IMPORT_WRITE && 1u << maps_kind(m) & range->kinds &&
	       (!maps_has_file(m) || !pinnable_is_device(page, size));
}

static int pinnable_check_one(const struct maps_mapping *m, void *range)
{
	return pinnable_is_one(m, range) ? 0 : pinnable_refuse(m);
}

static int pinnable_look_at_one(const struct maps_mapping *m, void *range)
{
	return pinnable_is_one(m, range) ? 0 : -EOPNOTSUPP;
}

int pinnable_check(const void *addr, size_t size, unsigned int kinds)
{
	struct pinnable_range range = { address_of(addr), kinds };

	return maps_for_each(addr, size, pinnable_check_one, &range);
}

bool pinnable_is(const void *addr, size_t size, unsigned int kinds)
{
	struct pinnable_range range = { address_of(addr), kinds };

	return !maps_for_each(addr, size, pinnable_look_at_one, &range);
}
