/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What stands in for imports when the runner asks whether a fault is the driver's: ordinary buffers
 * over the same memory.  Before and after a kernel of kernels.h the bytes are copied to the buffer and
 * back, so a driver need not share memory to pass.
 */
#ifndef TESTS_SPEC_SUBSTITUTE_H
#define TESTS_SPEC_SUBSTITUTE_H

#include "opencl.h"

/* Like clImportMemoryARM(); a dma-buf is mapped. */
cl_mem CL_API_CALL substitute_import(cl_context context, cl_mem_flags flags,
				     const cl_import_properties_arm *properties, void *memory,
				     size_t size, cl_int *error);

/*
 * Copies the bytes of the memory to the buffer, and back.  @mem is a buffer of substitute_import(), or
 * was made from one; any other object is left alone.
 */
void substitute_give(cl_command_queue queue, cl_mem mem);
void substitute_take(cl_command_queue queue, cl_mem mem);

/* The bytes between the beginning of a page and the memory of the last buffer. */
size_t substitute_offset(size_t page);

#endif /* TESTS_SPEC_SUBSTITUTE_H */
