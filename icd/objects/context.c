/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/objects/context.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "icd/intercept.h"
#include "icd/layer.h"
#include "icd/methods/method.h"
#include "icd/objects/table.h"
#include "icd/selftest/job.h"
#include "util/lock.h"
#include "util/log.h"

struct context {
	cl_context handle;
	atomic_uint refs;     /* 1 for the table, and callers of context_get() */
	atomic_bool imported; /* an import was asked for */
	bool watched;	    /* the driver tells when it is gone; written before it is handed out */
	unsigned int forks; /* of the process that made it */
	struct context_data *_Atomic data; /* grows at its head only */
	context_notify_fn notify;
	void *user_data;
	size_t num_devices;
	cl_device_id devices[];
};

static void contexts_in_child(struct lock *lock);

LOCK_DEFINE_IN_CHILD(context_lock, LOCK_LAST, contexts_in_child); /* the two below */
static struct table contexts = TABLE_INIT;			  /* cl_context -> struct context */
static unsigned int
	forks; /* between this process and the first; written while one thread is there */

static void contexts_in_child(struct lock *lock)
{
	(void)lock;
	forks++;
}

/* The driver's objects that methods keep for a context. */
static void context_data_release(struct context *context)
{
	for (struct context_data *data = atomic_load(&context->data); data; data = data->next)
		data->ops->release(data);
}

static void context_free(struct context *context)
{
	struct context_data *data = context->data;

	while (data) {
		struct context_data *gone = data;

		data = data->next;
		gone->ops->free(gone);
	}
	free(context);
}

void context_put(struct context *context)
{
	if (context && atomic_fetch_sub_explicit(&context->refs, 1, memory_order_acq_rel) == 1)
		context_free(context);
}

struct context *context_get(cl_context handle)
{
	struct context *context;

	lock_acquire(&context_lock);
	context = table_get(&contexts, handle);
	if (context)
		atomic_fetch_add_explicit(&context->refs, 1, memory_order_relaxed);
	lock_release(&context_lock);
	return context;
}

/* @only: remove this record alone, NULL for any: the address may be another context's by now. */
static void context_remove(cl_context handle, const struct context *only)
{
	struct context *context;

	lock_acquire(&context_lock);
	context = table_get(&contexts, handle);
	if (context && (!only || context == only))
		table_remove(&contexts, handle);
	else
		context = NULL;
	lock_release(&context_lock);
	if (context)
		context_data_release(context);
	context_put(context);
}

static void CL_CALLBACK context_destroyed(cl_context handle, void *record)
{
	context_remove(handle, record);
	context_put(record);
}

/* OpenCL 3.0 tells when a context is gone; before, the last release is watched. */
static void context_watch(struct context *context)
{
	if (!next.clSetContextDestructorCallback || !context->num_devices ||
	    device_version(context->devices[0]) < CL_MAKE_VERSION(3, 0, 0))
		return;
	atomic_fetch_add_explicit(&context->refs, 1, memory_order_relaxed);
	context->watched =
		!next.clSetContextDestructorCallback(context->handle, context_destroyed, context);
	if (!context->watched)
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
	context->refs = 1;
	context->forks = forks;
	context->notify = notify;
	context->user_data = user_data;
	context->num_devices = size / sizeof(context->devices[0]);
	return context;
}

/* A context that cannot be recorded works as ever; imports into it are refused. */
static void context_add(cl_context handle, context_notify_fn notify, void *user_data)
{
	struct context *context = context_create(handle, notify, user_data);
	bool added;

	context_remove(handle, NULL);
	if (!context)
		return;
	lock_acquire(&context_lock);
	added = table_set(&contexts, handle, context);
	lock_release(&context_lock);
	if (added)
		context_watch(context);
	else
		context_put(context);
}

cl_context CL_API_CALL layer_clCreateContext(const cl_context_properties *properties,
					     cl_uint num_devices, const cl_device_id *devices,
					     context_notify_fn notify, void *user_data,
					     cl_int *errcode_ret)
{
	cl_int err = CL_SUCCESS;
	cl_context context =
		next.clCreateContext(properties, num_devices, devices, notify, user_data, &err);

	if (is_created(context, err))
		context_add(context, notify, user_data);
	if (errcode_ret)
		*errcode_ret = err;
	return context;
}

