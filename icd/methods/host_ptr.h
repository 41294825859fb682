/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The method host_ptr: CL_MEM_USE_HOST_PTR, on a device with a proof of zero copy.  The
 * specification lets a driver cache the memory, so only a self-test decides.
 *
 * A device may be zero copy for whole pages alone.  An import that begins or ends inside a page is
 * then a part of a backing buffer over the enclosing pages (objects/backing.h).  The pages belong to
 * the mapping of the import's memory, so they are of the same kind.
 */
#ifndef ICD_METHODS_HOST_PTR_H
#define ICD_METHODS_HOST_PTR_H

#include "icd/objects/method.h"

/* Tests whether commands can wait for user events, as in the bracket of a dma-buf. */
void host_ptr_test_events(struct device *device);

/* @why: what such commands do, a part of a sentence. */
void host_ptr_refuse_events(struct facts *facts, const char *why);

#endif /* ICD_METHODS_HOST_PTR_H */
