/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels that have imports as arguments whose commands need work: memobj_needs_access().  An
 * argument is kept by handle: an object that is gone is not found when the kernel is enqueued.
 */
#ifndef ICD_OBJECTS_KERNEL_ARGS_H
#define ICD_OBJECTS_KERNEL_ARGS_H

#include "icd/objects/memobj.h"

extern struct handle_table kernel_args_table;

/* Whether any kernel has such an argument. */
static inline bool kernel_args_any(void)
{
	return handle_table_any(&kernel_args_table);
}

/*
 * The driver has taken argument @index, of @size bytes at @value.  CL_SUCCESS, or
 * CL_OUT_OF_HOST_MEMORY, logged.
 */
cl_int kernel_args_set(cl_kernel kernel, cl_uint index, size_t size, const void *value);

/* A kernel without arguments: the handle is new, or about to go. */
void kernel_args_forget(cl_kernel kernel);

/* Gives @to the arguments of @from.  False: no memory, logged. */
bool kernel_args_copy(cl_kernel from, cl_kernel to);

/* The application is about to release a kernel, perhaps for the last time. */
void kernel_args_release(cl_kernel kernel);

/* Adds such imports that are arguments of a kernel: none for almost every kernel. */
void kernel_args_imports(cl_kernel kernel, struct memobj_list *list);

#endif /* ICD_OBJECTS_KERNEL_ARGS_H */
