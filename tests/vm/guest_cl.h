/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OpenCL for the guest's tests: a context with a device, and kernels that read and write every byte
 * of an import.  A failed call ends the test.
 */
#ifndef TESTS_VM_GUEST_CL_H
#define TESTS_VM_GUEST_CL_H

#include <CL/cl.h>
#include <stddef.h>

/* Each kernel changes every byte by an XOR with KEY: a byte that the kernel left out shows. */
enum { GUEST_CL_KEY = 0x5a };

/* For tests that make calls themselves.  The program has the kernel transform(from, to). */
struct guest_cl {
	cl_platform_id platform;
	cl_device_id device;
	cl_context context;
	cl_command_queue queue;
	cl_program program;
};
const struct guest_cl *guest_cl_session(void);

/* Imports the dma-buf with the import type as only property. */
cl_mem guest_cl_import(int fd, size_t size, cl_mem_flags flags);

/* Imports the dma-buf without host consistency: the application keeps the CPU's view consistent. */
cl_mem guest_cl_import_inconsistent(int fd, size_t size, cl_mem_flags flags);

/* The error of an import that must fail. */
cl_int guest_cl_import_error(int fd, size_t size, cl_mem_flags flags);

/*
 * Makes a buffer of the dma-buf by cl_khr_external_memory_dma_buf: guest_cl_acquire() and guest_cl_release() stand around
 * its kernels.  The release waits for the memory to be the producer's again.
 */
cl_mem guest_cl_external(int fd, size_t size, cl_mem_flags flags);
void guest_cl_acquire(cl_mem mem);
void guest_cl_release(cl_mem mem);

/* Creates a buffer of the driver's own, without an import.  @bytes may be NULL. */
cl_mem guest_cl_native(size_t size, const void *bytes);
void guest_cl_native_read(cl_mem native, void *bytes, size_t size);

/* Runs a kernel, to[i] = from[i] ^ KEY, and waits.  @size is a multiple of 64. */
void guest_cl_transform(cl_mem from, cl_mem to, size_t size);

/* Starts the kernel of guest_cl_transform() and never blocks; guest_cl_transform_end() waits. */
cl_event guest_cl_transform_begin(cl_mem from, cl_mem to, size_t size);
int guest_cl_is_complete(cl_event event);
void guest_cl_transform_end(cl_event event);

/*
 * Creates an image of RGBA, 8 bits unsigned, on a buffer.  Without a buffer (NULL, pitch 0) the
 * driver allocates the memory.
 */
cl_mem guest_cl_image(cl_mem buffer, cl_mem_flags flags, size_t width, size_t height, size_t pitch);

/*
 * Runs a kernel as guest_cl_transform() does, from and to the pixels of an image.  @width is a
 * multiple of 16.
 */
void guest_cl_transform_from_image(cl_mem image, cl_mem to, size_t width, size_t height);
void guest_cl_transform_to_image(cl_mem from, cl_mem image, size_t width, size_t height);

cl_mem guest_cl_sub_buffer(cl_mem buffer, cl_mem_flags flags, size_t origin, size_t size);
cl_mem_flags guest_cl_flags(cl_mem mem);

#endif
