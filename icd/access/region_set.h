/* SPDX-License-Identifier: Apache-2.0 */
/* The regions of a bracket, each once and held, with the access of its commands. */
#ifndef ICD_ACCESS_REGION_SET_H
#define ICD_ACCESS_REGION_SET_H

#include "icd/objects/memobj.h"

struct region_set {
	size_t count;
	struct import_region **regions; /* the caller's, as @access: room for all */
	unsigned int *access;		/* enum import_access of each */
};

/* Holds the regions of imports.  @by_host: ACCESS_BY_HOST.  Undone by region_set_put(). */
void region_set_init(struct region_set *set, const struct memobj_list *imports, bool by_host);
void region_set_put(struct region_set *set);

/* Whether @set has a region, with an access. */
bool region_set_serves(const struct region_set *set, const struct import_region *region,
		       unsigned int access);

/* Whether @set has the regions of all imports, with the access of kernels. */
bool region_set_covers(const struct region_set *set, const struct memobj_list *imports);

/* 0; or a negative errno, logged: a region can no longer be bracketed. */
int region_set_check(const struct region_set *set);

/* Access to all regions has begun, and region_set_take() will end it. */
void region_set_leave(const struct region_set *set);

/* Keeps the regions to which access has begun so; an END without a START may undo what a device has written since. */
void region_set_take(struct region_set *set);

/* Ends access to all regions; 0 or the first negative errno, logged. */
int region_set_end(const struct region_set *set);

#endif /* ICD_ACCESS_REGION_SET_H */
