/* SPDX-License-Identifier: Apache-2.0 */
/* Objects that hold their parent until the driver has destroyed them, though the driver knows no parent. */
#ifndef ICD_OBJECTS_MEMOBJ_WATCH_H
#define ICD_OBJECTS_MEMOBJ_WATCH_H

#include "icd/objects/memobj.h"

/**
 * memobj_watched - @mem, which holds the driver's object of @parent, and so its memory, until the
 * driver has destroyed it, though the driver does not know the parent
 *
 * So the parent's destructor callbacks, the application's included, come when no command uses @mem
 * any more.
 *
 * Returns NULL if @mem is NULL, or is released, and @err is set.
 */
cl_mem memobj_watched(cl_mem mem, const struct memobj *parent, cl_int *err);

/**
 * memobj_watch_release - the application's release of an object that may be watched
 *
 * What the driver ends inside of the call lets go of its parent before the return.  No other object's parent goes.
 *
 * Returns the driver's error.
 */
cl_int memobj_watch_release(cl_mem mem);

#endif /* ICD_OBJECTS_MEMOBJ_WATCH_H */
