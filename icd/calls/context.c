/* SPDX-License-Identifier: Apache-2.0 */
/* Creation and release of contexts. */
#include "icd/intercept.h"
#include "icd/layer.h"
#include "icd/objects/context.h"

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

cl_int CL_API_CALL layer_clRetainContext(cl_context context)
{
	cl_int err = next.clRetainContext(context);

	if (!err)
		context_retained(context);
	return err;
}

cl_int CL_API_CALL layer_clReleaseContext(cl_context context)
{
	context_release(context);
	return next.clReleaseContext(context);
}
