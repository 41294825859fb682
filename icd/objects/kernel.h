/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which kernels have bracketed imports as arguments.  Arguments are kept by
 * handle: an object that is gone is not found any more when the kernel runs.
 */
#ifndef ICD_OBJECTS_KERNEL_H
#define ICD_OBJECTS_KERNEL_H

#include "icd/objects/memobj.h"

/* How many imports a command can use before memory is needed to list them. */
#define KERNEL_IMPORTS_FEW 8

/* Imports that a command uses, held. */
struct kernel_imports {
	size_t count;
	struct memobj **objs; /* few, or memory */
	cl_uint *indices;     /* of a kernel's arguments; behind objs */
	struct memobj *few[KERNEL_IMPORTS_FEW];
	cl_uint few_indices[KERNEL_IMPORTS_FEW];
};

/* Room for @count objects, none listed yet.  False: no memory.  Undone by kernel_imports_put(). */
bool kernel_imports_reserve(struct kernel_imports *imports, size_t count);

/**
 * kernel_imports_get - the bracketed imports that are arguments of a kernel
 * @imports: set also on failure; none for almost every kernel
 *
 * Returns CL_SUCCESS, or CL_OUT_OF_HOST_MEMORY: then the kernel must not be enqueued, because it
 * would run without brackets.  Undone by kernel_imports_put().
 */
cl_int kernel_imports_get(cl_kernel kernel, struct kernel_imports *imports);

/* Drops the imports. */
void kernel_imports_put(struct kernel_imports *imports);

struct access;

/* access_none(), and access_begin() for the arguments of a kernel that is to be enqueued. */
cl_int kernel_begin(struct access *a, cl_command_queue queue, cl_kernel kernel, cl_uint num_wait,
		    const cl_event *wait, cl_event *event);

/* Argument @index is no memory object any more. */
void kernel_arg_forget(cl_kernel kernel, cl_uint index);

#endif /* ICD_OBJECTS_KERNEL_H */
