/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Is a way to take memory zero copy on a device?  Judged by data alone: nothing
 * is mapped, read or written through OpenCL.
 *
 * The tests make what they need and leave nothing behind.
 */
#ifndef ICD_SELFTEST_H
#define ICD_SELFTEST_H

#include <stdbool.h>
#include <stddef.h>

#include "cl_compat.h"

/* What a test found.  UNTESTED: it could not run this time, for want of memory perhaps. */
enum tested { UNTESTED, PASSED, FAILED };

/**
 * selftest_host_ptr - test buffers
 * @align: set to the alignment in bytes of pointers and sizes that passed: 1, 64
 *	or a page
 * @why: set to a sentence, with the result or the reason
 *
 * Two buffers over the same memory.  A kernel writes through one and reads
 * through the other: a driver that copies around each kernel fails that.  The
 * host changes the memory and looks at it, after the first use as well.
 */
enum tested selftest_host_ptr(cl_device_id device, size_t *align, char *why, size_t size);

/* Memory of any kind, and how a way makes buffers over it. */
struct selftest_memory {
	volatile unsigned char *bytes; /* the first four of the memory, for the host */

	/* A buffer; the memory outlives it, also after an error. */
	cl_mem (*create)(cl_context context, void *arg, cl_int *err);

	/* NULL, or what is done after the host wrote and before a kernel runs. */
	cl_int (*refresh)(cl_context context, void *arg);

	/* NULL, or gives up what refresh() keeps for the context. */
	void (*finish)(cl_context context);
	unsigned int rounds;

	/*
	 * Each buffer in a kernel of its own.  A GPU that maps them at different addresses does
	 * not order accesses by both (PTX ISA: "virtual aliases").  A driver that copies around
	 * each kernel passes then.
	 */
	bool apart;
	void *arg;
};

/* The same rounds for it.  Returns 1: zero copy, 0: not, or an error of OpenCL. */
cl_int selftest_memory(cl_device_id device, const struct selftest_memory *memory);

/* Errors of the moment say nothing about the device. */
bool selftest_is_passing(cl_int err);

/* The same for 2D images; every device of @context must pass. */
enum tested selftest_image_host_ptr(cl_context context);

/* Whether commands can wait for user events on a device.  Takes milliseconds. */
enum tested selftest_user_event(cl_device_id device);

#endif /* ICD_SELFTEST_H */
