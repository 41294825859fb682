/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Self-tests: is a method zero copy on a device?  Data alone decides: a self-test maps, reads and
 * writes nothing through OpenCL.
 *
 * A self-test makes all objects of its own, and leaves nothing behind.  A driver may not survive: self-tests run in
 * climport-probe.
 */
#ifndef ICD_SELFTEST_SELFTEST_H
#define ICD_SELFTEST_SELFTEST_H

#include <stdbool.h>
#include <stddef.h>

#include "icd/cl_compat.h"
#include "icd/facts/host_rule.h"
#include "icd/facts/image_rule.h"
#include "import/import.h"

enum tested {
	UNTESTED, /* the test could not run, for want of memory perhaps */
	PASSED,
	FAILED,	   /* the data was wrong */
	BROKEN,	   /* the driver refuses something, today at least */
	NO_SAMPLE, /* climport can make no such memory */
};

/* Whether a device runs no native kernels, so the tests have to be compiled. */
bool selftest_needs_compiler(cl_device_id device);

/**
 * selftest_host_rule - find the rule under which host pointers are zero copy
 * @rule: set; without PASSED the align is 0
 * @why: set to a sentence, with the result or the reason
 *
 * The test makes two buffers over shared memory.  A kernel writes through the first buffer and
 * reads through the second: a driver with copies around each kernel fails.  The host changes the
 * memory and looks at the memory, after the first use as well.
 */
enum tested selftest_host_rule(cl_device_id device, struct host_rule *rule, char *why, size_t size);

#define SELFTEST_PLACES 3

/* Memory of any kind, and buffers of a method over the memory. */
struct selftest_memory {
	volatile unsigned char *bytes; /* the memory, for the host */
	size_t at[SELFTEST_PLACES];    /* offsets, of four bytes each, for the test; 0, if apart */

	/*
	 * Creates a buffer.  The memory outlives the buffer, also after an error.  The kernel
	 * writes through the first of the two buffers and, unless write_only, reads through the
	 * second, the @reader.
	 */
	cl_mem (*create)(cl_context context, bool reader, void *arg, cl_int *err);

	/* NULL, or called after a write of the host and before a kernel runs. */
	cl_int (*begin)(void *arg);

	/* NULL, or called when the kernels are done, and before the host reads. */
	cl_int (*end)(void *arg);

	/* With apart: NULL, or enqueues a command before (@begins) and behind the kernels. */
	cl_int (*edge)(cl_command_queue queue, bool begins, const cl_mem buffers[2], void *arg);

	unsigned int rounds;
	bool write_only; /* the kernel writes through both buffers and does not read */

	/*
	 * Each buffer has a kernel of its own.  A GPU with two buffers at different addresses
	 * does not order accesses by both (PTX ISA: "virtual aliases").  A driver with copies
	 * around each kernel passes then.
	 */
	bool apart;
	void *arg;
};

/*
 * Runs the rounds in the calling thread, on each device of a context of @devices.  Returns 1: zero
 * copy, 0: not, or an error of OpenCL.
 */
cl_int selftest_memory(const cl_device_id *devices, cl_uint num_devices,
		       const struct selftest_memory *memory);

/* Errors of the moment say nothing about the device. */
bool selftest_is_transient(cl_int err);

/* How a method makes the memory and the buffers of tests of images.  Static storage. */
struct selftest_image_ops {
	/* As import_sample_kind(). */
	int (*sample)(const struct import_sample_want *want, struct import_region **region);
	/* A buffer over all of the region, which is held until the driver has destroyed the buffer. */
	cl_mem (*create_buffer)(cl_context context, cl_mem_flags flags,
				struct import_region *region, cl_int *err);
	/* Enqueues a command before (@begins) and behind the kernel on two buffers. */
	cl_int (*edge)(cl_command_queue queue, bool begins, const cl_mem buffers[2]);
};

struct selftest_image {
	cl_device_id device;
	const struct selftest_image_ops *ops; /* NULL: host memory, CL_MEM_USE_HOST_PTR */
	size_t align;	     /* bytes: of addresses that the device's buffers take */
	bool own_address;    /* struct host_rule: there is nothing to copy to */
	unsigned int number; /* IMAGE_RULE(): what to test */
};

/* Finds the rule of images that is asked for.  False: it could not be tested now. */
bool selftest_image(const struct selftest_image *asked, struct image_rule *rule);

/* Whether commands can wait for user events on a device. */
enum tested selftest_user_event(cl_device_id device);

#endif /* ICD_SELFTEST_SELFTEST_H */
