/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a device is zero copy with memory from opaque descriptors: a self-test decides, for each exporter of
 * descriptors, since the exporter decides whether the device caches the memory.  It takes about a second on a GPU and
 * loads the exporters' libraries, in climport-probe.
 */
#ifndef ICD_METHODS_OPAQUE_FD_COHERENCY_H
#define ICD_METHODS_OPAQUE_FD_COHERENCY_H

#include <stdbool.h>

#include "icd/objects/device.h"
#include "util/publish.h"

/* The driver's answers. */
struct opaque_device {
	struct published published; /* first */
	cl_device_id id;
	unsigned char uuid[IMPORT_UUID_SIZE];
	size_t align;	  /* bytes: CL_DEVICE_MEM_BASE_ADDR_ALIGN */
	uint64_t largest; /* bytes: of a buffer */
};

/* Lives until the process ends.  NULL: no memory, or the device has no UUID, or does not tell it now. */
const struct opaque_device *opaque_device_get(const struct device *device);

/**
 * coherency_test - test a device with every exporter
 * @device: exporters are set
 * @method: why is set to a sentence with all results, for host memory; unknown, if one could not be tested now
 *
 * Whether an exporter is zero copy.
 */
bool coherency_test(struct device *device, struct method *method);

#endif /* ICD_METHODS_OPAQUE_FD_COHERENCY_H */
