/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory objects that are made from imports: sub-buffers and images.  Such an object is an import,
 * too: the same calls are forbidden on it, and a read-only dma-buf makes it read-only.
 *
 * A call that goes to the driver unchanged gives what the driver gave, handle and error.
 */
#ifndef ICD_CALLS_DERIVE_H
#define ICD_CALLS_DERIVE_H

#include "icd/objects/memobj_watch.h"

/* Records @mem as made from @parent.  If that fails, @mem is released and NULL returned. */
cl_mem derive_record(cl_mem mem, struct memobj *parent, size_t origin, bool hides_parent,
		     cl_int *err);

/*
 * The same for an object whose parent the driver does not know: the object holds the region, and
 * keeps its parent alive.
 */
cl_mem derive_hidden(cl_mem mem, struct memobj *parent, size_t origin, cl_int *err);

/* Tells the callback of the parent's context that @function fails with @err; 0: nothing. */
void derive_notify(const struct memobj *parent, const char *function, cl_int err);

/* What the driver's @function gave for the layer's own use: an object, or NULL and an error. */
cl_mem derive_own(const char *function, cl_mem mem, cl_int *err);

/* The mode of a dma-buf's descriptor takes precedence over the flags of what is made from it. */
cl_mem_flags derive_flags(const struct import_region *region, cl_mem_flags flags);

#endif /* ICD_CALLS_DERIVE_H */
