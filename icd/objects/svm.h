/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of clSVMAlloc().  Drivers treat a buffer on such memory in a way of their own, so the layer
 * leaves such buffers to the driver (calls/create_buffer.c).
 *
 * Without CLIMPORT_HOST_PTR nothing is recorded.
 */
#ifndef ICD_OBJECTS_SVM_H
#define ICD_OBJECTS_SVM_H

#include <stdbool.h>
#include <stddef.h>

#include "icd/cl_compat.h"

/* False: no memory for the record, logged. */
bool svm_add(cl_context context, const void *memory, size_t size);

/* The memory is about to be freed.  Drivers ignore memory that is not of the context.  Any pointers. */
void svm_remove(cl_context context, const void *memory);

/*
 * A command is about to be enqueued that frees @count pointers, which may be any, or has been enqueued.
 * Another thread may get the memory again in between, so a record is marked first, and goes if the driver
 * has taken the command.
 */
void svm_begin_free(cl_uint count, void *const *pointers);
void svm_end_free(cl_uint count, void *const *pointers, cl_int err);

/* Whether one of @size bytes at @memory is in a recorded range. */
bool svm_overlaps(const void *memory, size_t size);

#endif /* ICD_OBJECTS_SVM_H */
