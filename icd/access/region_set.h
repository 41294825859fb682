/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The regions that a command uses and that need a bracket, each once, with the access that is
 * announced to the kernel.
 */
#ifndef ICD_ACCESS_REGION_SET_H
#define ICD_ACCESS_REGION_SET_H

#include "icd/objects/memobj.h"

#define REGION_SET_FEW 4

/* Not to be moved. */
struct region_set {
	size_t count;
	struct import_region **regions;			   /* held */
	unsigned int *access;				   /* enum import_access of each */
	struct import_region *few_regions[REGION_SET_FEW]; /* for sets of so few objects */
	unsigned int few_access[REGION_SET_FEW];
};

/**
 * region_set_init - collect the regions of objects
 * @objs: @count records; NULL, and objects that need no bracket, are skipped
 * @by_host: whatever the memory permits, not what its flags say of kernels
 *
 * Returns false if there is no memory; then nothing is held.  Undone by region_set_put().
 */
bool region_set_init(struct region_set *set, struct memobj *const *objs, size_t count,
		     bool by_host);
void region_set_put(struct region_set *set);

/* Whether one of the regions has to be ended, too. */
bool region_set_needs_end(const struct region_set *set);

/* Whether the set has all that kernels with these arguments need. */
bool region_set_has(const struct region_set *set, struct memobj *const *objs, size_t count);

/* 0, or a negative errno, logged, if one of them cannot be bracketed any more. */
int region_set_check(const struct region_set *set);

/* Ends access to all of them; 0 or the first negative errno, logged. */
int region_set_end(const struct region_set *set);

#endif /* ICD_ACCESS_REGION_SET_H */
