/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/access/region_set.h"

#include <stdlib.h>

#include "util/log.h"

static bool region_set_alloc(struct region_set *set, size_t count)
{
	set->count = 0;
	set->import = NULL;
	set->regions = set->few_regions;
	set->access = set->few_access;
	if (count <= REGION_SET_FEW)
		return true;
	set->regions = calloc(count, sizeof(*set->regions));
	set->access = calloc(count, sizeof(*set->access));
	if (set->regions && set->access)
		return true;
	log_error("no memory for a dma-buf bracket");
	region_set_free(set);
	return false;
}

void region_set_free(struct region_set *set)
{
	if (set->regions != set->few_regions)
		free(set->regions);
	if (set->access != set->few_access)
		free(set->access);
	set->regions = NULL;
	set->access = NULL;
}

/* Whether the set serves a region, too.  An import and its sub-buffers are one region. */
static bool region_set_serves(const struct region_set *set, const struct import_region *region,
			      unsigned int access)
{
	for (size_t i = 0; i < set->count; i++)
		if (set->regions[i] == region && !(access & ~set->access[i]))
			return true;
	return false;
}

static void region_set_add(struct region_set *set, const struct memobj *obj, bool by_host)
{
	struct import_region *region = obj->region;

	if (region_set_serves(set, region, 0))
		return;
	if (!set->import)
		set->import = memobj_import(obj);
	set->access[set->count] = by_host ? region->access : region->wanted & region->access;
	set->regions[set->count++] = region;
}

static bool region_set_is_member(const struct memobj *obj)
{
	return obj && obj->bracket;
}

bool region_set_add_all(struct region_set *set, struct memobj *const *objs, size_t count,
			bool by_host)
{
	size_t members = 0;

	for (size_t i = 0; i < count; i++)
		members += region_set_is_member(objs[i]);
	if (!region_set_alloc(set, members))
		return false;
	for (size_t i = 0; i < count && members; i++)
		if (region_set_is_member(objs[i]))
			region_set_add(set, objs[i], by_host);
	return true;
}

bool region_set_hold(struct region_set *held, const struct region_set *set)
{
	if (!region_set_alloc(held, set->count))
		return false;
	for (size_t i = 0; i < set->count; i++) {
		held->access[i] = set->access[i];
		held->regions[i] = set->regions[i];
		import_hold(held->regions[i]);
	}
	held->count = set->count;
	return true;
}

void region_set_put(struct region_set *set)
{
	while (set->count)
		import_put(set->regions[--set->count]);
	region_set_free(set);
}

bool region_set_has(const struct region_set *set, const struct import_region *region)
{
	for (size_t i = 0; i < set->count; i++)
		if (set->regions[i] == region)
			return true;
	return false;
}

bool region_set_covers(const struct region_set *set, const struct region_set *part)
{
	for (size_t i = 0; i < part->count; i++)
		if (!region_set_serves(set, part->regions[i], part->access[i]))
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
