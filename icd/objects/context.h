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
 * Records a context that the application is about to get.  Without memory for the record, the
 * context works, and the layer refuses imports into the context.
 */
void context_add(cl_context handle, context_notify_fn notify, void *user_data);

/* The application has retained a context. */
void context_retained(cl_context handle);

/* The application is about to release a context. */
void context_release(cl_context handle);

/*
 * Whether the application has a reference to a context, which a queue may keep alive without one.
 * What a method keeps in such a context nobody would give up.
 */
bool context_is_owned(cl_context handle);

/* How the devices of a context take a type of memory. */
struct context_import {
	/*
	 * NULL: not all take it, or each by another method.  The driver's own function (no ops->create)
	 * serves all as soon as it serves one: the driver knows what it does for the others.
	 */
	const struct method_ops *ops;
	struct context *context;
	const struct device
		*device;	  /* the first; of several root devices, each may stand for all */
	size_t align, base_align; /* of facts and devices: what suffices for all */
	size_t refuser;		  /* without ops: the number of the device for context_refuse() */
};

/*
 * NULL: something is still unknown.  @type: IMPORT_TYPES for a type that only a driver can know.  Takes no lock.
 */
const struct context_import *context_get_import(const struct context *context,
						enum import_type type);

/*
 * The same; where something is unknown, asks for what is known of the devices (device_get()), which may take long.  So one
 * call of the application does so once.
 */
void context_find_import(struct context *context, enum import_type type,
			 struct context_import *how);

/* Whether a list of devices that 0 ends, the value of CL_MEM_DEVICE_HANDLE_LIST_KHR, has one. */
bool context_lists(const cl_mem_properties *listed, cl_device_id device);

/* The same for some devices of the context alone, ended by 0, or for all (NULL), after context_find_import(). */
void context_find_import_on(struct context *context, enum import_type type,
			    const cl_mem_properties *listed, struct context_import *how);

/**
 * context_refuse - why the devices of a context do not take a type of memory, logged
 * @how: found, without ops
 *
 * Returns CL_INVALID_PROPERTY; CL_OUT_OF_RESOURCES if something is unknown of a device; or CL_INVALID_OPERATION if
 * each device takes the memory, and perhaps not in one context.
 */
cl_int context_refuse(const struct context_import *how, enum import_type type);

/* Whether the driver creates 2D images from buffers on every device. */
bool context_image2d_from_buffer(const struct context *context);

/* The devices of a context, as the application named the devices; returns their number. */
size_t context_devices(const struct context *context, const cl_device_id **devices);

/*
 * Tells the callback of a context that @function failed with @err, if the context is alive.  The message has the
 * sentence that the thread logged since log_clear(), or the name of the error if no sentence was logged.
 */
void context_notify(cl_context handle, const char *function, cl_int err);

/*
 * Logs what may harm the program although @function succeeds, and tells the context's callback.  Only
 * the first time in a context: a program that knows imports a frame sixty times a second.
 */
void context_warn_once(struct context *context, const char *function, const char *warning);

#endif /* ICD_OBJECTS_CONTEXT_H */
