/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/objects/context.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "icd/driver_info.h"
#include "icd/layer.h"
#include "icd/objects/method.h"
#include "icd/objects/handle_table.h"
#include "util/cl_names.h"
#include "util/lock.h"
#include "util/log.h"
#include "util/thread.h"

struct context {
	struct handle_record record;
	cl_context handle;
	atomic_bool is_known; /* @imports are set, once */
	struct context_import imports[IMPORT_TYPES + 1];
	atomic_bool is_warned; /* context_warn_once() */
	bool calls_back; /* the driver says when the context is gone; set before others see it */
	context_notify_fn notify;
	void *user_data;
	size_t num_devices;
	cl_device_id devices[];
};

static HANDLE_TABLE_DEFINE(context_table, NULL); /* cl_context -> struct context */

void context_put(struct context *context)
{
	handle_record_free(context);
}

struct context *context_get(cl_context handle)
{
	return handle_table_get(&context_table, handle);
}

/*
 * @only: NULL, or the record to remove: the driver may have created another context at @handle, or
 * the application may have the handle again, from a queue.
 */
static void context_remove(cl_context handle, const struct context *only)
{
	struct context *context;

	lock_acquire(&context_table.lock);
	context = handle_table_peek(&context_table, handle);
	if (context && (!only || (context == only && !context->record.handles)))
		handle_table_remove(&context_table, handle);
	else
		context = NULL;
	lock_release(&context_table.lock);
	context_put(context);
}

static void CL_CALLBACK context_destroyed(cl_context handle, void *record)
{
	context_remove(handle, record);
	context_put(record);
}

static bool context_has_quirk(const struct context *context, enum method_quirk quirk)
{
	bool has_quirk = false;

	for (size_t i = 0; i < context->num_devices && !has_quirk; i++) {
		char *extensions = device_string(context->devices[i], CL_DEVICE_EXTENSIONS);

		has_quirk = !extensions || method_driver_has(quirk, extensions);
		free(extensions);
	}
	return has_quirk;
}

/*
 * OpenCL 3.0 calls back when a context is gone.  Before 3.0, and where callbacks do harm, the last
 * release ends the record.
 */
static bool context_calls_back(const struct context *context)
{
	return next.clSetContextDestructorCallback && context->num_devices &&
	       device_version(context->devices[0]) >= CL_MAKE_VERSION(3, 0, 0) &&
	       !context_has_quirk(context, METHOD_NO_CONTEXT_CALLBACKS);
}

static void context_watch(struct context *context)
{
	if (!context_calls_back(context))
		return;
	handle_record_hold(&context->record);
	context->calls_back =
		!next.clSetContextDestructorCallback(context->handle, context_destroyed, context);
	if (!context->calls_back)
		context_put(context);
}

static struct context *context_create(cl_context handle, context_notify_fn notify, void *user_data)
{
	struct context *context;
	size_t size;

	if (next.clGetContextInfo(handle, CL_CONTEXT_DEVICES, 0, NULL, &size))
		return NULL;
	context = calloc(1, sizeof(*context) + size);
	if (!context)
		return NULL;
	if (next.clGetContextInfo(handle, CL_CONTEXT_DEVICES, size, context->devices, NULL)) {
		free(context);
		return NULL;
	}
	context->handle = handle;
	context->notify = notify;
	context->user_data = user_data;
	context->num_devices = size / sizeof(context->devices[0]);
	return context;
}

void context_add(cl_context handle, context_notify_fn notify, void *user_data)
{
	struct context *context = context_create(handle, notify, user_data);

	context_remove(handle, NULL);
	if (context && handle_table_add(&context_table, handle, context))
		context_watch(context);
	else
		free(context);
}

/*
 * Queues and other objects may keep the context alive in the driver, and give the handle out.  So
 * the record stays until the driver calls back.  If it never will, the record stays until the driver
 * uses the address for another context, if the driver counts more references than this one, or counts
 * the application's alone and has the quirk.
 */
