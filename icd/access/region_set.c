/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/access/region_set.h"

#include <stdlib.h>

#include "util/log.h"

const struct memobj *region_set_first(struct memobj *const *objs, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (objs[i] && objs[i]->bracket)
			return objs[i];
	return NULL;
}

static unsigned int region_set_access(const struct import_region *region, bool by_host)
{
	return by_host ? region->access : region->wanted & region->access;
}

/* An import and its sub-buffers are one region. */
static bool region_set_serves(const struct region_set *set, const struct import_region *region,
			      unsigned int access)
{
	for (size_t i = 0; i < set->count; i++)
		if (set->regions[i] == region && !(access & ~set->access[i]))
			return true;
	return false;
}

static void region_set_add(struct region_set *set, struct import_region *region, bool by_host)
{
	if (region_set_has(set, region))
		return;
	import_hold(region);
	set->access[set->count] = region_set_access(region, by_host);
	set->regions[set->count++] = region;
}

bool region_set_init(struct region_set *set, struct memobj *const *objs, size_t count, bool by_host)
{
	set->count = 0;
	set->regions = calloc(count, sizeof(*set->regions) + sizeof(*set->access));
	if (!set->regions) {
		log_error("no memory for a dma-buf bracket");
		return false;
	}
	set->access = (unsigned int *)(set->regions + count);
	for (size_t i = 0; i < count; i++)
		if (objs[i] && objs[i]->bracket)
			region_set_add(set, objs[i]->region, by_host);
	return true;
}

void region_set_put(struct region_set *set)
{
	while (set->count)
		import_put(set->regions[--set->count]);
	free(set->regions);
	set->regions = NULL;
}

bool region_set_has(const struct region_set *set, const struct import_region *region)
{
	return region_set_serves(set, region, 0);
}

bool region_set_covers(const struct region_set *set, struct memobj *const *objs, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (objs[i] && objs[i]->bracket &&
		    !region_set_serves(set, objs[i]->region,
				       region_set_access(objs[i]->region, false)))
			return false;
	return true;
}

int region_set_check(const struct region_set *set)
{
	int error = 0;

	for (size_t i = 0; i < set->count && !error; i++)
		error = import_check_access(set->regions[i]);
	return error;
}

int region_set_end(const struct region_set *set)
{
	int first_error = 0;

	for (size_t i = 0; i < set->count; i++) {
		int ret = import_end_access(set->regions[i], set->access[i]);

		first_error = first_error ? first_error : ret;
	}
	return first_error;
}
