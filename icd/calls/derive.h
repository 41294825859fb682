/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory objects that are made from imports: sub-buffers and images.  Such an object is an import,
 * too: the extension forbids the same calls, and objects from a read-only dma-buf are read-only.
 *
 * A call that goes to the driver unchanged returns handle and error of the driver.
 */
#ifndef ICD_CALLS_DERIVE_H
#define ICD_CALLS_DERIVE_H

#include "icd/objects/memobj.h"

/* Records @mem as made from @parent.  On failure @mem is released and NULL returned. */
cl_mem derive_record(cl_mem mem, struct memobj *parent, size_t origin, bool hides_parent,
		     cl_int *err);

/* Tells the callback of the parent's context that @function fails with @err; 0: nothing. */
void derive_notify(const struct memobj *parent, const char *function, cl_int err);

/*
 * The mode of a dma-buf's descriptor takes precedence over the flags of derived objects.
 * CL_MEM_WRITE_ONLY stays, and does not fit the import's CL_MEM_READ_ONLY.
 */
cl_mem_flags derive_flags(const struct import_region *region, cl_mem_flags flags);

#endif /* ICD_CALLS_DERIVE_H */
