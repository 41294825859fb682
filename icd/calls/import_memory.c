/* SPDX-License-Identifier: Apache-2.0 */
/* clImportMemoryARM. */
#include <stdint.h>
#include <stdio.h>

#include "icd/calls/native_import.h"
#include "icd/calls/properties.h"
#include "icd/methods/verify.h"
#include "icd/config.h"
#include "icd/error.h"
#include "icd/intercept.h"
#include "icd/layer.h"
#include "icd/methods/method.h"
#include "icd/objects/context.h"
#include "icd/objects/memobj_watch.h"
#include "icd/program.h"
#include "util/log.h"
#include "util/thread.h"

struct request {
	struct properties properties;
	cl_mem_flags flags;
	struct import_desc desc;
};

/* What is larger than any memory was negative, or an overflow, before it was a size_t. */
static bool size_is_valid(size_t size)
{
	return size && size <= PTRDIFF_MAX;
}

static void size_refuse(size_t size)
{
	if (!size)
		log_error("size is 0");
	else if (size == CL_IMPORT_MEMORY_WHOLE_ALLOCATION_ARM)
		log_error("size is CL_IMPORT_MEMORY_WHOLE_ALLOCATION_ARM, which is for Android's "
			  "hardware buffers: other memory needs its size in bytes");
	else
		log_error("size is %td, taken as a size_t", (ptrdiff_t)size);
}

static cl_int request_parse(const struct import_call *call, struct request *r)
{
	cl_int err = properties_parse(call->properties, &r->properties);

	if (!err)
		err = flags_parse(call->flags, &r->flags);
	if (err)
		return err;
	if (!call->memory) {
		log_error("memory is NULL");
		return CL_INVALID_VALUE;
	}
	if (!size_is_valid(call->size)) {
		size_refuse(call->size);
		return CL_INVALID_BUFFER_SIZE;
	}
	r->desc = (struct import_desc){
		.type = r->properties.type,
		.memory = call->memory,
		.size = call->size,
		.access = flags_access(r->flags),
	};
	return CL_SUCCESS;
}

/* Revision 10: "Prior to the introduction of [the property] drivers always managed data consistency". */
static bool keeps_consistent(const struct properties *p)
{
	if (p->consistency == CONSISTENCY_DEFAULT)
		return !config_host_access();
	return p->consistency == CONSISTENCY_RUNTIME;
}

static cl_int import_memory_record(const struct method_ops *ops, const struct method_buffer *buffer,
				   cl_context context, struct import_region *region)
{
	const struct memobj like = {
		.handle = buffer->handle,
		.context = context,
		.region = region,
		.bracket = import_needs_bracket(region),
		.method = ops,
		.hidden = buffer->hidden,
	};

	return memobj_add(&like);
}

/* The region is held until the driver has destroyed the buffer, also on failure. */
static cl_int import_memory_finish(cl_context handle, const struct method_ops *ops,
				   struct import_region *region, const struct method_buffer *buffer)
{
	cl_int err = memobj_watch(buffer->handle, region, memobj_destroyed);

	return err ? err : import_memory_record(ops, buffer, handle, region);
}

static cl_mem import_memory_create(cl_context handle, struct context *context,
				   const struct method_ops *ops, const struct request *r,
				   struct import_region *region, size_t align, cl_int *err)
{
	const cl_mem_flags flags = flags_restrict(r->flags, region->access);
	struct method_buffer buffer = { NULL, NULL };

	region->unsynced = !keeps_consistent(&r->properties);
	*err = ops->prove ? ops->prove(context, region, flags, align) : CL_SUCCESS;
	if (!*err && config_verify())
		*err = verify_import(context, ops, region, flags, align);
	if (!*err)
		*err = ops->create(handle, flags, region, align, &buffer);
	if (*err)
		return NULL;
	*err = import_memory_finish(handle, ops, region, &buffer);
	if (!*err)
		return buffer.handle;
	next.clReleaseMemObject(buffer.handle);
	if (buffer.hidden)
		ops->release_hidden(buffer.hidden);
	return NULL;
}

/*
 * "The more restrictive READ_ONLY will take precedence": the import succeeds though the program asked
 * to write.  Its next kernel may read alone, as a camera's consumer does, or die of SIGSEGV.
 */
