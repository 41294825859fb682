/* SPDX-License-Identifier: Apache-2.0 */
/* Objects that hold their parent until the driver has destroyed them, though the driver knows no parent. */
#ifndef ICD_OBJECTS_MEMOBJ_WATCH_H
#define ICD_OBJECTS_MEMOBJ_WATCH_H

#include "icd/objects/memobj.h"

/**
 * memobj_watch_part - hold the driver's object of @parent, and so its memory, until the driver has
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
 * What the driver ends inside of the call lets go of the parent before the return, unless the idle thread is at it.
 *
 * Returns the driver's error.
 */
cl_int memobj_watch_release(cl_mem mem);

#endif /* ICD_OBJECTS_MEMOBJ_WATCH_H */
