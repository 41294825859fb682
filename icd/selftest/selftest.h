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

struct device;
struct method_ops;

enum tested {
	UNTESTED, /* the test could not run, for want of memory perhaps */
	PASSED,
	FAILED,	   /* the data was wrong */
	BROKEN,	   /* the driver refuses something, today at least */
	NO_SAMPLE, /* climport can make no such memory */
};

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

/* Errors of the moment say nothing about the device. */
bool selftest_is_transient(cl_int err);

/*
 * Finds a rule of images.  False: it could not be tested now.
 * @ops: makes the buffers
 * @number: IMAGE_RULE(): which
 */
bool selftest_image(const struct device *device, const struct method_ops *ops, unsigned int number,
		    struct image_rule *rule);

/* A dma-buf of climport's own, of whole pages, which the CPU has mapped.  As import_sample_kind(). */
int selftest_sample_dmabuf(size_t size, struct import_region **region);

/* Whether commands can wait for user events on a device. */
enum tested selftest_user_event(cl_device_id device);

#endif /* ICD_SELFTEST_SELFTEST_H */
