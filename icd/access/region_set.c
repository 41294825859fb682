/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/access/region_set.h"

static unsigned int region_set_access(const struct import_region *region, bool by_host)
{
	return by_host ? region->access : region->wanted & region->access;
}

bool region_set_serves(const struct region_set *set, const struct import_region *region,
		       unsigned int access)
{
	for (size_t i = 0; i < set->count; i++)
		if (set->regions[i] == region && !(access & ~set->access[i]))
			return true;
	return false;
}

/* An import and its sub-buffers are one region. */
void region_set_init(struct region_set *set, const struct memobj_list *imports, bool by_host)
{
	for (size_t i = 0; i < imports->count; i++) {
		struct import_region *region = imports->objs[i]->region;

		if (region_set_serves(set, region, 0))
			continue;
		import_hold(region);
		set->access[set->count] = region_set_access(region, by_host);
		set->regions[set->count++] = region;
	}
}

void region_set_put(struct region_set *set)
{
	while (set->count)
		import_put(set->regions[--set->count]);
}

bool region_set_covers(const struct region_set *set, const struct memobj_list *imports)
{
	for (size_t i = 0; i < imports->count; i++) {
		const struct import_region *region = imports->objs[i]->region;

		if (!region_set_serves(set, region, region_set_access(region, false)))
			return false;
	}
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
