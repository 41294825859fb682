/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which memory CL_MEM_USE_HOST_PTR is zero copy for, on a device that passed its self-test.
 *
 * A driver may decide by the kind of memory, by what kernels and the host do with it, by its
 * alignment, by its size, and by the devices of the context.  So the proof is for a class of
 * these, made at the class's first import, on memory of climport's own, with the least size of the
 * class and with the import's.  A larger import of the class is proved again, at its size: no test
 * takes more memory than the application imports.
 *
 * A class of which climport can make no memory, or of which some sizes are copied, is proved
 * import by import: on CPU devices, where the address that a kernel sees is the host's or it is
 * not.  Other devices take none of it.
 */
#ifndef ICD_METHODS_HOST_PTR_ZERO_COPY_H
#define ICD_METHODS_HOST_PTR_ZERO_COPY_H

#include <stdbool.h>
#include <stddef.h>

#include "icd/cl_compat.h"
#include "icd/objects/context.h"

struct zero_copy; /* what is proved for contexts of some root devices */

/* @devices: records that stay.  Sub-devices have their root device's; each counts once. */
struct zero_copy *zero_copy_create(const struct device *const *devices, size_t count);
void zero_copy_destroy(struct zero_copy *proofs);

/* Whether it is no device's. */
bool zero_copy_is_of_several(const struct zero_copy *proofs);

/**
 * zero_copy_prove - is memory like this zero copy on every device of a context?
 * @kinds: a bit for each enum import_kind that is in the memory
 * @flags: of the buffer, CL_MEM_USE_HOST_PTR apart
 * @each: set if only the buffer itself can be proved: zero_copy_prove_buffer()
 *
 * Where the class is known this takes no lock.  Returns CL_SUCCESS or an error, logged.
 */
cl_int zero_copy_prove(struct context *context, unsigned int kinds, cl_mem_flags flags,
		       const void *addr, size_t size, bool *each);

/* A buffer over memory at @addr that nobody uses yet.  None of the memory is changed. */
cl_int zero_copy_prove_buffer(const struct context *context, cl_mem buffer, const void *addr);

/*
 * The same question for a 2D image of @format and @desc over memory at @addr.  Images have classes
 * of their own: by the kind of memory, the flags, the format, the magnitude of width, height and
 * pitch, and the address's alignment.
 */
cl_int zero_copy_prove_image(struct context *context, unsigned int kinds, cl_mem_flags flags,
			     const cl_image_format *format, const cl_image_desc *desc,
			     const void *addr);

#endif /* ICD_METHODS_HOST_PTR_ZERO_COPY_H */
