/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels for the tests.  Each function runs a kernel on spec.queue and returns when the kernel has
 * finished, without a map or a read of the memory: only plain loads by the host can see the bytes
 * of the kernel.
 */
#ifndef TESTS_SPEC_KERNELS_H
#define TESTS_SPEC_KERNELS_H

#include "spec.h"

/* mem[i] += value for i in 0, stride, 2 * stride .. size - 1 */
void kernels_add(cl_mem mem, size_t size, size_t stride, cl_uint value);

/* Likewise with stride 1, and ignores errors of the kernel. */
void kernels_try_add(cl_mem mem, size_t size, cl_uint value);

/* Enqueues kernels_add() behind @wait and returns at once; *done is the event of the kernel. */
void kernels_add_after(cl_mem mem, size_t size, cl_uint value, cl_event wait, cl_event *done);

/* Likewise kernels_copy(). */
void kernels_copy_after(cl_mem from, cl_mem to, size_t size, cl_event wait, cl_event *done);

/* to[i] = from[i] for i < size */
void kernels_copy(cl_mem from, cl_mem to, size_t size);

/* to[i] = from[i - below] for i < size: @below bytes before the buffer and what is behind, too. */
void kernels_copy_around(cl_mem from, size_t below, cl_mem to, size_t size);

/* Images of CL_RGBA, CL_UNSIGNED_INT8; the buffer holds their pixels without padding. */
void kernels_image_to_buffer(cl_mem image, cl_mem buffer, size_t width, size_t height);
void kernels_buffer_to_image(cl_mem buffer, cl_mem image, size_t width, size_t height);
void kernels_image1d_to_buffer(cl_mem image, cl_mem buffer, size_t width);
void kernels_buffer_to_image1d(cl_mem buffer, cl_mem image, size_t width);

/* Enqueues kernels_image_to_buffer() of the first pixel behind @wait, and returns at once. */
void kernels_pixel_after(cl_mem image, cl_mem buffer, cl_event wait);

/*
 * Expects the device to use @memory as @mem: kernel and host change the bytes in turns, several
 * times, and each side sees every change of the other side.
 */
void expect_shared(cl_mem mem, unsigned char *memory, size_t size);

/* Likewise for memory that kernels only read, or only write. */
void expect_read_by_device(cl_mem mem, unsigned char *memory, size_t size);
void expect_written_by_device(cl_mem mem, const unsigned char *memory, size_t size);

/* A kernel of the suite's program, released after the test; skips without a compiler. */
cl_kernel kernels_create(const char *name);

/* Likewise, from a program for all devices of @context. */
cl_kernel kernels_create_in(cl_context context, const char *name);

/* kernels_add() by a kernel of kernels_create_in() on a queue of the kernel's context. */
void kernels_add_with(cl_kernel add, cl_command_queue queue, cl_mem mem, size_t size,
		      cl_uint value);

/* A kernel for the calling thread, which releases the kernel.  NULL on failure; no EXPECT. */
cl_kernel kernels_create_plain(const char *name);

/* Plain buffers of spec.context, released after the test. */
cl_mem plain_buffer(size_t size);
void plain_write(cl_mem buffer, const void *from, size_t size);
void plain_read(cl_mem buffer, void *to, size_t size);

void kernels_close(void);

#endif /* TESTS_SPEC_KERNELS_H */
