/* SPDX-License-Identifier: Apache-2.0 */
/* The abilities of each device, found out on first use. */
#ifndef ICD_OBJECTS_DEVICE_H
#define ICD_OBJECTS_DEVICE_H

#include <stdbool.h>
#include <time.h>

#include "icd/cl_compat.h"
#include "icd/objects/handle_table.h"
#include "import/import.h"

struct method_ops;

/* How a device takes a type of memory. */
struct method {
	const struct method_ops *ops; /* NULL: the device takes no such memory */
	size_t align;		      /* bytes; pointers and sizes that are proved zero copy */
	bool untested; /* for want of memory, or of a compiler: a later call tests again */
	bool hangs; /* the test hangs: an hour later, or when a hung test ends, a call tests again */
	bool is_reason; /* of a refusal: @why is the reason for people, whatever later methods say */
	char why[192];	/* a sentence: the proof, or the reason for a refusal */
};

/* Never changed or freed once device_get() returned it. */
struct device {
	struct handle_record record;
	cl_device_id id; /* a root device */
	cl_platform_id platform;
	struct device *older; /* an inconclusive record, which threads may still use */
	bool may_compile;     /* whether the self-tests may compile */
	unsigned int
		attempts; /* at records with may_compile, one after another, this one included */
	time_t retry; /* seconds: the next attempt, behind the quick attempts or an hour behind a hang */
	unsigned int
		late; /* job_late() before the self-tests: another number says that a hang ended */
	struct method method[IMPORT_TYPES];
	const struct method_ops *others; /* for types that only a driver can know; or NULL */
	bool image2d_from_buffer;	 /* the driver has cl_khr_image2d_from_buffer */
	size_t base_align;		 /* bytes: CL_DEVICE_MEM_BASE_ADDR_ALIGN, of sub-buffers */
	bool is_selected;		 /* by the environment: selection.h */
	char unselected[128];		 /* the reason, if the device is not selected */
};

/**
 * device_get - the record of a device, or of the root device of a sub-device
 *
 * The first call for a device runs the self-test, in a context of climport's own.  If a result is
 * unknown, a later call tests again, so a function of the application makes one such call.
 * Any thread; no lock is held meanwhile.  NULL if @id is no device, or without memory.
 */
const struct device *device_get(cl_device_id id);

/* What the last device_get() has found, conclusive or not; without an earlier one, device_get(). */
const struct device *device_get_last(cl_device_id id);

/**
 * device_get_quick - device_get() for a program that only queries a device
 *
 * Compiles nothing: native kernels and kept results alone decide.  NULL if they do not decide.
 */
const struct device *device_get_quick(cl_device_id id);

/* The record of a root device, conclusive or not; NULL if no thread has asked for the device. */
const struct device *device_known(cl_device_id id);

/* The next known record, or NULL at the end.  @cursor: zero at first. */
const struct device *device_next(struct handle_cursor *cursor);

/* The root device of a sub-device; @id if @id is a root device. */
cl_device_id device_root(cl_device_id id);

/* CL_DEVICE_MEM_BASE_ADDR_ALIGN in bytes: sub-buffers begin at multiples of it. */
size_t device_base_align(cl_device_id id);

/* An information string of the driver, without the layer's additions: the caller's, or NULL. */
char *device_string(cl_device_id id, cl_device_info name);
char *platform_string(cl_platform_id platform, cl_platform_info name);

/*
 * The OpenCL version of a device: functions of newer versions must not be called for the device.
 * 0: the version cannot be read now.
 */
cl_version device_version(cl_device_id id);

/* Whether a space-separated @list has the word @name. */
bool has_word(const char *list, const char *name);

/* The extension name for a type: "cl_arm_import_memory_host", ... */
const char *type_extension(enum import_type type);

#endif /* ICD_OBJECTS_DEVICE_H */