static bool context_is_kept(const struct context *context)
{
	cl_uint refs = 0;

	return context->calls_back || context_has_quirk(context, METHOD_NO_CONTEXT_CALLBACKS) ||
	       (!next.clGetContextInfo(context->handle, CL_CONTEXT_REFERENCE_COUNT, sizeof(refs),
				       &refs, NULL) &&
		refs > 1);
}

/* What the layer keeps for the context goes first: the driver may count it as references. */
static void context_release_last(struct context *context)
{
	THREAD_NO_CANCEL();

	method_context_release(context->handle);
	if (!context_is_kept(context))
		context_remove(context->handle, context);
}

void context_release(cl_context handle)
{
	struct context *context;

	if (!handle_table_has(&context_table, handle))
		return;
	lock_acquire(&context_table.lock);
	context = handle_table_peek(&context_table, handle);
	if (context && context->record.handles && !--context->record.handles)
		handle_record_hold(&context->record);
	else
		context = NULL;
	lock_release(&context_table.lock);
	if (context)
		context_release_last(context);
	context_put(context);
}

/* A context without a record may be one that a queue kept. */
void context_retained(cl_context handle)
{
	if (handle_table_has(&context_table, handle))
		handle_table_retain(&context_table, handle);
	else
		context_add(handle, NULL, NULL);
}

bool context_is_owned(cl_context handle)
{
	const struct context *context;
	bool is_owned;

	lock_acquire(&context_table.lock);
	context = handle_table_peek(&context_table, handle);
	is_owned = context && context->record.handles;
	lock_release(&context_table.lock);
	return is_owned;
}

static const struct device *context_device(const struct context *context, size_t i)
{
	return device_get(context->devices[i], FACTS_KEPT);
}

static size_t context_larger(size_t a, size_t b)
{
	return a > b ? a : b;
}

/* A driver may keep a copy of a buffer for each root device of a context. */
static bool context_is_shared(const struct method_ops *ops, const struct device *a,
			      const struct device *b)
{
	return a->id == b->id || (ops->shares && ops->shares(a) && ops->shares(b));
}

bool context_lists(const cl_mem_properties *listed, cl_device_id device)
{
	while (*listed && *listed != (cl_mem_properties)(uintptr_t)device)
		listed++;
	return *listed;
}

/* The driver's own function serves all devices if it serves one. */
static bool context_join_native(struct context_import *how, enum import_type type)
{
	for (size_t i = 0; i < how->context->num_devices; i++) {
		const struct device *device = context_device(how->context, i);
		const struct method_ops *ops = !device		     ? NULL
					       : type < IMPORT_TYPES ? device->ops[type]
								     : device->others;

		if (!ops || ops->create)
			continue;
		how->ops = ops;
		how->device = device;
		return true;
	}
	return false;
}

/* The devices that use the memory take it by one method of the layer's; the first that does not is the refuser. */
static bool context_join_users(struct context_import *how, enum import_type type,
			       const cl_mem_properties *listed)
{
	const struct context *context = how->context;

	for (size_t i = 0; i < context->num_devices; i++) {
		const struct device *device = context_device(context, i);

		if (listed && !context_lists(listed, context->devices[i]))
			continue;
		how->refuser = i;
		if (!device || !device->ops[type] || (how->ops && how->ops != device->ops[type]))
			return false;
		how->ops = device->ops[type];
		how->device = how->device ? how->device : device;
		how->align = context_larger(how->align, device->facts.type[type].align);
		how->base_align = context_larger(how->base_align, device->base_align);
	}
	return how->ops;
}

/* The others need not take the memory, but the driver may keep no copy for them. */
static bool context_join_all(struct context_import *how)
{
	for (size_t i = 0; i < how->context->num_devices; i++) {
		const struct device *device = context_device(how->context, i);

		how->refuser = i;
		if (!device || !context_is_shared(how->ops, how->device, device))
			return false;
	}
	return true;
}

void context_find_import_on(struct context *context, enum import_type type,
			    const cl_mem_properties *listed, struct context_import *how)
{
	*how = (struct context_import){ .context = context, .align = 1, .base_align = 1 };
	if (context_join_native(how, type) || type == IMPORT_TYPES)
		return;
	if (!context_join_users(how, type, listed) || !context_join_all(how))
		how->ops = NULL;
}

