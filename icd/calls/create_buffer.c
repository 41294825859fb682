/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Buffers of programs that never heard of the extension.
 *
 * With CLIMPORT_HOST_PTR=1 a buffer with CL_MEM_USE_HOST_PTR becomes an import, an *in-place buffer*
 * (objects/in_place.h), where the driver copies host pointers.  Where that is not possible, for
 * whatever reason, the driver makes the buffer that the program has asked for.  So a program gets no
 * error of the layer's, and each error of the driver's.  A decision says which, for each buffer.
 */
#include "icd/calls/import_memory.h"
#include "icd/calls/in_place.h"
#include "icd/config.h"
#include "icd/intercept.h"
#include "icd/layer.h"
#include "icd/objects/svm.h"
#include "util/log.h"
#include "util/thread.h"

struct create_buffer_call {
	const char *function; /* the name */
	bool with_properties; /* the function is clCreateBufferWithProperties */
	cl_context context;
	const cl_mem_properties *properties;
	cl_mem_flags flags;
	size_t size;
	void *host_ptr;
};

/* Whether the program asks for a buffer on its memory.  The driver has the error for wrong arguments. */
static bool create_buffer_is_wanted(const struct create_buffer_call *c)
{
	return c->flags & CL_MEM_USE_HOST_PTR && c->size && c->host_ptr && config_in_place();
}

static cl_mem create_buffer_import(const struct create_buffer_call *c, struct context *context,
				   cl_int *err)
{
	const struct in_place_request request = {
		.flags = c->flags,
		.memory = c->host_ptr,
		.size = c->size,
		.in_place = in_place_create(c->flags, c->properties),
	};
	cl_mem mem;

	*err = CL_OUT_OF_HOST_MEMORY;
	if (!request.in_place)
		return NULL;
	mem = import_memory_in_place(c->context, context, &request, err);
	if (!mem)
		in_place_free(request.in_place);
	return mem;
}

/* NULL, logged: the driver's buffer has to do. */
static cl_mem create_buffer_try(const struct create_buffer_call *c, struct context *context)
{
	cl_int err = CL_INVALID_OPERATION;
	cl_mem mem = NULL;

	if (!context)
		log_error("the context was not created through this layer, or is gone");
	else if (c->properties && *c->properties)
		log_error("the program asks for properties");
	else if (svm_overlaps(c->host_ptr, c->size))
		log_error("the memory is of clSVMAlloc()");
	else if (!context_may_work_in_place(context))
		log_error("climport replaces no buffers of this driver, which may use host "
			  "memory in place itself");
	else
		mem = create_buffer_import(c, context, &err);
	return mem;
}

/* A thread that is cancelled in a call of the layer to the driver would leave the import half made. */
static cl_mem create_buffer_in_place(const struct create_buffer_call *c)
{
	THREAD_NO_CANCEL();
	struct context *context = context_get(c->context);
	cl_mem mem;

	log_hold();
	if (context)
		context_tests_begin(context);
	mem = create_buffer_try(c, context);
	if (context)
		context_tests_end(context, mem ? CL_SUCCESS : CL_INVALID_OPERATION);
	if (mem)
		log_debug("%s: %zu bytes at %p: in place", c->function, c->size, c->host_ptr);
	else
		log_debug("%s: %zu bytes at %p: the driver's own buffer: %s", c->function, c->size,
			  c->host_ptr, log_last());
	log_clear();
	log_resume(false);
	context_put(context);
	return mem;
}

static cl_mem create_buffer_by_driver(const struct create_buffer_call *c, cl_int *errcode_ret)
{
	if (c->with_properties)
		return next.clCreateBufferWithProperties(c->context, c->properties, c->flags,
							 c->size, c->host_ptr, errcode_ret);
	return next.clCreateBuffer(c->context, c->flags, c->size, c->host_ptr, errcode_ret);
}

static cl_mem create_buffer(const struct create_buffer_call *c, cl_int *errcode_ret)
{
	cl_mem mem = create_buffer_is_wanted(c) ? create_buffer_in_place(c) : NULL;

	if (!mem)
		return create_buffer_by_driver(c, errcode_ret);
	if (errcode_ret)
		*errcode_ret = CL_SUCCESS;
	return mem;
}

cl_mem CL_API_CALL layer_clCreateBuffer(cl_context context, cl_mem_flags flags, size_t size,
					void *host_ptr, cl_int *errcode_ret)
{
	const struct create_buffer_call c = { "clCreateBuffer", false, context, NULL, flags, size,
					      host_ptr };

	return create_buffer(&c, errcode_ret);
}

cl_mem CL_API_CALL layer_clCreateBufferWithProperties(cl_context context,
						      const cl_mem_properties *properties,
						      cl_mem_flags flags, size_t size,
						      void *host_ptr, cl_int *errcode_ret)
{
	const struct create_buffer_call c = {
		"clCreateBufferWithProperties", true, context, properties, flags, size, host_ptr
	};

	return create_buffer(&c, errcode_ret);
}
