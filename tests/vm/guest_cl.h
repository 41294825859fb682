/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OpenCL for the guest's tests: one context with one device, and kernels that read and
 * write every byte of what was imported.  A call that fails ends the test.
 */
#ifndef TESTS_VM_GUEST_CL_H
#define TESTS_VM_GUEST_CL_H

#include <CL/cl.h>
#include <stddef.h>

/* What the kernels do to each byte, so that a byte not written does not pass. */
enum { GUEST_CL_KEY = 0x5a };

/* Imports the dma-buf with no property but its type. */
cl_mem guest_cl_import(int fd, size_t size, cl_mem_flags flags);

/* The same, where the application itself keeps the CPU's view consistent. */
cl_mem guest_cl_import_inconsistent(int fd, size_t size, cl_mem_flags flags);

/* The error of an import that has to fail. */
cl_int guest_cl_import_error(int fd, size_t size, cl_mem_flags flags);

/* An object of the driver's own, with nothing imported; @bytes may be NULL. */
cl_mem guest_cl_native(size_t size, const void *bytes);
void guest_cl_native_read(cl_mem native, void *bytes, size_t size);

/* to[i] = from[i] ^ KEY, by a kernel, and waits; @size is a multiple of 64. */
void guest_cl_transform(cl_mem from, cl_mem to, size_t size);

/* The same, and does not wait: begin never blocks, end waits for it. */
cl_event guest_cl_transform_begin(cl_mem from, cl_mem to, size_t size);
int guest_cl_is_complete(cl_event event);
void guest_cl_transform_end(cl_event event);

/* An image of RGBA, 8 bits unsigned, on a buffer; with NULL and no pitch, on its own. */
cl_mem guest_cl_image(cl_mem buffer, cl_mem_flags flags, size_t width, size_t height, size_t pitch);

/* The same as above, from and to the pixels of an image; @width is a multiple of 16. */
void guest_cl_transform_from_image(cl_mem image, cl_mem to, size_t width, size_t height);
void guest_cl_transform_to_image(cl_mem from, cl_mem image, size_t width, size_t height);

cl_mem guest_cl_sub_buffer(cl_mem buffer, cl_mem_flags flags, size_t origin, size_t size);
cl_mem_flags guest_cl_flags(cl_mem mem);

#endif
