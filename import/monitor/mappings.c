/* SPDX-License-Identifier: Apache-2.0 */
#include "import/monitor/mappings.h"

#include <errno.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include "import/kinds/maps.h"

/* @arg: the mappings so far. */
static int mappings_take_anonymous(const struct maps_mapping *m, void *arg)
{
	uintptr_t on_stack = getauxval(AT_RANDOM);
	struct watches_pages *all = arg;

	if (m->inode || m->shared || m->access != (IMPORT_READ | IMPORT_WRITE))
		return -EOPNOTSUPP;
	if (m->start <= on_stack && on_stack < m->end)
		return -EOPNOTSUPP;
	if (!all->end)
		all->start = m->start;
	all->end = m->end;
	return 0;
}

int mappings_check(struct watches_pages pages, struct watches_pages *mappings)
{
	*mappings = (struct watches_pages){ 0, 0 };
	return maps_for_each((const void *)pages.start, pages.end - pages.start,
			     mappings_take_anonymous, mappings);
}

/*
 * A registration of a part of a mapping makes two mappings or three, and mremap() takes one alone.
 * A mapping that is little else than the pages is registered as a whole, and stays one.
 */
struct watches_pages mappings_to_register(struct watches_pages pages, struct watches_pages mappings)
{
	return (mappings.end - mappings.start) / 2 <= pages.end - pages.start ? mappings : pages;
}

static int mappings_take_end(const struct maps_mapping *m, void *arg)
{
	*(uintptr_t *)arg = m->end;
	return 0;
}

/*
 * msync() asks whether the page is mapped, and does nothing to anonymous memory; services may call
 * msync(), and not mincore().
 */
uintptr_t mappings_end_of(uintptr_t end)
{
	size_t size = (size_t)sysconf(_SC_PAGESIZE);
	char *page = (char *)end - size;

	if (!msync(page, size, MS_ASYNC))
		maps_for_each(page, 1, mappings_take_end, &end);
	return end;
}
