/* SPDX-License-Identifier: Apache-2.0 */
/* The layer's place in the chain of dispatch tables. */
#ifndef ICD_LAYER_H
#define ICD_LAYER_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "icd/cl_compat.h"

/* The functions below the layer.  Entries that the loader lacks are NULL. */
extern struct _cl_icd_dispatch next;

/* The functions of the layer.  A NULL entry falls through to the next layer. */
extern const struct _cl_icd_dispatch layer_dispatch;

#define LAYER_ENTRIES (sizeof(struct _cl_icd_dispatch) / sizeof(void *))

static inline void *layer_slot(const struct _cl_icd_dispatch *table, size_t entry)
{
	void *function;

	memcpy(&function, (const char *)table + entry * sizeof(function), sizeof(function));
	return function;
}

/* Imports need the table up to OpenCL 1.2's clCreateImage.  Later entries are optional. */
#define LAYER_ENTRY(f) (offsetof(struct _cl_icd_dispatch, f) / sizeof(void *))
#define LAYER_MIN_ENTRIES (LAYER_ENTRY(clCreateImage) + 1)

/*
 * Whether a creating call of a driver made an object.  The error decides: a driver may give a
 * handle together with an error (PoCL 3.1's clCreateContextFromType), which must not be used, or
 * success without a handle.
 */
static inline bool is_created(const void *handle, cl_int err)
{
	return handle && !err;
}

/* The handle, or NULL with an error. */
static inline void *created_or_null(void *handle, cl_int *err)
{
	if (!handle && !*err)
		*err = CL_OUT_OF_RESOURCES;
	return *err ? NULL : handle;
}

#endif /* ICD_LAYER_H */
