/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/access/region_set.h"

#include <stdlib.h>

#include "util/log.h"

static unsigned int region_set_access_of(const struct import_region *region, bool by_host)
{
	return by_host ? region->access : region->wanted & region->access;
}

/* An import and its sub-buffers are one region. */
static bool region_set_covers(const struct region_set *set, const struct import_region *region,
			      unsigned int access)
{
	for (size_t i = 0; i < set->count; i++)
		if (import_same_bracket(set->regions[i], region) && !(access & ~set->access[i]))
			return true;
	return false;
}

static void region_set_add(struct region_set *set, struct import_region *region,
			   unsigned int access)
{
	set->access[set->count] = access;
	set->regions[set->count++] = region;
	import_hold(region);
}

static bool region_set_alloc(struct region_set *set, size_t count)
{
	set->regions = set->few_regions;
	set->access = set->few_access;
	if (count <= REGION_SET_FEW)
		return true;
	set->regions = calloc(count, sizeof(*set->regions));
	set->access = calloc(count, sizeof(*set->access));
	return set->regions && set->access;
}

bool region_set_init(struct region_set *set, struct memobj *const *objs, size_t count, bool by_host)
{
	set->count = 0;
	if (!region_set_alloc(set, count)) {
		region_set_put(set);
		log_error("no memory for a dma-buf bracket");
		return false;
	}
	for (size_t i = 0; i < count; i++) {
		struct import_region *region = objs[i] ? objs[i]->region : NULL;

		if (region && objs[i]->bracket && !region_set_covers(set, region, 0))
			region_set_add(set, region, region_set_access_of(region, by_host));
	}
	return true;
}

void region_set_put(struct region_set *set)
{
	while (set->count)
		import_put(set->regions[--set->count]);
	if (set->regions != set->few_regions)
		free(set->regions);
	if (set->access != set->few_access)
		free(set->access);
	set->regions = NULL;
	set->access = NULL;
}

bool region_set_needs_end(const struct region_set *set)
{
	for (size_t i = 0; i < set->count; i++)
		if (import_needs_end(set->regions[i]))
			return true;
	return false;
}

bool region_set_has(const struct region_set *set, struct memobj *const *objs, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (objs[i] && objs[i]->bracket &&
		    !region_set_covers(set, objs[i]->region,
				       region_set_access_of(objs[i]->region, false)))
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
