/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/methods/khr/buffer.h"

#include "icd/layer.h"
#include "icd/objects/extensions.h"
#include "util/cl_names.h"
#include "util/descriptor.h"
#include "util/log.h"

#define HOST_POINTERS (CL_MEM_USE_HOST_PTR | CL_MEM_ALLOC_HOST_PTR | CL_MEM_COPY_HOST_PTR)

/* The driver closes the descriptor with the buffer, and perhaps also where the driver fails. */
static cl_mem khr_buffer_of(cl_context context, cl_mem_flags flags, int own, size_t size,
			    cl_int *err)
{
	const cl_mem_properties properties[] = {
		CL_EXTERNAL_MEMORY_HANDLE_DMA_BUF_KHR,
		(cl_mem_properties)own,
		0,
	};
	struct descriptor_id id;
	cl_mem mem;

	*err = CL_OUT_OF_RESOURCES;
	if (descriptor_identify(own, &id))
		return NULL;
	mem = created_or_null(
		next.clCreateBufferWithProperties(context, properties, flags, size, NULL, err),
		err);
	if (mem)
		return mem;
	descriptor_close(own, &id);
	log_error("the driver makes no buffer of %zu bytes from a dma-buf: %s", size,
		  cl_error_name(*err));
	return NULL;
}

cl_mem khr_buffer(cl_context context, cl_mem_flags flags, int fd, size_t size, cl_int *err)
{
	const int own = descriptor_duplicate(fd);

	if (own >= 0)
		return khr_buffer_of(context, flags & ~(cl_mem_flags)HOST_POINTERS, own, size, err);
	*err = CL_OUT_OF_RESOURCES;
	return NULL;
}

cl_int khr_enqueue_acquire(cl_command_queue queue, cl_uint count, const cl_mem *imports,
			   cl_uint num_wait, const cl_event *wait, cl_event *event)
{
	const struct extensions *driver;
	const cl_int err = extensions_of_queue(queue, &driver);

	if (err || !driver->clEnqueueAcquireExternalMemObjectsKHR)
		return err ? err : CL_INVALID_COMMAND_QUEUE;
	return driver->clEnqueueAcquireExternalMemObjectsKHR(queue, count, imports, num_wait, wait,
							     event);
}

cl_int khr_enqueue_release(cl_command_queue queue, cl_uint count, const cl_mem *imports,
			   cl_uint num_wait, const cl_event *wait, cl_event *event)
{
	const struct extensions *driver;
	const cl_int err = extensions_of_queue(queue, &driver);

	if (err || !driver->clEnqueueReleaseExternalMemObjectsKHR)
		return err ? err : CL_INVALID_COMMAND_QUEUE;
	return driver->clEnqueueReleaseExternalMemObjectsKHR(queue, count, imports, num_wait, wait,
							     event);
}

bool khr_has_functions(cl_platform_id platform)
{
	const struct extensions *driver = extensions_of_platform(platform);

	return driver->clEnqueueAcquireExternalMemObjectsKHR &&
	       driver->clEnqueueReleaseExternalMemObjectsKHR && next.clCreateBufferWithProperties;
}
