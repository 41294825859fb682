/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CL_MEM_USE_HOST_PTR, where it is proved to be zero copy.  The specification
 * lets a driver cache the memory, so only the self-test decides.
 */
#include <stdint.h>
#include <stdio.h>

#include "driver.h"
#include "import/log.h"
#include "layer.h"
#include "selftest.h"

static bool host_ptr_test(const struct device *device, struct way *way)
{
	enum tested found;

	if (device_version(device->id) < CL_MAKE_VERSION(1, 1, 0)) {
		snprintf(way->why, sizeof(way->why),
			 "OpenCL 1.0 does not tell when a buffer's memory may go");
		return false;
	}
	found = selftest_host_ptr(device->id, &way->align, way->why, sizeof(way->why));
	way->untested = found == UNTESTED;
	return found == PASSED;
}

/* To be kept consistent, dma-bufs need commands that wait for user events (access.h). */
static bool bracket_test(const struct device *device, struct way *way)
{
	enum tested found = selftest_user_event(device->id);

	way->untested = found == UNTESTED;
	if (found != PASSED)
		snprintf(way->why, sizeof(way->why),
			 "commands that wait for user events %s on this device, so dma-bufs cannot "
			 "be kept consistent",
			 found == FAILED ? "do not work" : "could not be tested");
	return found == PASSED;
}

/* A mapped dma-buf is taken as the memory that it is mapped to: one test serves both. */
static bool host_ptr_probe(const struct device *device, const char *extensions,
			   enum import_type type, struct way *way)
{
	(void)extensions;
	if (type == IMPORT_HOST)
		return host_ptr_test(device, way);
	if (device->way[IMPORT_HOST].ops && device->way[IMPORT_HOST].ops != &driver_host_ptr_ops) {
		if (!host_ptr_test(device, way))
			return false;
	} else {
		*way = device->way[IMPORT_HOST];
		way->ops = NULL;
		if (!device->way[IMPORT_HOST].ops)
			return false;
	}
	return bracket_test(device, way);
}

static cl_int host_ptr_create(cl_context context, cl_mem_flags flags, struct import_region *region,
			      struct built *built)
{
	cl_int err = CL_SUCCESS;

	if (!region->addr) {
		log_error("the dma-buf has no CPU mapping");
		return CL_INVALID_OPERATION;
	}
	built->handle = next.clCreateBuffer(context, flags | CL_MEM_USE_HOST_PTR, region->size,
					    region->addr, &err);
	if (is_created(built->handle, err))
		return CL_SUCCESS;
	log_error("the driver makes no buffer of %zu bytes: error %d", region->size, err);
	return err ? err : CL_OUT_OF_RESOURCES;
}

const struct driver_ops driver_host_ptr_ops = {
	.name = "host_ptr",
	.probe = host_ptr_probe,
	.create = host_ptr_create,
};
