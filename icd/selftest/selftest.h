/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Is a way to take memory zero copy on a device?  Judged by data alone: nothing is mapped, read
 * or written through OpenCL.
 *
 * The tests make what they need and leave nothing behind.  Each runs as a job (job.h): a driver
 * that never answers holds a thread of climport's, not its caller.
 */
#ifndef ICD_SELFTEST_SELFTEST_H
#define ICD_SELFTEST_SELFTEST_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "icd/cl_compat.h"
#include "import/import.h"

enum tested {
	UNTESTED, /* it could not run this time, for want of memory perhaps */
	PASSED,
	FAILED,	   /* the data was wrong */
	BROKEN,	   /* the driver refuses something, today at least */
	HUNG,	   /* it did not end: not to be tried again in this process */
	NO_SAMPLE, /* climport can make no memory of that kind and size */
};

/* Whether the tests have to be compiled for a device: it runs no native kernels. */
bool selftest_needs_compiler(cl_device_id device);

/**
 * selftest_host_ptr - test buffers over anonymous memory
 * @align: set to the alignment in bytes of pointers and sizes that passed: 1, 64
 *	or a page
 * @why: set to a sentence, with the result or the reason
 *
 * Two buffers over the same memory.  A kernel writes through one and reads
 * through the other: a driver that copies around each kernel fails that.  The
 * host changes the memory and looks at it, after the first use as well.
 */
enum tested selftest_host_ptr(cl_device_id device, size_t *align, char *why, size_t size);

#define SELFTEST_PLACES 3

/* Memory of any kind, and how a way makes buffers over it. */
struct selftest_memory {
	volatile unsigned char *bytes; /* the memory, for the host */
	size_t at[SELFTEST_PLACES];    /* four bytes from each of these are used; 0, if apart */

	/*
	 * A buffer; the memory outlives it, also after an error.  Of the two the kernel writes
	 * through the first and, unless write_only, reads through the second, the @reader.
	 */
	cl_mem (*create)(cl_context context, bool reader, void *arg, cl_int *err);

	/* NULL, or what is done after the host wrote and before a kernel runs. */
	cl_int (*invalidate)(cl_context context, void *arg);

	/* NULL, or gives up what refresh() keeps for the context. */
	void (*finish)(cl_context context);
	unsigned int rounds;
	bool write_only; /* the kernel writes through both buffers and reads none */

	/*
	 * Each buffer in a kernel of its own.  A GPU that maps them at different addresses does
	 * not order accesses by both (PTX ISA: "virtual aliases").  A driver that copies around
	 * each kernel passes then.
	 */
	bool apart;
	void *arg;
};

/* The same rounds for it, here and now.  Returns 1: zero copy, 0: not, or an error of OpenCL. */
cl_int selftest_memory(cl_device_id device, const struct selftest_memory *memory);

/* Memory like an import: see zero_copy.h. */
struct selftest_part {
	enum import_kind kind;
	cl_mem_flags flags; /* of the buffer: what kernels do, and what the host may */
	size_t offset;	    /* from a page */
	size_t size;
	bool is_sparse; /* the devices touch no pages but those that kernels do */
};

/*
 * A context with a queue and a program, which takes long to make where that is compiled.  One
 * test uses it at a time.  NULL: none is kept.
 */
struct session;

struct selftest_kept {
	struct session *_Atomic session;
};

/* Releases what is kept. */
void selftest_drop(struct selftest_kept *kept);

/**
 * selftest_part - the same test of buffers over such memory
 * @devices: the context's; the test runs on each
 * @kept: for these devices alone; used and filled where the test is compiled
 */
enum tested selftest_part(const cl_device_id *devices, cl_uint num_devices,
			  const struct selftest_part *part, struct selftest_kept *kept);

/*
 * Whether kernels see the address of the host for a buffer of the application: on a CPU device
 * that is zero copy.  The memory is not touched.
 */
enum tested selftest_address(cl_device_id device, cl_mem buffer, const void *addr);

/* Errors of the moment say nothing about the device. */
bool selftest_is_transient(cl_int err);

/* A 2D image, and the memory that it is over. */
struct selftest_image {
	enum import_kind kind;
	cl_mem_flags flags; /* of the image */
	cl_image_format format;
	size_t width, height, pitch; /* the pitch in bytes, not 0 */
	size_t offset;		     /* of the memory, from a page */
	bool is_sparse;		     /* as in struct selftest_part */
};

/* 2D images like one, in a context of all these devices, on each. */
enum tested selftest_image(const cl_device_id *devices, cl_uint num_devices,
			   const struct selftest_image *image);

/* Whether commands can wait for user events on a device. */
enum tested selftest_user_event(cl_device_id device);

#endif /* ICD_SELFTEST_SELFTEST_H */
