/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The owners of proofs.  Contexts of one root device share the rule and the proofs of the device, until the
 * process ends.  A driver may copy in contexts of several devices: such a context has a rule and proofs of its
 * own, made in contexts of all these devices.
 */
#ifndef ICD_METHODS_HOST_PTR_ZERO_COPY_H
#define ICD_METHODS_HOST_PTR_ZERO_COPY_H

#include "icd/objects/context.h"
#include "icd/selftest/selftest.h"
#include "util/publish.h"

/* The root devices of contexts. */
struct zero_copy {
	struct published published;  /* first; by device */
	const struct device *device; /* NULL: several devices */
	cl_platform_id platform;
	cl_uint num_devices;
	cl_device_id *devices; /* root devices, each once */
};

/* The method's data of a context. */
struct zero_copy_context {
	struct context_data base; /* first */
	struct zero_copy *proofs;
	const struct host_rule *rule; /* for buffers */
	struct host_rule own;	      /* of a context of several devices */
	bool is_own;		      /* so are the proofs */
};

/*
 * Lives as long as the context's record.  NULL without memory, or if the devices could not be tested together
 * now.  Takes no lock, but the first time.
 */
struct zero_copy_context *zero_copy_get(struct context *context);

/* The same.  Errors are logged; CL_INVALID_CONTEXT: @context is NULL, as its record is gone. */
cl_int zero_copy_find(struct context *context, struct zero_copy_context **c);

/* Finds the rule of a context of several devices. */
extern const struct proof host_rule_proof;

#endif /* ICD_METHODS_HOST_PTR_ZERO_COPY_H */
