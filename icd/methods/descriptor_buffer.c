/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/methods/descriptor_buffer.h"

#include "icd/layer.h"
#include "icd/objects/backing.h"
#include "util/cl_names.h"
#include "util/descriptor.h"
#include "util/log.h"

/* The driver closes the descriptor with the buffer, and perhaps also where the driver fails. */
static cl_mem descriptor_buffer_try(cl_context context, cl_mem_properties handle_type,
				    cl_mem_flags flags, int fd, size_t size, cl_int *err)
{
	const int own = descriptor_duplicate(fd);
	const cl_mem_properties properties[] = { handle_type, (cl_mem_properties)own, 0 };
	struct descriptor_id id;
	cl_mem mem;

	*err = CL_OUT_OF_RESOURCES;
	if (own < 0 || descriptor_identify(own, &id))
		return NULL;
	mem = next.clCreateBufferWithProperties(context, properties, flags, size, NULL, err);
	if (is_created(mem, *err))
		return mem;
	/* A driver may return an object together with a positive error, which is not of OpenCL (opaque_fd). */
	if (mem && *err > 0)
		next.clReleaseMemObject(mem);
	descriptor_close(own, &id);
	created_or_null(NULL, err);
	log_error("the driver makes no buffer of %zu bytes from a descriptor: %s", size,
		  cl_error_name(*err));
	return NULL;
}

cl_mem descriptor_buffer(cl_context context, cl_mem_properties handle_type, cl_mem_flags flags,
			 int fd, size_t size, cl_int *err)
{
	struct shortage_retry retry = { 0 };
	cl_mem mem;

	log_hold();
	do
		mem = descriptor_buffer_try(context, handle_type, flags, fd, size, err);
	while (*err && backing_retry(&retry, *err));
	log_resume(*err);
	if (*err > 0)
		*err = CL_INVALID_OPERATION;
	return mem;
}
