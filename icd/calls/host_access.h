/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sixteen commands by which the host, or a copy, accesses memory objects: "Prior to version
 * 1.1.0, CL_INVALID_OPERATION when an imported memory object has been passed to one of the
 * following API functions".
 *
 * A NULL queue goes to the driver, which has the error.
 */
#ifndef ICD_CALLS_HOST_ACCESS_H
#define ICD_CALLS_HOST_ACCESS_H

#include "icd/access/access.h"

/* host_access_begin() for an import, and perhaps a second memory object. */
cl_int host_access_begin_import(struct access *a, const char *function, cl_command_queue queue,
				cl_mem read, cl_mem written, unsigned int edges, cl_bool blocking);

/**
 * host_access_begin - prepare a command that moves data by the host or a copy
 * @a: filled by access_none()
 * @read: the source of the data, or NULL
 * @written: the destination, or NULL
 * @edges: enum access_edges
 *
 * Version 1.0.0 of the extension: CL_INVALID_OPERATION, reported to the context's callback, if
 * either object is an import.  From 1.1.0 on the command is bracketed like a kernel, and may not
 * write to memory that is mapped read-only.  While no import is alive, the call costs one load.
 */
static inline cl_int host_access_begin(struct access *a, const char *function,
				       cl_command_queue queue, cl_mem read, cl_mem written,
				       unsigned int edges, cl_bool blocking)
{
	queue_bracket_close(queue);
	if (!memobj_live() || !queue || !(memobj_is_import(read) || memobj_is_import(written)))
		return CL_SUCCESS;
	return host_access_begin_import(a, function, queue, read, written, edges, blocking);
}

/* Whether version 1.0.0 forbids commands on either object, reported as above; needs no queue. */
bool host_access_refuses(const char *function, cl_mem first, cl_mem second);

#endif /* ICD_CALLS_HOST_ACCESS_H */
