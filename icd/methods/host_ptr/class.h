/* SPDX-License-Identifier: Apache-2.0 */
/* Classes of images (image_class.h): what the proofs of a device's images have in common. */
#ifndef ICD_METHODS_HOST_PTR_CLASS_H
#define ICD_METHODS_HOST_PTR_CLASS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "icd/cl_compat.h"
#include "import/import.h"
#include "util/publish.h"

#define CLASS_ACCESSES 3      /* of kernels: read, write, both */
#define CLASS_HOST_ACCESSES 4 /* of the host: CL_MEM_HOST_* */

enum class_verdict {
	CLASS_UNKNOWN, /* the test cannot run now */
	CLASS_ZERO_COPY,
	CLASS_COPIES,
	CLASS_UNPROVED, /* the driver refuses such an image, or climport has no such memory */
	CLASS_FATAL,	/* the driver crashed or hung the process of the test */
	CLASS_VERDICTS,
};

/* The proofs for contexts of some root devices. */
struct zero_copy {
	struct published published;  /* first; by device */
	const struct device *device; /* for the result cache; NULL: several devices */
	cl_platform_id platform;
	bool is_cpu; /* all devices are */
	cl_uint num_devices;
	cl_device_id *devices;	    /* root devices, each once */
	struct publish_list images; /* struct image_record */
	_Atomic int64_t again_ms;   /* no probe process is started for images before then */
};

/* Indices for the table above. */
unsigned int class_access(cl_mem_flags flags);
unsigned int class_host_access(cl_mem_flags flags);

/* Parts of sentences. */
const char *class_access_name(cl_mem_flags flags);
const char *class_host_access_name(cl_mem_flags flags);

/* The logarithm of the largest power of two in a number; 0 for 0. */
unsigned int class_magnitude(size_t number);

size_t class_page_size(void);

#endif /* ICD_METHODS_HOST_PTR_CLASS_H */
