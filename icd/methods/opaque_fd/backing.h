/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver's buffers over memory of climport_alloc(), kept for the next import of a part of
 * it: making one takes NVIDIA's driver 40 us and more, a part of one less than a microsecond.
 * Kept until the memory is freed, the context is released, or others need the room.
 */
#ifndef ICD_METHODS_OPAQUE_FD_BACKING_H
#define ICD_METHODS_OPAQUE_FD_BACKING_H

#include <stdint.h>

#include "icd/cl_compat.h"

/* A reference for the caller to the buffer of @memory in @context with @flags, or NULL. */
cl_mem backing_find(cl_context context, uint64_t memory, cl_mem_flags flags);

/* Keeps @root, with a reference of its own. */
void backing_keep(cl_context context, uint64_t memory, cl_mem_flags flags, cl_mem root);

/* The context is about to be released for the last time. */
void backing_drop_context(cl_context context);

/* The memory is about to be freed. */
void backing_drop_memory(uint64_t memory);

#endif
