/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/calls/native_import.h"

#include "icd/calls/properties.h"
#include "icd/config.h"
#include "icd/error.h"
#include "icd/layer.h"
#include "icd/objects/method.h"
#include "icd/objects/memobj.h"
#include "util/log.h"

static import_memory_fn native_import_of_platform(cl_platform_id platform)
{
	if (!next.clGetExtensionFunctionAddressForPlatform)
		return NULL;
	return (import_memory_fn)next.clGetExtensionFunctionAddressForPlatform(platform,
									       "clImportMemoryARM");
}

void native_import_find(const struct context *context, const struct method_ops *ops,
			struct native_import *native)
{
	native->ops = ops;
	native->call = native_import_of_platform(context_platform(context));
	native->has_version = native->call && config.version_is_set;
}

void native_import_find_unrecorded(struct native_import *native)
{
	cl_platform_id platform;
	cl_uint count = 0;

	if (!next.clGetPlatformIDs(1, &platform, &count) && count == 1)
		native->call = native_import_of_platform(platform);
	if (!native->call)
		log_error("the context was not created through this layer, or is gone");
}

/* The record of an import of the driver's, for the rules of the version that was asked for. */
static cl_int native_import_record(const struct import_call *call, const struct method_ops *ops,
				   cl_mem mem)
{
	struct import_region *region;
	cl_int err = error_to_cl(import_of_driver(call->size, sizeof(struct memobj), &region));

	if (err)
		return err;
	*memobj_of(region) = (struct memobj){
		.handle = mem, .context = call->context, .region = region, .method = ops
	};
	err = memobj_add(memobj_of(region));
	if (err)
		import_put(region);
	return err;
}

cl_mem native_import_by_driver(const struct import_call *call, const struct native_import *native,
			       cl_int *errcode_ret)
{
	cl_int err = CL_SUCCESS;
	cl_mem mem;

	if (!native->has_version)
		return native->call(call->context, call->flags, call->properties, call->memory,
				    call->size, errcode_ret);
	mem = native->call(call->context, call->flags, call->properties, call->memory, call->size,
			   &err);
	if (is_created(mem, err)) {
		err = native_import_record(call, native->ops, mem);
		if (err)
			next.clReleaseMemObject(mem);
	}
	if (errcode_ret)
		*errcode_ret = err;
	return err ? NULL : mem;
}
