/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The contexts that are alive, with what the layer has to know of them: their
 * devices, and the callback that error messages go to.
 */
#ifndef ICD_OBJECTS_CONTEXT_H
#define ICD_OBJECTS_CONTEXT_H

#include "icd/cl_compat.h"
#include "icd/objects/device.h"

typedef void(CL_CALLBACK *context_notify_fn)(const char *errinfo, const void *private_info,
					     size_t cb, void *user_data);

struct context;

/**
 * context_get - take a reference to the record of a context
 *
 * NULL for a handle that is no context, or no longer one; it is not
 * dereferenced.  Any thread.  Drop with context_put().
 */
struct context *context_get(cl_context handle);
void context_put(struct context *context);

/*
 * Records a context that the application is about to get.  A context that cannot be recorded for
 * want of memory works without the layer; imports into it are refused.
 */
void context_add(cl_context handle, context_notify_fn notify, void *user_data);

/* The application is about to release a context, perhaps for the last time. */
void context_release(cl_context handle);

/* Whether the driver's own function serves this type on every device. */
bool context_is_native(const struct context *context, enum import_type type);

/**
 * context_method - how all devices of a context take a type of memory
 * @align: set to the alignment that all of them need
 *
 * Returns the way, or NULL, logged with the device and the reason.
 */
const struct method_ops *context_method(const struct context *context, enum import_type type,
					size_t *align);

/* What a method keeps for a context: the beginning of the method's own structure. */
struct context_data {
	const struct context_data_ops *ops;
	struct context_data *next;
};

struct context_data_ops {
	/*
	 * Gives up the driver's objects in the data: the application releases its last reference
	 * to the context.  The data stays usable.
	 */
	void (*release)(struct context_data *data);

	/* The context is gone. */
	void (*free)(struct context_data *data);
};

/* The data with these @ops, or NULL.  Takes no lock. */
struct context_data *context_data_get(struct context *context, const struct context_data_ops *ops);

/*
 * Gives @data to the context.  If a thread was faster, frees @data and returns the data of that
 * thread.
 */
struct context_data *context_data_add(struct context *context, struct context_data *data);

/*
 * A child of the process that made the context has none of the driver's threads: a self-test would
 * hang there.  Between the two, on one thread, none is run for such a context.  The second returns
 * @err, the call's, or CL_INVALID_OPERATION, logged, if it was for want of a test.
 */
void context_tests_begin(const struct context *context);
cl_int context_tests_end(const struct context *context, cl_int err);

/* True once for each context. */
bool context_is_first_import(struct context *context);

/* The platform of a context. */
cl_platform_id context_platform(const struct context *context);

/* Whether the driver makes 2D images from buffers on every device itself. */
bool context_image2d_from_buffer(const struct context *context);

/* The devices of a context, as the application named them; returns how many. */
size_t context_devices(const struct context *context, const cl_device_id **devices);

/*
 * Tells the context's callback that @function fails with @err, with the sentence that this thread
 * logged since the call's log_clear(); the error's number stands for a sentence that is missing.
 */
void context_notify(const struct context *context, const char *function, cl_int err);

#endif /* ICD_OBJECTS_CONTEXT_H */
