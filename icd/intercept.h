/* SPDX-License-Identifier: Apache-2.0 */
/* The layer's functions, of the rows of table.h. */
#ifndef ICD_INTERCEPT_H
#define ICD_INTERCEPT_H

#include "icd/layer.h"
#include "icd/words.h"

/* Of the types that the dispatch table has; layer_NAME_fn is the type of an extension's function. */
#define CALL(name) __typeof__(*next.name) layer_##name;
#define EXTENSION(type, name, parameters)         \
	type CL_API_CALL layer_##name parameters; \
	typedef __typeof__(&layer_##name) layer_##name##_fn;
#include "icd/table.h"

/*
 * The part of a call that concerns imports, in a function of its own: inlined, it would give a frame
 * to each call of a program that imports nothing.
 */
#define APART __attribute__((noinline))

/* The extension's function: import_memory.c */
cl_mem CL_API_CALL layer_clImportMemoryARM(cl_context context, cl_mem_flags flags,
					   const cl_import_properties_arm *properties, void *memory,
					   size_t size, cl_int *errcode_ret);

#endif /* ICD_INTERCEPT_H */
