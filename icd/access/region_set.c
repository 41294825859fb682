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

void region_set_leave(const struct region_set *set)
{
	for (size_t i = 0; i < set->count; i++)
		atomic_fetch_add(&set->regions[i]->begun, 1);
}

static bool region_take(struct import_region *region)
{
	unsigned int begun = atomic_load(&region->begun);

	while (begun && !atomic_compare_exchange_weak(&region->begun, &begun, begun - 1))
		;
	return begun;
}

void region_set_take(struct region_set *set)
{
	size_t kept = 0;

	for (size_t i = 0; i < set->count; i++) {
		if (!region_take(set->regions[i])) {
			import_put(set->regions[i]);
			continue;
		}
		set->regions[kept] = set->regions[i];
		set->access[kept++] = set->access[i];
	}
	set->count = kept;
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
