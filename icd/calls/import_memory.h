/* SPDX-License-Identifier: Apache-2.0 */
/* Imports without clImportMemoryARM. */
#ifndef ICD_CALLS_IMPORT_MEMORY_H
#define ICD_CALLS_IMPORT_MEMORY_H

#include "icd/objects/context.h"
#include "icd/objects/in_place.h"

struct in_place_request {
	cl_mem_flags flags; /* the program's */
	void *memory;
	size_t size;		   /* bytes, not 0 */
	struct in_place *in_place; /* taken over on success */
};

/**
 * import_memory_in_place - an import that stands for a buffer with a host pointer
 * @context: the record of @handle
 *
 * Returns the buffer; or NULL with an error, logged: the driver's own buffer has to do.
 */
cl_mem import_memory_in_place(cl_context handle, struct context *context,
			      const struct in_place_request *request, cl_int *err);

#endif /* ICD_CALLS_IMPORT_MEMORY_H */
