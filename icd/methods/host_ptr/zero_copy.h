/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The owners of proofs.  Contexts of one root device share the proofs of the device, until the
 * process ends.  A context of several root devices has proofs of its own, made in contexts of all
 * these devices.
 */
#ifndef ICD_METHODS_HOST_PTR_ZERO_COPY_H
#define ICD_METHODS_HOST_PTR_ZERO_COPY_H

#include "icd/methods/host_ptr/class.h"
#include "icd/objects/context.h"
#include "icd/selftest/selftest.h"

/* The method's data of a context. */
struct zero_copy_context {
	struct context_data base; /* first */
	struct zero_copy *proofs;
	bool is_own; /* the proofs are the context's */
	struct selftest_kept kept;
};

/* Lives as long as the context's record.  NULL without memory.  Takes no lock, but the first time. */
struct zero_copy_context *zero_copy_get(struct context *context);

/* The same.  CL_INVALID_CONTEXT, logged: @context is NULL, as the context has no record any more. */
cl_int zero_copy_find(struct context *context, struct zero_copy_context **c);

#endif /* ICD_METHODS_HOST_PTR_ZERO_COPY_H */
