/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The regions of a command that need a bracket, each once and held, with the access for the kernel.
 */
#ifndef ICD_ACCESS_REGION_SET_H
#define ICD_ACCESS_REGION_SET_H

#include "icd/objects/memobj.h"

struct region_set {
	size_t count;
	struct import_region **regions;
	unsigned int *access; /* enum import_access of each */
};

/* The first of @objs, @count records or NULL, that needs a bracket; or NULL. */
const struct memobj *region_set_first(struct memobj *const *objs, size_t count);

/**
 * region_set_init - hold the regions of the objects that need a bracket
 * @by_host: the access is all that the memory permits, not what its flags say of kernels
 *
 * Returns false without memory, logged.  Undone by region_set_put().
 */
bool region_set_init(struct region_set *set, struct memobj *const *objs, size_t count,
		     bool by_host);
void region_set_put(struct region_set *set);

bool region_set_has(const struct region_set *set, const struct import_region *region);

/* Whether @set has the regions of all objects that need a bracket, with the access of kernels. */
bool region_set_covers(const struct region_set *set, struct memobj *const *objs, size_t count);

/* 0; or a negative errno, logged: a region can no longer be bracketed. */
int region_set_check(const struct region_set *set);

/* Ends access to all regions; 0 or the first negative errno, logged. */
int region_set_end(const struct region_set *set);

#endif /* ICD_ACCESS_REGION_SET_H */
