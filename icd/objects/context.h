/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts that are alive: their devices, and the callback that error messages go to. */
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
 * NULL for a handle that is no live context; the handle is not dereferenced.  Any thread.  Drop
 * with context_put().
 */
struct context *context_get(cl_context handle);
void context_put(struct context *context);

/*
 * What the driver says of a context of which no record could be made (context_missed.h): a record of
 * the caller's own, which context_get() does not find, or NULL.  Drop with context_put().
 */
struct context *context_ask(cl_context handle);

/*
 * Records a context that the application is about to get.  Without memory for the record, the
 * context works, and the layer refuses imports into the context.
 */
void context_add(cl_context handle, context_notify_fn notify, void *user_data);

/* The application has retained a context. */
void context_retained(cl_context handle);

/*
 * The application is about to release a context.  Returns the context, or NULL: no record lost a handle.  Ends with
 * context_released().
 */
struct context *context_release(cl_context handle);

/* @err: the driver's.  A release that the driver has refused is undone. */
void context_released(cl_context handle, struct context *released, cl_int err);

/*
 * Whether the application has a reference to a context, which a queue may keep alive without one.
 * What a method keeps in such a context nobody would give up.
 */
bool context_is_owned(cl_context handle);

/*
 * The method, if the driver's own function serves @type on one of the devices or more; else NULL.  The
 * driver knows what it does for the others.  IMPORT_TYPES: a type that only a driver can know.
 */
const struct method_ops *context_native(const struct context *context, enum import_type type);

/**
 * context_method - how all devices of a context take a type of memory
 * @align: set to the alignment that suffices for all devices
 * @err: set where there is no method: CL_INVALID_PROPERTY; CL_OUT_OF_RESOURCES if a device could not be tested; or
 *	CL_INVALID_OPERATION if devices take the memory, and perhaps not in one context
 *
 * Returns the method, or NULL, logged with the device and the reason.
 */
const struct method_ops *context_method(const struct context *context, enum import_type type,
					size_t *align, cl_int *err);

/*
 * Runs the self-tests of the devices that are not tested yet, or not in full.  One call of the
 * application tests once; the other functions here take what was found, and test only a device that
 * nothing is known of.
 */
void context_test(const struct context *context);

/* True once for each context. */
bool context_is_first_import(struct context *context);

/* The platform of a context; NULL if the properties of no device can be read. */
cl_platform_id context_platform(const struct context *context);

/* Whether the environment selects every device (objects/selection.h). */
bool context_is_selected(const struct context *context);

/* Whether the driver creates 2D images from buffers on every device. */
bool context_image2d_from_buffer(const struct context *context);

/* The strictest base_align of the devices. */
size_t context_base_align(const struct context *context);

/* The devices of a context, as the application named the devices; returns their number. */
size_t context_devices(const struct context *context, const cl_device_id **devices);

/*
 * Tells the context's callback that @function fails with @err.  The message has the sentence that
 * the thread logged since log_clear(), or the name of the error if no sentence was logged.
 */
void context_notify(const struct context *context, const char *function, cl_int err);

/*
 * Logs what may harm the program although @function succeeds, and tells the context's callback.  Only
 * the first time in a context: a program that knows imports a frame sixty times a second.
 */
void context_warn_once(struct context *context, const char *function, const char *warning);

#endif /* ICD_OBJECTS_CONTEXT_H */
