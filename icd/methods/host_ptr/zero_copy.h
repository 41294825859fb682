/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The owners of proofs of images.  Contexts of one root device share the proofs of the device, until the process
 * ends.  A driver may copy in contexts of several devices: such a context has proofs of its own, made in contexts of
 * all these devices.
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
	const struct host_rule *rule; /* for buffers */
	bool is_own;		      /* the proofs are the context's */
};

/*
 * Lives as long as the context's record.  NULL without memory.  Takes no lock, but the first time.
 */
struct zero_copy_context *zero_copy_get(struct context *context);

/* The same.  Errors are logged; CL_INVALID_CONTEXT: @context is NULL, as its record is gone. */
cl_int zero_copy_find(struct context *context, struct zero_copy_context **c);

#endif /* ICD_METHODS_HOST_PTR_ZERO_COPY_H */
