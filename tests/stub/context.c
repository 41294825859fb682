/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts. */
#include "internal.h"

#include <stdio.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards all contexts' callbacks */
FORK_SAFE(lock, 104);

/* Copies at most three pairs and the terminator. */
static cl_int properties_keep(struct context *context, const cl_context_properties *properties)
{
	size_t n = 0;

	for (; properties && properties[n]; n += 2) {
		if (n == 6)
			return CL_INVALID_PROPERTY;
		if (properties[n] == CL_CONTEXT_PLATFORM &&
		    !object_get((void *)properties[n + 1], STUB_PLATFORM))
			return CL_INVALID_PLATFORM;
		memcpy(&context->properties[n], &properties[n], 2 * sizeof(*properties));
	}
	context->num_properties = properties ? n + 1 : 0;
	return CL_SUCCESS;
}

static cl_int context_fill(struct context *context, const cl_context_properties *properties,
			   cl_uint num, const cl_device_id *devices)
{
	if (!num || !devices || num > MAX_DEVICES)
		return CL_INVALID_VALUE;
	for (cl_uint i = 0; i < num; i++) {
		context->device[i] = object_get(devices[i], STUB_DEVICE);
		if (!context->device[i] ||
		    context->device[i]->platform != context->device[0]->platform)
			return CL_INVALID_DEVICE;
	}
	context->num_devices = num;
	return properties_keep(context, properties);
}

static cl_int context_call_preloaded(const struct context *context)
{
	cl_int err = CL_SUCCESS;

	for (cl_uint i = 0; i < context->num_devices && !err; i++)
		err = device_call_preloaded(context->device[i], "stub_preloaded");
	return err;
}

cl_context CL_API_CALL stub_clCreateContext(const cl_context_properties *properties, cl_uint num,
					    const cl_device_id *devices,
					    void(CL_CALLBACK *notify)(const char *, const void *,
								      size_t, void *),
					    void *data, cl_int *errcode_ret)
{
	cl_int err = CALL(clCreateContext, U(properties), U(num), U(devices), U(notify), U(data));
	struct context *context;

	if (err)
		return creation_failed(errcode_ret, err);
	context = object_create(STUB_CONTEXT);
	context->handles = 1;
	err = context_fill(context, properties, num, devices);
	if (!err)
		err = context_call_preloaded(context);
	if (err) {
		object_destroy(context);
		return creation_failed(errcode_ret, err);
	}
	for (cl_uint i = 0; i < num; i++)
		stub_clRetainDevice(devices[i]);
	if (errcode_ret)
		*errcode_ret = CL_SUCCESS;
	return (cl_context)context;
}

static cl_platform_id platform_in(const cl_context_properties *properties)
{
	for (; properties && *properties; properties += 2)
		if (*properties == CL_CONTEXT_PLATFORM)
			return (cl_platform_id)properties[1];
	return NULL;
}

cl_context CL_API_CALL
stub_clCreateContextFromType(const cl_context_properties *properties, cl_device_type type,
			     void(CL_CALLBACK *notify)(const char *, const void *, size_t, void *),
			     void *data, cl_int *errcode_ret)
{
	cl_int err = CALL(clCreateContextFromType, U(properties), U(type), U(notify), U(data));
	cl_device_id devices[MAX_DEVICES];
	cl_uint num;

	if (!err)
		err = stub_clGetDeviceIDs(platform_in(properties), type, MAX_DEVICES, devices,
					  &num);
	if (err)
		return creation_failed(errcode_ret, err);
	return stub_clCreateContext(properties, num, devices, notify, data, errcode_ret);
}

static void stub_context_destroy(struct context *context)
{
	struct callback *c;

	while ((c = context->callbacks)) {
		context->callbacks = c->next;
		c->call.context((cl_context)context, c->data);
		free(c);
	}
	for (cl_uint i = 0; i < context->num_devices; i++)
		stub_clReleaseDevice((cl_device_id)context->device[i]);
	object_destroy(context);
}

void stub_context_put(struct context *context)
{
	if (object_release(context))
		stub_context_destroy(context);
}

bool context_has(const struct context *context, const struct device *device)
{
	for (cl_uint i = 0; i < context->num_devices; i++)
		if (context->device[i] == device)
			return true;
	return false;
}

bool context_option(const struct context *context, enum stub_option option)
{
	for (cl_uint i = 0; i < context->num_devices; i++)
		if (device_option(context->device[i], option))
			return true;
	return false;
}

cl_int CL_API_CALL stub_clRetainContext(cl_context handle)
{
	struct context *context = object_get(handle, STUB_CONTEXT);

	cl_int err = CALL(clRetainContext, U(handle));

	if (err)
		return err;
	if (!context)
		return CL_INVALID_CONTEXT;
	context->handles++;
	object_retain(context);
	return CL_SUCCESS;
}

cl_int CL_API_CALL stub_clReleaseContext(cl_context handle)
{
	struct context *context = object_get(handle, STUB_CONTEXT);

	cl_int err = CALL(clReleaseContext, U(handle));

	if (err)
		return err;
	if (!context)
		return CL_INVALID_CONTEXT;
	context->handles--;
	stub_context_put(context);
	return CL_SUCCESS;
}

cl_int CL_API_CALL stub_clGetContextInfo(cl_context handle, cl_context_info name, size_t room,
					 void *out, size_t *size_ret)
{
	struct context *context = object_get(handle, STUB_CONTEXT);
	cl_int err = CALL(clGetContextInfo, U(handle), U(name), U(room), U(out), U(size_ret));
	cl_uint refs, num_devices;

	if (err)
		return err;
	if (!context)
		return CL_INVALID_CONTEXT;
	refs = stub_get(STUB_OWN_REFERENCES) ? context->handles : (cl_uint)context->base.refs;
	num_devices = stub_get(STUB_NO_CONTEXT_DEVICES) ? 0 : context->num_devices;
	switch (name) {
	case CL_CONTEXT_REFERENCE_COUNT:
		return info_put(&refs, sizeof(refs), room, out, size_ret);
	case CL_CONTEXT_NUM_DEVICES:
		return info_put(&num_devices, sizeof(cl_uint), room, out, size_ret);
	case CL_CONTEXT_DEVICES:
		return info_put(context->device, num_devices * sizeof(void *), room, out, size_ret);
	case CL_CONTEXT_PROPERTIES:
		return info_put(context->properties,
				context->num_properties * sizeof(*context->properties), room, out,
				size_ret);
	}
	return CL_INVALID_VALUE;
}

cl_int CL_API_CALL stub_clSetContextDestructorCallback(
	cl_context handle, void(CL_CALLBACK *notify)(cl_context, void *), void *data)
{
	struct context *context = object_get(handle, STUB_CONTEXT);
	cl_int err = CALL(clSetContextDestructorCallback, U(handle), U(notify), U(data));
	struct callback *c;

	if (stub_get(STUB_NO_CONTEXT_CALLBACKS)) {
		fprintf(stderr, "a context has a destructor callback\n");
		abort();
	}
	if (err)
		return err;
	if (!context)
		return CL_INVALID_CONTEXT;
	if (!notify)
		return CL_INVALID_VALUE;
	c = calloc(1, sizeof(*c));
	c->call.context = notify;
	c->data = data;
	pthread_mutex_lock(&lock);
	c->next = context->callbacks;
	context->callbacks = c;
	pthread_mutex_unlock(&lock);
	return CL_SUCCESS;
}
