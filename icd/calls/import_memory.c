/* SPDX-License-Identifier: Apache-2.0 */
/* What all doors have in common, and clImportMemoryARM. */
#include <stdint.h>
#include <stdio.h>

#include "icd/calls/import_create.h"
#include "icd/calls/properties.h"
#include "icd/config.h"
#include "icd/error.h"
#include "icd/intercept.h"
#include "icd/layer.h"
#include "icd/methods/verify.h"
#include "icd/objects/backing.h"
#include "icd/objects/context.h"
#include "icd/objects/memobj.h"
#include "icd/objects/method.h"
#include "util/log.h"
#include "util/thread.h"

/* What is larger than any memory was negative, or an overflow, before it was a size_t. */
cl_int size_check(size_t size)
{
	if (size && size <= PTRDIFF_MAX)
		return CL_SUCCESS;
	if (!size)
		log_error("size is 0");
	else if (size == CL_IMPORT_MEMORY_WHOLE_ALLOCATION_ARM)
		log_error("size is CL_IMPORT_MEMORY_WHOLE_ALLOCATION_ARM, which is for Android's "
			  "hardware buffers: other memory needs its size in bytes");
	else
		log_error("size %zu is larger than any memory: is it an overflow, or the negative "
			  "number %td?",
			  size, (ptrdiff_t)size);
	return CL_INVALID_BUFFER_SIZE;
}

/*
 * "The more restrictive READ_ONLY will take precedence": the import succeeds though the program asked
 * to write.  Its next kernel may read alone, as a camera's consumer does, or die of SIGSEGV.
 */
static void import_warn(struct context *context, const char *function,
			const struct import_region *region)
{
	char warning[LOG_MESSAGE_SIZE];

	snprintf(
		warning, sizeof(warning),
		"this dma-buf is imported CL_MEM_READ_ONLY, and a kernel that writes to it may end "
		"the program: %s",
		region->read_only);
	context_warn_once(context, function, warning);
}

cl_mem import_create(const struct context_import *how, const struct import_request *r, cl_int *err)
{
	const struct import_desc desc = { .type = r->type,
					  .memory = r->memory,
					  .size = r->size,
					  .access = flags_access(r->flags),
					  .cpu_optional = how->ops->cpu_optional,
					  .room = sizeof(struct memobj) };
	struct method_buffer buffer = { .backing = NULL };
	struct import_region *region;
	cl_mem_flags flags = r->flags;
	struct memobj *obj;
	int ret = import_get(&desc, &region);

	if (ret) {
		*err = error_to_cl(ret);
		return NULL;
	}
	region->unsynced = how->ops->unsynced;
	if (desc.access & ~region->access)
		flags = flags_restrict(flags, region->access);

	*err = how->ops->create(r->context, how, flags, region, &buffer);
	if (*err)
		goto out_region;
	if (config.verify)
		*err = verify_import(how, flags, region);
	if (*err)
		goto out_buffer;
	if (flags != r->flags)
		import_warn(how->context, r->function, region);

	obj = memobj_of(region);
	*obj = (struct memobj){ .handle = buffer.handle,
				.context = r->context,
				.region = region,
				.is_managed = r->is_managed,
				.external = r->external,
				.properties = r->properties,
				.method = how->ops,
				.backing = buffer.backing,
				.offset = buffer.offset };
	*err = memobj_hold_until_destroyed(buffer.handle, region);
	if (!*err)
		*err = memobj_add(obj);
	if (!*err)
		return buffer.handle;

out_buffer:
	next.clReleaseMemObject(buffer.handle);
	if (buffer.backing)
		backing_put(buffer.backing);
out_region:
	import_put(region);
	return NULL;
}

/* The arguments of the application. */
struct import_call {
	cl_context context;
	cl_mem_flags flags;
	const cl_import_properties_arm *properties;
	void *memory;
	size_t size;
};

typedef __typeof__(&clImportMemoryARM) import_memory_fn;

/* The function of a driver that has clImportMemoryARM itself, for a type that it serves. */
struct native_import {
	import_memory_fn call; /* NULL: the layer imports */
	const struct method_ops
		*recorded; /* by the rules of the version that was asked for; or NULL */
};

