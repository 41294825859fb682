/* SPDX-License-Identifier: Apache-2.0 */
/* The property list and the flags of clImportMemoryARM.  Pure functions. */
#ifndef ICD_CALLS_PROPERTIES_H
#define ICD_CALLS_PROPERTIES_H

#include "icd/cl_compat.h"
#include "import/import.h"

/* CL_IMPORT_DMA_BUF_DATA_CONSISTENCY_WITH_HOST_ARM: who keeps host and memory consistent. */
enum consistency {
	CONSISTENCY_DEFAULT, /* by version: before revision 10 the runtime, then the application */
	CONSISTENCY_APPLICATION,
	CONSISTENCY_RUNTIME,
};

struct properties {
	enum import_type type;
	enum consistency consistency;
};

/**
 * properties_parse - check a property list
 * @list: zero-terminated pairs, or NULL for the defaults; read up to its
 *	terminator or its first fault, whichever comes first
 * @out: set on success
 *
 * Returns CL_SUCCESS or CL_INVALID_PROPERTY, logged with the property at fault.
 */
cl_int properties_parse(const cl_import_properties_arm *list, struct properties *out);

/* The type that a list asks for, right or wrong; IMPORT_TYPES for a type that only a driver can know. */
enum import_type properties_type(const cl_import_properties_arm *list);

/**
 * flags_parse - check memory flags
 * @flags: those of clImportMemoryARM
 * @effective: set to the flags less CL_MEM_USE_HOST_PTR, CL_MEM_READ_WRITE if
 *	no access was given
 *
 * Returns CL_SUCCESS or CL_INVALID_VALUE, logged.
 */
cl_int flags_parse(cl_mem_flags flags, cl_mem_flags *effective);

/* The devices' access that @flags ask for: enum import_access. */
unsigned int flags_access(cl_mem_flags flags);

/* CL_MEM_READ_ONLY in place of the access in @flags, if that is for more than @access. */
cl_mem_flags flags_restrict(cl_mem_flags flags, unsigned int access);

#endif /* ICD_CALLS_PROPERTIES_H */
