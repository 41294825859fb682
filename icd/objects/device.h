/* SPDX-License-Identifier: Apache-2.0 */
/* What each device can do, found out once, on first use. */
#ifndef ICD_OBJECTS_DEVICE_H
#define ICD_OBJECTS_DEVICE_H

#include <stdbool.h>

#include "icd/cl_compat.h"
#include "icd/objects/handle_table.h"
#include "import/import.h"

struct method_ops;

/* How a device takes a type of memory. */
struct method {
	const struct method_ops *ops; /* NULL: not at all */
	size_t align;		      /* bytes; pointers and sizes that are proved zero copy */
	bool untested;		      /* for want of memory, or of a compiler: to be asked again */
	bool hangs;		      /* the test does: to be asked again ... */
	unsigned int late;	      /* ... when job_late() is no longer this */
	char why[192];		      /* a sentence: by what proof, or why not */
};

/* Never changed or freed once device_get() returned it. */
struct device {
	struct handle_record record;
	cl_device_id id; /* a root device */
	cl_platform_id platform;
	struct device *older;  /* a record that was not conclusive, and that others may still use */
	bool may_compile;      /* what its self-tests may do */
	unsigned int attempts; /* at a record that may compile, this one included */
	struct method method[IMPORT_TYPES];
	bool image2d_from_buffer; /* the driver's own, on any buffer */
};

/**
 * device_get - the record of a device; a sub-device has its root device's
 *
 * The first call for a device runs its self-test, on a context of its own.
 * Any thread; holds no lock meanwhile.  NULL if @id is none or memory is out.
 */
const struct device *device_get(cl_device_id id);

/**
 * device_get_quick - the same for a program that only asks what a device can do
 *
 * Compiles nothing: native kernels and kept results alone decide.  NULL also if they do not.
 */
const struct device *device_get_quick(cl_device_id id);

/* The record of a root device, conclusive or not; NULL if no thread has asked for the device. */
const struct device *device_known(cl_device_id id);

/* The next record of all that are known, or NULL at the end.  @cursor: zero at first. */
const struct device *device_next(struct handle_cursor *cursor);

/* The device that @id is a part of, or itself. */
cl_device_id device_root(cl_device_id id);

/**
 * device_string - an information string of the driver, not this layer's
 *
 * Returns a string that the caller frees, or NULL.
 */
char *device_string(cl_device_id id, cl_device_info name);

/*
 * The OpenCL version of a device; what is newer than that must not be called for it.  0: it cannot
 * be read this time.
 */
cl_version device_version(cl_device_id id);

/* Whether a space-separated @list has the word @name. */
bool has_word(const char *list, const char *name);

/* The extension name for a type: "cl_arm_import_memory_host", ... */
const char *type_extension(enum import_type type);

#endif /* ICD_OBJECTS_DEVICE_H */
