/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ways a driver takes memory, best first.  A new one is a file that defines
 * such a table and a row for it in method.c.
 *
 * There is no way that copies: where no row fits, the import is an error.
 */
#ifndef ICD_METHODS_METHOD_H
#define ICD_METHODS_METHOD_H

#include "icd/objects/context.h"
#include "icd/objects/device.h"

/* A buffer as the driver has it. */
struct built {
	cl_mem handle; /* what the application gets */
	cl_mem root;   /* NULL, or the buffer that the handle is a part of: hidden, referenced */
	size_t offset; /* of the handle in it */
};

struct method_ops {
	const char *name;

	/*
	 * Whether a device takes memory of a type this way.  Sets method->align
	 * and method->why when it does, method->why when it does not.
	 * @extensions: the driver's own extension string; may be NULL
	 */
	bool (*probe)(const struct device *device, const char *extensions, enum import_type type,
		      struct method *method);

	/*
	 * A buffer over a region that no other thread knows yet.  @flags are valid and hold
	 * no CL_MEM_USE_HOST_PTR.  NULL in a row that is the driver's own clImportMemoryARM.
	 */
	cl_int (*create)(cl_context context, cl_mem_flags flags, struct import_region *region,
			 struct built *built);

	/*
	 * NULL, or whether all devices of a context are proved to take memory like the region's,
	 * for a buffer of these @flags.  Before create.  @each: set if the buffer has to be proved
	 * itself, by prove_buffer.
	 */
	cl_int (*prove)(struct context *context, const struct import_region *region,
			cl_mem_flags flags, bool *each);
	cl_int (*prove_buffer)(const struct context *context, const struct import_region *region,
			       cl_mem buffer);

	/* It needs no CPU mapping of dma-bufs. */
	bool cpu_optional;
};

extern const struct method_ops method_native_ops;
extern const struct method_ops method_opaque_fd_ops;
extern const struct method_ops method_host_ptr_ops;

/* Fills device->method.  Runs self-tests. */
void method_probe(struct device *device, const char *extensions);

#endif /* ICD_METHODS_METHOD_H */
