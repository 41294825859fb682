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

/* False: no memory for the record, logged. */
bool svm_add(const void *memory, size_t size);

/* The memory is about to be freed.  @memory may be any pointer. */
void svm_remove(const void *memory);

/* Whether one of @size bytes at @memory is in a recorded range. */
bool svm_overlaps(const void *memory, size_t size);

#endif /* ICD_OBJECTS_SVM_H */
