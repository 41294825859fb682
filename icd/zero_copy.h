/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which memory CL_MEM_USE_HOST_PTR is zero copy for, on a device that passed its self-test.
 *
 * A driver may decide by the kind of memory, by what kernels do with it, by its alignment and by
 * its size.  So the proof is for a class of these, made at the class's first import, on memory of
 * climport's own, with the least and the largest size of the class.  A class of which climport
 * can make no memory, or in which the two sizes differ, is proved import by import: on a CPU
 * device, where the address that a kernel sees is the host's or it is not.  Other devices take
 * none of it.
 */
#ifndef ICD_ZERO_COPY_H
#define ICD_ZERO_COPY_H

#include <stdbool.h>
#include <stddef.h>

#include "cl_compat.h"
#include "context.h"

struct zero_copy; /* what is proved on one device */

struct zero_copy *zero_copy_create(void);
void zero_copy_destroy(struct zero_copy *proofs);

/**
 * zero_copy_prove - is memory like this zero copy on every device of a context?
 * @kinds: a bit for each enum import_kind that is in the memory
 * @access: enum import_access, of kernels
 * @each: set if only the buffer itself can be proved: zero_copy_prove_buffer()
 *
 * Where the class is known this takes no lock.  Returns CL_SUCCESS or an error, logged.
 */
cl_int zero_copy_prove(const struct context *context, unsigned int kinds, unsigned int access,
		       const void *addr, size_t size, bool *each);

/* A buffer over memory at @addr that nobody uses yet.  None of the memory is changed. */
cl_int zero_copy_prove_buffer(const struct context *context, cl_mem buffer, const void *addr);

/* The same question for 2D images. */
cl_int zero_copy_prove_image(const struct context *context, unsigned int kinds,
			     unsigned int access);

#endif /* ICD_ZERO_COPY_H */
