/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Imports by a driver that has clImportMemoryARM itself: the driver's function is called for what
 * the driver serves.
 */
#ifndef ICD_CALLS_NATIVE_IMPORT_H
#define ICD_CALLS_NATIVE_IMPORT_H

#include <CL/cl_ext.h>
#include <stdbool.h>

#include "icd/objects/context.h"

/* The arguments of the application. */
struct import_call {
	cl_context context;
	cl_mem_flags flags;
	const cl_import_properties_arm *properties;
	void *memory;
	size_t size;
};

typedef __typeof__(&clImportMemoryARM) import_memory_fn;

/* The driver's own function, for a type that the driver serves. */
struct native_import {
	import_memory_fn call; /* NULL: the layer imports */
	const struct method_ops *ops;
	bool has_version; /* the rules of the version that the environment asks for hold */
};

/* @ops: the native method. */
void native_import_find(const struct context *context, const struct method_ops *ops,
			struct native_import *native);

/*
 * In a context without a record.  The handle may be wrong, and is not read: where there is one platform, the
 * platform's function gets it, as without the layer.
 */
void native_import_find_unrecorded(struct native_import *native);

/* The driver's import, with the driver's rules, or with those of a version as well. */
cl_mem native_import_by_driver(const struct import_call *call, const struct native_import *native,
			       cl_int *errcode_ret);

#endif /* ICD_CALLS_NATIVE_IMPORT_H */
