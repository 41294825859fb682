/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that is held until the driver has destroyed an object.
 *
 * The driver alone knows when the last command that uses an object is done.  A destructor callback
 * says so, perhaps late, and on a thread of the driver.
 */
#ifndef ICD_OBJECTS_MEMOBJ_WATCH_H
#define ICD_OBJECTS_MEMOBJ_WATCH_H

#include "icd/objects/memobj.h"

/**
 * memobj_watch - hold a region until the driver has destroyed @mem
 * @destroyed: called with the region, and gives up a reference to it: memobj_destroyed(),
 *	or a function that calls memobj_destroyed() last
 *
 * Returns CL_SUCCESS or the driver's error; then nothing is held.
 */
cl_int memobj_watch(cl_mem mem, struct import_region *region,
		    void(CL_CALLBACK *destroyed)(cl_mem mem, void *region));

void CL_CALLBACK memobj_destroyed(cl_mem mem, void *region);

/**
 * memobj_watch_part - hold the memory and the driver's object of @parent until the driver has
 * destroyed @mem, whose parent the driver does not know
 *
 * So the parent's destructor callbacks, the application's included, come when no command uses @mem
 * any more.
 *
 * Returns CL_SUCCESS, or an error; then nothing is held.
 */
cl_int memobj_watch_part(cl_mem mem, const struct memobj *parent);

/**
 * memobj_watch_release - the application's release of an object that may be watched
 *
 * What the driver ends inside of the call lets go of memory and parent before the return.
 *
 * Returns the driver's error.
 */
cl_int memobj_watch_release(cl_mem mem);

/*
 * @mem, a buffer of a test's, which holds the region until the driver has destroyed it.  NULL: @mem is NULL, or is
 * released, and @err is set.
 */
cl_mem memobj_holding(cl_mem mem, struct import_region *region, cl_int *err);

#endif /* ICD_OBJECTS_MEMOBJ_WATCH_H */
