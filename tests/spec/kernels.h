/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device work of the tests.  All run on spec.queue and have finished when they
 * return, without a map or a read of the memory: what they wrote is seen by
 * plain loads of the host, or not at all.
 */
#ifndef TESTS_SPEC_KERNELS_H
#define TESTS_SPEC_KERNELS_H

#include "spec.h"

/* mem[i] += value for i in 0, stride, 2 * stride .. size - 1 */
void kernels_add(cl_mem mem, size_t size, size_t stride, cl_uint value);

/* kernels_add() that waits for @wait; returns without waiting, with its event in *done. */
void kernels_add_after(cl_mem mem, size_t size, cl_uint value, cl_event wait, cl_event *done);

/* to[i] = from[i] for i < size */
void kernels_copy(cl_mem from, cl_mem to, size_t size);

/* Images of CL_RGBA, CL_UNSIGNED_INT8; the buffer holds their pixels without padding. */
void kernels_image_to_buffer(cl_mem image, cl_mem buffer, size_t width, size_t height);
void kernels_buffer_to_image(cl_mem buffer, cl_mem image, size_t width, size_t height);
void kernels_image1d_to_buffer(cl_mem image, cl_mem buffer, size_t width);
void kernels_buffer_to_image1d(cl_mem buffer, cl_mem image, size_t width);

/* kernels_image_to_buffer() of the first pixel, that waits for @wait; returns without waiting. */
void kernels_pixel_after(cl_mem image, cl_mem buffer, cl_event wait);

/*
 * That @memory is what the device uses as @mem: kernel and host change it in
 * turns and each sees what the other wrote, also after the first use.
 */
void expect_shared(cl_mem mem, unsigned char *memory, size_t size);

/* The same for memory that kernels only read, and that they only write. */
void expect_read_by_device(cl_mem mem, unsigned char *memory, size_t size);
void expect_written_by_device(cl_mem mem, const unsigned char *memory, size_t size);

/* A kernel of the suite's program, released after the test; skips without a compiler. */
cl_kernel kernels_create(const char *name);

/* The same, of a program for all devices of another context. */
cl_kernel kernels_create_in(cl_context context, const char *name);

/* kernels_add() with such a kernel and a queue of its context, stride 1. */
void kernels_add_with(cl_kernel add, cl_command_queue queue, cl_mem mem, size_t size,
		      cl_uint value);

/* The calling thread's own; the caller releases it.  NULL on failure, never ends the test. */
cl_kernel kernels_create_plain(const char *name);

/* Plain buffers of spec.context, released after the test. */
cl_mem plain_buffer(size_t size);
void plain_write(cl_mem buffer, const void *from, size_t size);
void plain_read(cl_mem buffer, void *to, size_t size);

void kernels_close(void);

#endif /* TESTS_SPEC_KERNELS_H */
