/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Backing buffers over memory that stays registered (climport_alloc()'s, and the host's pages that a
 * monitor watches), kept for the next import of a part of the memory: NVIDIA's driver makes a
 * buffer in 40 us and more, a sub-buffer in less than a microsecond.  A backing buffer is kept until
 * the registration ends, the context is released, or other backing buffers need the room.
 */
#ifndef ICD_METHODS_OPAQUE_FD_BACKING_H
#define ICD_METHODS_OPAQUE_FD_BACKING_H

#include <stdint.h>

#include "icd/cl_compat.h"

/* A reference for the caller to the buffer of @memory in @context with @flags, or NULL. */
cl_mem backing_find(cl_context context, uint64_t memory, cl_mem_flags flags);

/* Keeps @backing, with an additional reference. */
void backing_keep(cl_context context, uint64_t memory, cl_mem_flags flags, cl_mem backing);

/* Drops the buffers of a context, which the application releases. */
void backing_drop_context(cl_context context);

/* The registration ends: the memory is about to be freed, or was unmapped. */
void backing_drop_memory(uint64_t memory);

#endif
