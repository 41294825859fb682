/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Classes of buffers: by kind of memory, flags, alignment, and size to a power of two.
 *
 * The first import of a class tests two sizes, the least of the class and the import's own, on
 * memory no more aligned than the class.  A larger import of the class is tested again, at the
 * size of the import.  So no test takes more memory than the application imports.
 *
 * If climport can make no memory of a class, or if the driver copies some sizes of the class, then
 * each import is proved by itself, on CPU devices alone: a kernel there sees the host's address or
 * does not.  Other devices take no memory of such a class.
 */
#ifndef ICD_METHODS_HOST_PTR_BUFFER_CLASS_H
#define ICD_METHODS_HOST_PTR_BUFFER_CLASS_H

#include "icd/methods/host_ptr/class.h"
#include "icd/objects/context.h"

struct selftest_kept;

/**
 * buffer_class_prove - is such memory zero copy on every device?
 * @kinds: a bit for each enum import_kind of the memory
 * @flags: of the buffer, CL_MEM_USE_HOST_PTR apart
 * @kept: of the context
 * @each: set if only the buffer itself can be proved: buffer_class_prove_buffer()
 *
 * Takes no lock where the class is known.  Returns CL_SUCCESS or an error, logged.
 */
cl_int buffer_class_prove(struct zero_copy *proofs, struct selftest_kept *kept, unsigned int kinds,
			  cl_mem_flags flags, const void *addr, size_t size, bool *each);

/*
 * Whether each device of a context works on the memory at @addr through a new
 * buffer.  Does not change the memory.
 */
cl_int buffer_class_prove_buffer(const struct context *context, cl_mem buffer, const void *addr);

#endif /* ICD_METHODS_HOST_PTR_BUFFER_CLASS_H */
