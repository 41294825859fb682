/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The regions of a command that need a bracket, each once, with the access for the kernel.
 */
#ifndef ICD_ACCESS_REGION_SET_H
#define ICD_ACCESS_REGION_SET_H

#include "icd/objects/memobj.h"

/* A set of so few regions needs no memory. */
#define REGION_SET_FEW 4

/* Not to be moved. */
struct region_set {
	size_t count;
	struct import_region **regions; /* few, or memory */
	unsigned int *access;		/* enum import_access of each */
	const struct memobj *import;	/* of the first region; borrowed, NULL in a held set */
	struct import_region *few_regions[REGION_SET_FEW];
	unsigned int few_access[REGION_SET_FEW];
};

/**
 * region_set_add_all - collect the regions of objects, borrowed
 * @objs: @count records; NULL, and objects that need no bracket, are skipped
 * @by_host: the access is all that the memory permits, not what its flags say of kernels
 *
 * Returns false without memory, logged.  Undone by region_set_free().
 */
bool region_set_add_all(struct region_set *set, struct memobj *const *objs, size_t count,
			bool by_host);
void region_set_free(struct region_set *set);

/* A set that holds the regions of @set.  False: no memory, logged.  Undone by region_set_put(). */
bool region_set_hold(struct region_set *held, const struct region_set *set);
void region_set_put(struct region_set *set);

bool region_set_has(const struct region_set *set, const struct import_region *region);

/* Whether @set has all regions of @part, with their access. */
bool region_set_covers(const struct region_set *set, const struct region_set *part);

/* 0; or a negative errno, logged: a region can no longer be bracketed. */
int region_set_check(const struct region_set *set);

/* Ends access to all regions; 0 or the first negative errno, logged. */
int region_set_end(const struct region_set *set);

#endif /* ICD_ACCESS_REGION_SET_H */
