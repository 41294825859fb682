/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A library of OpenCL for tests of the suite: the stub driver, with memory that is protected by TrustZone
 * Media Protection.  Preloaded, the library is also the heap of the memory: every file is a dma-buf
 * heap.  The variable BAD names a rule of the text that the driver does not keep.
 */
#include <linux/dma-heap.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "stub.h"

enum { OBJECTS = 64 };

static cl_mem protected_mems[OBJECTS];
static cl_kernel protected_kernels[OBJECTS];
static size_t mem_count, kernel_count;

static bool protected_is_bad(const char *rule)
{
	const char *bad = getenv("BAD");

	return bad && !strcmp(bad, rule);
}

STUB_API int ioctl(int fd, unsigned long request, ...)
{
	struct dma_heap_allocation_data *data;
	va_list args;

	va_start(args, request);
	data = va_arg(args, void *);
	va_end(args);
	if (request != DMA_HEAP_IOCTL_ALLOC)
		return (int)syscall(SYS_ioctl, fd, request, data);
	data->fd = (__u32)memfd_create("protected", MFD_CLOEXEC);
	return ftruncate((int)data->fd, (off_t)data->len);
}

STUB_API cl_int CL_API_CALL clGetDeviceInfo(cl_device_id device, cl_device_info what, size_t room,
					    void *out, size_t *size)
{
	char text[1024] = "";
	size_t length;
	cl_int error;

	if (what != CL_DEVICE_EXTENSIONS)
		return stub_dispatch.clGetDeviceInfo(device, what, room, out, size);
	error = stub_dispatch.clGetDeviceInfo(device, what, sizeof(text) / 2, text, NULL);
	strcat(text, " cl_arm_import_memory_protected");
	length = strlen(text) + 1;
	if (!error && out && room < length)
		return CL_INVALID_VALUE;
	if (!error && out)
		memcpy(out, text, length);
	if (!error && size)
		*size = length;
	return error;
}

static bool protected_has(const cl_import_properties_arm *properties, cl_import_properties_arm name,
			  cl_import_properties_arm value)
{
	for (; properties && properties[0]; properties += 2)
		if (properties[0] == name && properties[1] == value)
			return true;
	return false;
}

static cl_int protected_judge(const cl_import_properties_arm *properties, cl_mem_flags flags)
{
	const cl_mem_flags others = CL_MEM_HOST_READ_ONLY | CL_MEM_HOST_WRITE_ONLY;

	if (protected_is_bad("import"))
		return CL_OUT_OF_RESOURCES;
	if (!protected_has(properties, CL_IMPORT_TYPE_ARM, CL_IMPORT_TYPE_DMA_BUF_ARM))
		return CL_INVALID_PROPERTY;
	return flags & others && !protected_is_bad("flags") ? CL_INVALID_OPERATION : CL_SUCCESS;
}

static cl_mem CL_API_CALL protected_import(cl_context context, cl_mem_flags flags,
					   const cl_import_properties_arm *properties, void *memory,
					   size_t size, cl_int *error)
{
	cl_int wrong;
	cl_mem mem;

	if (!protected_has(properties, CL_IMPORT_TYPE_PROTECTED_ARM, CL_TRUE))
		return stub_dispatch.clCreateBuffer(context, flags | CL_MEM_USE_HOST_PTR, size,
						    memory, error);
	wrong = protected_judge(properties, flags);
	if (wrong) {
		if (error)
			*error = wrong;
		return NULL;
	}
	mem = stub_dispatch.clCreateBuffer(context, flags, size, NULL, error);
	protected_mems[mem_count++ % OBJECTS] = mem;
	return mem;
}

static bool protected_is(cl_mem mem)
{
	for (size_t i = 0; i < OBJECTS; i++)
		if (mem && protected_mems[i] == mem)
			return true;
	return false;
}

STUB_API cl_int CL_API_CALL clSetKernelArg(cl_kernel kernel, cl_uint i, size_t size,
					   const void *value)
{
	cl_mem mem = NULL;

	if (size == sizeof(mem) && value)
		memcpy(&mem, value, size);
	if (protected_is(mem))
		protected_kernels[kernel_count++ % OBJECTS] = kernel;
	return stub_dispatch.clSetKernelArg(kernel, i, size, value);
}

static bool protected_is_used_by(cl_kernel kernel)
{
	for (size_t i = 0; i < OBJECTS; i++)
		if (protected_kernels[i] == kernel)
			return true;
	return false;
}

static bool protected_is_measured(cl_command_queue queue)
{
	cl_command_queue_properties properties = 0;

	stub_dispatch.clGetCommandQueueInfo(queue, CL_QUEUE_PROPERTIES, sizeof(properties),
					    &properties, NULL);
	return properties & CL_QUEUE_PROFILING_ENABLE;
}

STUB_API cl_int CL_API_CALL clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel kernel,
						   cl_uint dimensions, const size_t *offset,
						   const size_t *global, const size_t *local,
						   cl_uint count, const cl_event *list,
						   cl_event *event)
{
	if (protected_is_used_by(kernel) && protected_is_bad("kernel"))
		return CL_OUT_OF_RESOURCES;
	if (protected_is_used_by(kernel) && protected_is_measured(queue) &&
	    !protected_is_bad("profiling"))
		return CL_INVALID_OPERATION;
	return stub_dispatch.clEnqueueNDRangeKernel(queue, kernel, dimensions, offset, global,
						    local, count, list, event);
}

STUB_API cl_int CL_API_CALL clEnqueueReadBuffer(cl_command_queue queue, cl_mem mem,
						cl_bool is_blocking, size_t offset, size_t size,
						void *out, cl_uint count, const cl_event *list,
						cl_event *event)
{
	if (protected_is(mem) && !protected_is_bad("read"))
		return CL_INVALID_OPERATION;
	return stub_dispatch.clEnqueueReadBuffer(queue, mem, is_blocking, offset, size, out, count,
						 list, event);
}

STUB_API cl_int CL_API_CALL clEnqueueWriteBuffer(cl_command_queue queue, cl_mem mem,
						 cl_bool is_blocking, size_t offset, size_t size,
						 const void *in, cl_uint count,
						 const cl_event *list, cl_event *event)
{
	if (protected_is(mem) && !protected_is_bad("write"))
		return CL_INVALID_OPERATION;
	return stub_dispatch.clEnqueueWriteBuffer(queue, mem, is_blocking, offset, size, in, count,
						  list, event);
}

STUB_API void *CL_API_CALL clGetExtensionFunctionAddressForPlatform(cl_platform_id platform,
								    const char *name)
{
	(void)platform;
	return strcmp(name, "clImportMemoryARM") ? NULL : (void *)(uintptr_t)protected_import;
}