/* The error where device @i takes no memory of a type; @device may be NULL.  Logged. */
static cl_int context_refuse_device(size_t i, const struct device *device, enum import_type type)
{
	const char *why = device ? device->facts.type[type].why : "its properties cannot be read";

	if (device && !device->ops[type] && !device_is_unknown(device, type)) {
		log_error("device %zu of the context does not support %s: %s", i,
			  type_extension(type), why);
		return CL_INVALID_PROPERTY;
	}
	log_error("it is unknown whether device %zu of the context supports %s: %s", i,
		  type_extension(type), why);
	return CL_OUT_OF_RESOURCES;
}

static cl_int context_refuse_together(const struct device *a, const struct device *b)
{
	char *first = device_string(a->id, CL_DEVICE_NAME),
	     *second = device_string(b->id, CL_DEVICE_NAME);

	log_error("the devices %s and %s of the context are not proved to be zero copy together",
		  first ? first : "", second ? second : "");
	free(first);
	free(second);
	return CL_INVALID_OPERATION;
}

cl_int context_refuse(const struct context_import *how, enum import_type type)
{
	const struct device *device;

	if (!how->context->num_devices) {
		log_error("the context has no devices");
		return CL_INVALID_PROPERTY;
	}
	device = context_device(how->context, how->refuser);
	/* Another thread may know by now what was unknown. */
	if (!device || !device->ops[type] || !how->device)
		return context_refuse_device(how->refuser, device, type);
	if (device->ops[type] == how->device->ops[type])
		return context_refuse_together(how->device, device);
	log_error("the devices of the context take %s by different methods", type_extension(type));
	return CL_INVALID_PROPERTY;
}

const struct context_import *context_get_import(const struct context *context,
						enum import_type type)
{
	return context->is_known ? &context->imports[type] : NULL;
}

/* Devices of which all is known never change. */
static void context_keep_imports(struct context *context)
{
	struct context_import imports[IMPORT_TYPES + 1];

	for (int type = 0; type <= IMPORT_TYPES; type++)
		context_find_import_on(context, (enum import_type)type, NULL, &imports[type]);
	lock_acquire(&context_table.lock);
	if (!context->is_known)
		memcpy(context->imports, imports, sizeof(imports));
	context->is_known = true;
	lock_release(&context_table.lock);
}

void context_find_import(struct context *context, enum import_type type, struct context_import *how)
{
	bool is_whole = true;

	if (context->is_known) {
		*how = context->imports[type];
		return;
	}
	for (size_t i = 0; i < context->num_devices; i++) {
		const struct device *device = device_get(context->devices[i], FACTS_IMPORT);

		is_whole &= device && device_is_whole(device);
	}
	if (is_whole)
		context_keep_imports(context);
	context_find_import_on(context, type, NULL, how);
}

bool context_image2d_from_buffer(const struct context *context)
{
	for (size_t i = 0; i < context->num_devices; i++) {
		const struct device *device = context_device(context, i);

		if (!device || !device->image2d_from_buffer)
			return false;
	}
	return true;
}

size_t context_devices(const struct context *context, const cl_device_id **devices)
{
	*devices = context->devices;
	return context->num_devices;
}

static void context_tell(const struct context *context, const char *function, const char *sentence)
{
	char message[320];

	if (!context->notify)
		return;
	snprintf(message, sizeof(message), "%s: %s", function, sentence);
	context->notify(message, NULL, 0, context->user_data);
}

void context_notify(cl_context handle, const char *function, cl_int err)
{
	THREAD_NO_CANCEL();
	struct context *context = context_get(handle);

	if (context)
		context_tell(context, function, *log_last() ? log_last() : cl_error_name(err));
	context_put(context);
}

void context_warn_once(struct context *context, const char *function, const char *warning)
{
	if (atomic_exchange(&context->is_warned, true)) {
		log_debug("%s", warning);
		return;
	}
	log_error("%s", warning);
	context_tell(context, function, warning);
}