static import_memory_fn native_import_of_platform(cl_platform_id platform)
{
	if (!next.clGetExtensionFunctionAddressForPlatform)
		return NULL;
	return (import_memory_fn)next.clGetExtensionFunctionAddressForPlatform(platform,
									       "clImportMemoryARM");
}

/*
 * In a context without a record.  The handle may be wrong, and is not read: where there is one platform, the
 * platform's function gets it, as without the layer.
 */
static void native_import_find_unrecorded(struct native_import *native)
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

/* The driver's import, with the driver's rules, or with those of a version as well. */
static cl_mem native_import_by_driver(const struct import_call *call,
				      const struct native_import *native, cl_int *errcode_ret)
{
	cl_int err = CL_SUCCESS;
	cl_mem mem;

	if (!native->recorded)
		return native->call(call->context, call->flags, call->properties, call->memory,
				    call->size, errcode_ret);
	mem = native->call(call->context, call->flags, call->properties, call->memory, call->size,
			   &err);
	if (is_created(mem, err)) {
		err = native_import_record(call, native->recorded, mem);
		if (err)
			next.clReleaseMemObject(mem);
	}
	if (errcode_ret)
		*errcode_ret = err;
	return err ? NULL : mem;
}

static cl_int import_memory_refuse(const struct context_import *how, enum import_type type)
{
	if (!how->ops)
		return context_refuse(how, type);
	log_error("the driver reports the extension, but has no clImportMemoryARM");
	return CL_INVALID_OPERATION;
}

/*
 * The layer's import.  @native: set if the driver's own function is to be called instead.
 * A thread that is cancelled in a call of the layer to the driver would leave the import half made.
 */
static cl_mem import_memory(const struct import_call *call, struct native_import *native,
			    cl_int *errcode)
{
	THREAD_NO_CANCEL();
	struct context *context = context_get(call->context);
	cl_int err = CL_SUCCESS;
	struct properties properties;
	const struct context_import *how;
	struct context_import found;
	enum import_type type;
	cl_mem_flags flags;
	cl_mem buffer = NULL;
	bool is_managed;

	log_clear();
	*errcode = CL_INVALID_CONTEXT;
	if (!context) {
		native_import_find_unrecorded(native);
		return NULL;
	}
	type = properties_type(call->properties);
	how = context_get_import(context, type);
	if (!how) {
		how = &found;
		context_find_import(context, type, &found);
	}
	if (how->ops && !how->ops->create) {
		native->call = native_import_of_platform(how->device->platform);
		native->recorded = config.version_is_set ? how->ops : NULL;
	}
	if (native->call)
		goto out;

	err = properties_parse(call->properties, &properties);
	if (!err)
		err = flags_parse(call->flags, &flags);
	if (!err && !call->memory) {
		log_error("memory is NULL");
		err = CL_INVALID_VALUE;
	}
	if (!err)
		err = size_check(call->size);
	if (!err && (!how->ops || !how->ops->create))
		err = import_memory_refuse(how, type);
	if (err)
		goto out;

	/*
	 * Without the property the application keeps dma-bufs consistent, from version 1.1.0 on: "Prior to the
	 * introduction of [the property] drivers always managed data consistency" (revision 10).
	 */
	is_managed = properties.consistency == CONSISTENCY_DEFAULT
			     ? !config.host_access
			     : properties.consistency == CONSISTENCY_RUNTIME;
	buffer = import_create(how,
			       &(struct import_request){ .function = "clImportMemoryARM",
							 .context = call->context,
							 .flags = flags,
							 .type = type,
							 .memory = call->memory,
							 .size = call->size,
							 .is_managed = is_managed },
			       &err);
out:
	context_put(context);
	if (err)
		context_notify(call->context, "clImportMemoryARM", err);
	*errcode = err;
	return buffer;
}

cl_mem CL_API_CALL layer_clImportMemoryARM(cl_context handle, cl_mem_flags flags,
					   const cl_import_properties_arm *properties, void *memory,
					   size_t size, cl_int *errcode_ret)
{
	const struct import_call call = { handle, flags, properties, memory, size };
	struct native_import native = { .call = NULL };
	cl_int err;
	cl_mem mem = import_memory(&call, &native, &err);

	if (native.call)
		return native_import_by_driver(&call, &native, errcode_ret);
	if (errcode_ret)
		*errcode_ret = err;
	return mem;
}