cl_context CL_API_CALL layer_clCreateContextFromType(const cl_context_properties *properties,
						     cl_device_type type, context_notify_fn notify,
						     void *user_data, cl_int *errcode_ret)
{
	cl_int err = CL_SUCCESS;
	cl_context context =
		next.clCreateContextFromType(properties, type, notify, user_data, &err);

	if (is_created(context, err))
		context_add(context, notify, user_data);
	if (errcode_ret)
		*errcode_ret = err;
	return context;
}

/*
 * With one reference left its only owner is giving it up: no other thread may retain it any more.
 * Queues and other objects may keep the context alive in the driver, and give its handle out.  The
 * record of a context that is watched stays until then; others end here.
 */
static void context_release_last(cl_context handle)
{
	struct context *context = context_get(handle);

	if (context && context->watched)
		context_data_release(context);
	else if (context)
		context_remove(handle, context);
	context_put(context);
}

cl_int CL_API_CALL layer_clReleaseContext(cl_context context)
{
	cl_uint refs = 0;

	method_context_release(context);
	if (table_get(&contexts, context) &&
	    !next.clGetContextInfo(context, CL_CONTEXT_REFERENCE_COUNT, sizeof(refs), &refs,
				   NULL) &&
	    refs == 1)
		context_release_last(context);
	return next.clReleaseContext(context);
}

static const struct device *context_device(const struct context *context, size_t i)
{
	return device_get(context->devices[i]);
}

bool context_is_native(const struct context *context, enum import_type type)
{
	for (size_t i = 0; i < context->num_devices; i++) {
		const struct device *device = context_device(context, i);

		if (!device || !device->method[type].ops || device->method[type].ops->create)
			return false;
	}
	return context->num_devices > 0;
}

const struct method_ops *context_method(const struct context *context, enum import_type type,
					size_t *align)
{
	const struct method_ops *ops = NULL;

	*align = 1;
	if (!context->num_devices)
		log_error("the context has no devices");
	for (size_t i = 0; i < context->num_devices; i++) {
		const struct device *device = context_device(context, i);

		if (!device || !device->method[type].ops) {
			log_error("device %zu of the context takes no %s: %s", i,
				  type_extension(type),
				  device ? device->method[type].why
					 : "its properties cannot be read");
			return NULL;
		}
		if (ops && ops != device->method[type].ops) {
			log_error("the devices of the context take %s in different ways",
				  type_extension(type));
			return NULL;
		}
		ops = device->method[type].ops;
		*align = *align > device->method[type].align ? *align : device->method[type].align;
	}
	return ops;
}

struct context_data *context_data_get(struct context *context, const struct context_data_ops *ops)
{
	struct context_data *data = atomic_load_explicit(&context->data, memory_order_acquire);

	while (data && data->ops != ops)
		data = data->next;
	return data;
}

struct context_data *context_data_add(struct context *context, struct context_data *data)
{
	struct context_data *found;

	data->next = atomic_load(&context->data);
	do {
		found = context_data_get(context, data->ops);
		if (found) {
			data->ops->free(data);
			return found;
		}
	} while (!atomic_compare_exchange_weak(&context->data, &data->next, data));
	return data;
}

void context_tests_begin(const struct context *context)
{
	if (context->forks != forks)
		job_forbid();
}

cl_int context_tests_end(const struct context *context, cl_int err)
{
	if (context->forks == forks || !job_allow() || !err)
		return err;
	log_error("this process was forked from the one that made the context, so the driver "
		  "cannot be tested; the process that made it had imported no such memory");
	return CL_INVALID_OPERATION;
}

bool context_is_first_import(struct context *context)
{
	return !atomic_load_explicit(&context->imported, memory_order_relaxed) &&
	       !atomic_exchange(&context->imported, true);
}

cl_platform_id context_platform(const struct context *context)
{
	const struct device *device = context->num_devices ? context_device(context, 0) : NULL;

	return device ? device->platform : NULL;
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

void context_notify(const struct context *context, const char *function, cl_int err)
{
	const char *sentence = log_last();
	char message[320];

	if (!context || !context->notify || !err)
		return;
	if (*sentence)
		snprintf(message, sizeof(message), "%s: %s", function, sentence);
	else
		snprintf(message, sizeof(message), "%s failed with error %d", function, err);
	context->notify(message, NULL, 0, context->user_data);
}
