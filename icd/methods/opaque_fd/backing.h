/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Backing buffers over memory that stays registered (climport_alloc()'s, and the host's pages that a
 * monitor watches or the program has registered), kept for the next import of a part of the memory:
 * NVIDIA's driver makes a buffer in 40 us and more, and pins the host's pages, a sub-buffer in less
 * than a microsecond.  A context has one backing buffer of a registration, whatever the flags of the
 * imports: flags of a sub-buffer may be stricter than the flags of its buffer.
 *
 * A backing buffer is kept until the registration ends, or the application releases the context.  A
 * context that a queue alone keeps alive has none: nobody would say when to drop the buffer.  Of
 * memory that needs no pin, 64 backing buffers are kept.
 */
#ifndef ICD_METHODS_OPAQUE_FD_BACKING_H
#define ICD_METHODS_OPAQUE_FD_BACKING_H

#include <stdbool.h>
#include <stdint.h>

#include "icd/cl_compat.h"

/* A reference for the caller to the buffer of @memory in @context, or NULL. */
cl_mem backing_find(cl_context context, uint64_t memory);

/* Keeps @backing, with an additional reference.  @may_go: others of the kind may take its room. */
void backing_keep(cl_context context, uint64_t memory, bool may_go, cl_mem backing);

/* Drops the buffers of a context, which the application releases. */
void backing_drop_context(cl_context context);

/* The registration ends: the memory is about to be freed, or was unmapped. */
void backing_drop_memory(uint64_t memory);

#endif
