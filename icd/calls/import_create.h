/* SPDX-License-Identifier: Apache-2.0 */
/* An import, by whichever door: clImportMemoryARM, or cl_khr_external_memory (external_memory.c). */
#ifndef ICD_CALLS_IMPORT_CREATE_H
#define ICD_CALLS_IMPORT_CREATE_H

#include <stdbool.h>

#include "icd/objects/context.h"

/* Arguments that the door has checked. */
struct import_request {
	const char *function; /* the name of the application's call */
	cl_context context;
	cl_mem_flags flags; /* flags_parse() */
	enum import_type type;
	void *memory; /* struct import_desc's */
	size_t size;
	bool is_managed;	       /* the application need not keep a dma-buf consistent */
	bool external;		       /* struct memobj's */
	cl_mem_properties *properties; /* struct memobj's, taken over on success */
};

/* CL_SUCCESS, or CL_INVALID_BUFFER_SIZE, logged. */
cl_int size_check(size_t size);

/*
 * The driver's buffer over memory, and its record.  @how: of r->type and r->context, of a method with create.  NULL: @err
 * is set, and the reason is logged.
 */
cl_mem import_create(const struct context_import *how, const struct import_request *r, cl_int *err);

#endif /* ICD_CALLS_IMPORT_CREATE_H */
