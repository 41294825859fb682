/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How coherent a device is with memory from opaque descriptors: the result of a self-test, for
 * each exporter of descriptors.  The self-test takes about a second on a GPU and loads the
 * exporters' libraries.  A positive result is kept in the result cache for the device and driver,
 * so later programs do not run the self-test.
 */
#ifndef ICD_METHODS_OPAQUE_FD_COHERENCY_H
#define ICD_METHODS_OPAQUE_FD_COHERENCY_H

#include <stdbool.h>
#include <stdint.h>

#include "icd/cl_compat.h"
#include "import/import.h"

/* The numbers are kept in the result cache. */
enum coherency {
	EXPORTS_NOTHING = 0, /* no exporter, or no descriptor of host memory */
	COPIES = 1,	     /* the device does not see the host's memory */
	COHERENT = 2,	     /* zero copy */
};

#define COHERENCY_HANGS (-1) /* in the result cache: the self-test did not end */

#define COHERENCY_WHY_SIZE 192 /* bytes, as in struct method */

struct opaque_coherency {
	cl_device_id device;
	enum coherency of[IMPORT_EXPORTERS]; /* by unsigned int */
	bool is_known[IMPORT_EXPORTERS];     /* false: not tested, for want of memory perhaps */
	bool hangs[IMPORT_EXPORTERS];	     /* unknown: the self-test did not end */
	bool has_uuid;
	unsigned char uuid[IMPORT_UUID_SIZE];
	size_t align;	  /* bytes: CL_DEVICE_MEM_BASE_ADDR_ALIGN */
	uint64_t largest; /* bytes: CL_DEVICE_MAX_MEM_ALLOC_SIZE */
};

struct device;

/*
 * False if the result of an exporter is unknown: for want of memory perhaps, because the self-test
 * did not end, or because no result is kept and the device's tests may not compile.  @coherency then
 * has the other exporters' results.  What is known is not tested again, and what is unknown once in
 * each attempt of the device.  Behind a self-test that hangs no other exporter is tested.  Any thread.
 */
bool coherency_get(const struct device *device, struct opaque_coherency *coherency);

/* What the last coherency_get() of the device has found; without an earlier one, what this one finds. */
void coherency_get_last(const struct device *device, struct opaque_coherency *coherency);

/* Whether the self-test of an exporter did not end, in this attempt or less than an hour ago. */
bool coherency_hangs(const struct opaque_coherency *coherency);

/* A sentence with all results, for memory of a type. */
void coherency_explain(const struct opaque_coherency *coherency, enum import_type type,
		       char why[COHERENCY_WHY_SIZE]);

/* The exporters whose memory the device takes without a copy: a bit for each. */
unsigned int coherency_exporters(const struct opaque_coherency *coherency);

#endif /* ICD_METHODS_OPAQUE_FD_COHERENCY_H */
