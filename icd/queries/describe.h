/* SPDX-License-Identifier: Apache-2.0 */
/* The layer's interface for libclimport and the programs of tools/.  Not an OpenCL interface. */
#ifndef ICD_QUERIES_DESCRIBE_H
#define ICD_QUERIES_DESCRIBE_H

#include <stdbool.h>
#include <stddef.h>

#include <CL/cl.h>

#define DESCRIBE_FUNCTION "climportDescribeDevice"

/* How a device takes a type of memory.  The strings are the layer's, and stay. */
struct device_description {
	const char *method;   /* NULL: the device refuses such memory */
	const char *why;      /* a sentence: the proof, or the reason of the refusal */
	const char *kept;     /* how the memory stays registered between imports; NULL: never */
	size_t address_align; /* bytes */
	size_t size_align;
	bool by_uuid;	    /* climport_alloc() makes memory for the device's UUID */
	bool by_uuid_alone; /* ... and other host memory is refused */
};

/**
 * describe_device - describe how a device takes a type of memory
 * @import_type: CL_IMPORT_TYPE_HOST_ARM or CL_IMPORT_TYPE_DMA_BUF_ARM
 * @description: set on success
 *
 * Returns CL_SUCCESS, CL_INVALID_DEVICE or CL_INVALID_VALUE.
 */
cl_int CL_API_CALL describe_device(cl_device_id device, cl_uint import_type,
				   struct device_description *description);

typedef __typeof__(&describe_device) describe_device_fn;

#endif /* ICD_QUERIES_DESCRIBE_H */
