/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A command that is enqueued: memory objects -> forbidden? -> access_begin() -> driver -> access_end().
 *
 * The sixteen commands by which the host, or a copy, accesses memory objects: "Prior to version
 * 1.1.0, CL_INVALID_OPERATION when an imported memory object has been passed to one of the
 * following API functions".
 */
#ifndef ICD_CALLS_COMMAND_H
#define ICD_CALLS_COMMAND_H

#include "icd/access/access.h"

/**
 * command_begin_host - prepare one of the sixteen
 * @a: filled by access_none()
 * @read: the source of the data, or NULL
 * @written: the destination, or NULL
 * @edges: enum access_edges
 * @blocking: the command's argument, which the driver gets as it is left here; NULL: it has none
 *
 * Version 1.0.0 of the extension: CL_INVALID_OPERATION, reported to the context's callback, if
 * either object is an import.  From 1.1.0 on the command is bracketed like a kernel, and may not
 * write to memory that is mapped read-only.  A NULL queue goes to the driver, which has the error.
 */
cl_int command_begin_host(struct access *a, const char *function, cl_command_queue queue,
			  cl_mem read, cl_mem written, unsigned int edges, cl_bool *blocking);

/* Whether an event of a wait list has failed already. */
bool command_list_failed(cl_uint num_wait, const cl_event *wait);

/* The same for a kernel, by its arguments. */
cl_int command_begin_kernel(struct access *a, cl_command_queue queue, cl_kernel kernel);

/*
 * The same checks where a command is recorded, and command_refuse_recorded() for memory that needs a bracket or an
 * acquire: CL_SUCCESS, or CL_INVALID_OPERATION, reported as above.
 */
cl_int command_check_recorded(const char *function, cl_mem read, cl_mem written);
cl_int command_refuse_recorded(const struct memobj *obj, const char *function);

#endif /* ICD_CALLS_COMMAND_H */
