/* SPDX-License-Identifier: Apache-2.0 */
/* The layer's interface for climport-probe, libclimport and the programs of tools/.  Not an OpenCL interface. */
#ifndef ICD_PROBE_INTERFACE_H
#define ICD_PROBE_INTERFACE_H

#include <stdbool.h>
#include <stddef.h>

#include <CL/cl.h>

#define PROBE_FUNCTION "climportMakeFacts"
#define PROBE_WITH_IMAGES "images" /* the request for a record with the tests that take long */
#define PROBE_FD 3		   /* the descriptor of the file for the record */
#define PROBE_STATUS_LOST 126	   /* and greater: the process says nothing of the driver */
#define PROBE_STATUS_SIGNAL 128	   /* and the signal that ended the driver before any test */
#define PROBE_STATUS_HANGS (-1)	   /* of a worker that climport-probe has ended for its hang */

/* The head of a record, which climport-probe reads. */
struct probe_progress {
	unsigned int steps;  /* grows with each test */
	unsigned int layout; /* not 0: the record is sealed (facts/facts.h) */
};

/**
 * facts_make - make the record of a platform (facts/facts.h), and keep it
 * @key: of the platform in question, from the parent
 * @with_images: images are tested, too, and what else takes long or kills drivers
 * @fd: the record's file.  Sections that are there
 *	already are not made again: a worker that comes after a dead one goes on behind it.
 * @status: how the worker before has ended
 *
 * Returns CL_SUCCESS; CL_INVALID_PLATFORM if @platform is not the platform of @key; or another error.
 */
cl_int CL_API_CALL facts_make(cl_platform_id platform, const char *key, bool with_images, int fd,
			      int status);

typedef __typeof__(&facts_make) probe_fn;

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

#endif /* ICD_PROBE_INTERFACE_H */
