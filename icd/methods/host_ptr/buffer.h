/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Buffers over host memory: CL_MEM_USE_HOST_PTR.
 *
 * A device may be zero copy for whole pages alone.  An import that begins or ends inside a page is
 * then a part of a backing buffer over the enclosing pages (objects/backing.h).  The pages belong to the
 * mapping of the import's memory, so they are of the same kind.
 */
#ifndef ICD_METHODS_HOST_PTR_BUFFER_H
#define ICD_METHODS_HOST_PTR_BUFFER_H

#include "icd/objects/method.h"

/* See struct method_ops. */
cl_int host_ptr_create(cl_context context, const struct context_import *how, cl_mem_flags flags,
		       struct import_region *region, struct method_buffer *buffer);

/* Whether the rule of each device of a context holds for such memory: host_rule_check(). */
cl_int host_ptr_check(const struct context *context, unsigned int kinds, cl_mem_flags flags,
		      const void *addr, size_t size);

/* Tests whether commands can wait for user events, as in the bracket of a dma-buf. */
void host_ptr_test_events(struct device *device);

/* @why: what such commands do, a part of a sentence. */
void host_ptr_refuse_events(struct facts *facts, const char *why);

#endif /* ICD_METHODS_HOST_PTR_BUFFER_H */
