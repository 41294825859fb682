/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Classes of memory, and proofs of zero copy by CL_MEM_USE_HOST_PTR for a class.
 *
 * A driver may be zero copy for some memory and copy other memory.  A driver may decide by the
 * kind of the mapping, by the access of kernels and of the host, by alignment, by size, and by the
 * devices of the context.  A class is a combination of such properties; buffers (buffer_class.h)
 * and images (image_class.h) have classes of their own.
 *
 * A class is proved by a self-test on memory of climport's own, at the first import of the class.
 */
#ifndef ICD_METHODS_HOST_PTR_CLASS_H
#define ICD_METHODS_HOST_PTR_CLASS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "icd/cl_compat.h"
#include "import/import.h"
#include "util/publish.h"

#define CLASS_ACCESSES 3      /* of kernels: read, write, both */
#define CLASS_HOST_ACCESSES 4 /* of the host: CL_MEM_HOST_* */
#define CLASS_ALIGNS 3
#define CLASS_SMALLEST 11 /* the logarithm: all sizes below a page share a bucket */
#define CLASS_BUCKETS (64 - CLASS_SMALLEST)

enum class_verdict {
	CLASS_UNKNOWN, /* the test could not run */
	CLASS_ZERO_COPY,
	CLASS_COPIES,
	CLASS_EACH,  /* only the application's own buffer can be proved */
	CLASS_STUCK, /* the test did not end */
	CLASS_FATAL, /* the driver crashed or hung the process of the test */
	CLASS_VERDICTS,
};

/* The bounds of a class of buffers.  The two bounds only ever move apart. */
struct buffer_slot {
	atomic_size_t proved; /* the largest size known to be zero copy; 0: no size is */
	atomic_size_t copied; /* the least size known to be copied; 0: no size is */
	atomic_uint obstacle; /* enum obstacle; above OBSTACLE_HANGS job_late() */
};

/* The proofs for contexts of some root devices. */
struct zero_copy {
	struct published published;  /* first; by device */
	const struct device *device; /* for the result cache; NULL: several devices */
	cl_platform_id platform;
	bool is_cpu;	/* all devices are */
	size_t largest; /* bytes of a buffer, on every device */
	cl_uint num_devices;
	cl_device_id *devices; /* root devices, each once */
	struct buffer_slot buffers[IMPORT_KINDS][CLASS_ACCESSES][CLASS_HOST_ACCESSES][CLASS_ALIGNS]
				  [CLASS_BUCKETS];
	struct publish_list images;   /* struct image_record */
	struct publish_list unproved; /* struct image_record: no probe could say anything */
};

/* Indices for the table above. */
unsigned int class_access(cl_mem_flags flags);
unsigned int class_host_access(cl_mem_flags flags);

/* Parts of sentences. */
const char *class_kind_name(enum import_kind kind);
const char *class_access_name(cl_mem_flags flags);
const char *class_host_access_name(cl_mem_flags flags);

/* The logarithm of the largest power of two in a number; 0 for 0. */
unsigned int class_magnitude(size_t number);

size_t class_page_size(void);

#endif /* ICD_METHODS_HOST_PTR_CLASS_H */
