/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ways a driver takes memory, best first.  A new one is a file that defines
 * such a table and a row for it in driver.c.
 *
 * There is no way that copies: where no row fits, the import is an error.
 */
#ifndef ICD_DRIVER_H
#define ICD_DRIVER_H

#include "device.h"

struct driver_ops {
	const char *name;

	/*
	 * Whether a device takes memory of a type this way.  Sets way->align
	 * and way->why when it does, way->why when it does not.
	 * @extensions: the driver's own extension string; may be NULL
	 */
	bool (*probe)(const struct device *device, const char *extensions, enum import_type type,
		      struct way *way);

	/*
	 * A buffer over a region.  @flags are valid and hold no CL_MEM_USE_HOST_PTR.
	 * NULL in a row that is the driver's own clImportMemoryARM.
	 */
	cl_mem (*create)(cl_context context, cl_mem_flags flags, const struct import_region *region,
			 cl_int *err);
};

extern const struct driver_ops driver_native_ops;
extern const struct driver_ops driver_host_ptr_ops;

/* Fills device->way.  Runs self-tests. */
void driver_probe(struct device *device, const char *extensions);

#endif /* ICD_DRIVER_H */