static void import_memory_warn(struct context *context, const struct import_region *region)
{
	char warning[LOG_MESSAGE_SIZE];

	if (!region->reduced)
		return;
	snprintf(
		warning, sizeof(warning),
		"this dma-buf is imported CL_MEM_READ_ONLY, and a kernel that writes to it may end "
		"the program: %s",
		region->read_only);
	context_warn_once(context, "clImportMemoryARM", warning);
}

/* The driver may have failed to tell of the type before. */
static cl_int import_memory_by_native(const struct context *context, const struct method_ops *ops,
				      struct native_import *native)
{
	native_import_find_by(context, ops, native);
	if (native->call)
		return CL_SUCCESS;
	log_error("the driver reports the extension, but has no clImportMemoryARM");
	return CL_INVALID_OPERATION;
}

static cl_mem import_memory_import(cl_context handle, struct context *context, struct request *r,
				   cl_int *err, struct native_import *native)
{
	const struct method_ops *ops;
	struct import_region *region;
	cl_mem mem;
	size_t align;

	ops = context_method(context, r->properties.type, &align, err);
	if (!ops)
		return NULL;
	if (!ops->create) {
		*err = import_memory_by_native(context, ops, native);
		return NULL;
	}
	r->desc.cpu_optional = ops->cpu_optional;
	*err = error_to_cl(import_get(&r->desc, &region));
	if (*err)
		return NULL;
	mem = import_memory_create(handle, context, ops, r, region, align, err);
	if (mem)
		import_memory_warn(context, region);
	import_put(region); /* on success the object holds the region */
	return mem;
}

/*
 * The first import runs the self-tests of the devices.  Drivers map memory for self-tests, perhaps
 * where the application has a hole, so host memory is checked before.
 */
static cl_int check_before_tests(struct context *context, const struct import_call *call)
{
	const struct import_desc desc = { IMPORT_HOST, call->memory, call->size,
					  flags_access(call->flags), false };
	struct import_region *region;
	cl_int err;

	if (!context_is_first_import(context) ||
	    native_import_type(call->properties) != IMPORT_HOST || !call->memory ||
	    !size_is_valid(call->size))
		return CL_SUCCESS;
	err = error_to_cl(import_get(&desc, &region));
	if (!err)
		import_put(region);
	return err;
}

/*
 * In a context with a record.  @native: set if the driver's own function is to be called instead.
 * A request that is wrong in itself is refused before memory that is not mapped.
 */
static cl_mem import_memory_in(struct context *context, const struct import_call *call, cl_int *err,
			       struct native_import *native)
{
	cl_int hole = check_before_tests(context, call);
	struct request r;

	*err = CL_SUCCESS;
	context_test(context);
	native_import_find(context, call->properties, native);
	if (native->call)
		return NULL;
	*err = request_parse(call, &r);
	if (!*err)
		*err = hole;
	return *err ? NULL : import_memory_import(call->context, context, &r, err, native);
}

/*
 * The layer's import.  A thread that is cancelled in a call of the layer to the driver would leave
 * the import half made.
 */
static cl_mem import_unless_native(const struct import_call *call, cl_int *err,
				   struct native_import *native)
{
	THREAD_NO_CANCEL();
	struct context *context = context_get(call->context);
	cl_mem mem;

	log_clear();
	*err = CL_INVALID_CONTEXT;
	if (!context) {
		native_import_find_unrecorded(call, native);
		return NULL;
	}
	mem = import_memory_in(context, call, err, native);
	context_notify(context, "clImportMemoryARM", *err);
	context_put(context);
	return mem;
}

cl_mem CL_API_CALL layer_clImportMemoryARM(cl_context handle, cl_mem_flags flags,
					   const cl_import_properties_arm *properties, void *memory,
					   size_t size, cl_int *errcode_ret)
{
	const struct import_call call = { handle, flags, properties, memory, size };
	struct native_import native = { .call = NULL };
	cl_int err;
	cl_mem mem = import_unless_native(&call, &err, &native);

	program_needs_no_hint();
	if (native.call)
		return native_import_by_driver(&call, &native, errcode_ret);
	if (errcode_ret)
		*errcode_ret = err;
	return mem;
}
