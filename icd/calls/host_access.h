/* SPDX-License-Identifier: Apache-2.0 */
/* Commands by which the host, or a copy, touches memory objects. */
#ifndef ICD_CALLS_HOST_ACCESS_H
#define ICD_CALLS_HOST_ACCESS_H

#include "icd/access/access.h"

/**
 * host_access_begin - before a command that moves data by the host or a copy
 * @a: filled by access_none()
 * @read: what the command reads, or NULL
 * @written: what it writes, or NULL
 *
 * Version 1.0.0 of the extension: CL_INVALID_OPERATION, reported to the
 * context's callback, if either is an import.  From 1.1.0 on it is bracketed
 * like a kernel, and may not write to memory that is mapped read-only.
 */
cl_int host_access_begin(struct access *a, const char *function, cl_command_queue queue,
			 cl_mem read, cl_mem written, unsigned int edges);

/* Whether version 1.0.0 forbids commands on either, reported like above; no queue is needed. */
bool host_access_refuses(const char *function, cl_mem first, cl_mem second);

#endif /* ICD_CALLS_HOST_ACCESS_H */
