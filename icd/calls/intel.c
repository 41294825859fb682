/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions of Intel's extensions that use memory objects, or wait for commands.
 *
 * The functions are found by address alone, and one address is handed out for all drivers.  So the
 * driver's function is looked up in each call, for the platform of the queue or of the context.
 */
#include "icd/calls/intel.h"

#include <stdlib.h>
#include <string.h>

#include "icd/calls/kernel.h"
#include "icd/layer.h"

static const char count_kernel_name[] = "clEnqueueNDCountKernelINTEL";
static const char blocking_free_name[] = "clMemBlockingFreeINTEL";

static void *intel_driver_function(cl_device_id device, const char *name)
{
	cl_platform_id platform;

	if (next.clGetDeviceInfo(device, CL_DEVICE_PLATFORM, sizeof(platform), &platform, NULL))
		return NULL;
	return next.clGetExtensionFunctionAddressForPlatform(platform, name);
}

/* cl_intel_concurrent_dispatch: clEnqueueNDRangeKernel() with a number of work-groups. */
static cl_int CL_API_CALL intel_enqueue_count_kernel(cl_command_queue queue, cl_kernel kernel,
						     cl_uint work_dim, const size_t *offset,
						     const size_t *count, const size_t *local,
						     cl_uint num_wait, const cl_event *wait,
						     cl_event *event)
{
	__typeof__(&intel_enqueue_count_kernel) driver;
	cl_device_id device;
	struct access a;
	cl_int err;

	if (!queue ||
	    next.clGetCommandQueueInfo(queue, CL_QUEUE_DEVICE, sizeof(device), &device, NULL))
		return CL_INVALID_COMMAND_QUEUE;
	driver = intel_driver_function(device, count_kernel_name);
	if (!driver)
		return CL_INVALID_OPERATION;
	err = kernel_begin(&a, queue, kernel, num_wait, wait, event);
	if (err)
		return err;
	err = driver(queue, kernel, work_dim, offset, count, local, a.num_wait, a.wait, a.event);
	return access_end(&a, err, CL_FALSE);
}

/* The first device of a context. */
static cl_int intel_context_device(cl_context context, cl_device_id *device)
{
	cl_device_id *devices;
	size_t size;
	cl_int err;

	if (!context || next.clGetContextInfo(context, CL_CONTEXT_DEVICES, 0, NULL, &size) || !size)
		return CL_INVALID_CONTEXT;
	devices = malloc(size);
	if (!devices)
		return CL_OUT_OF_HOST_MEMORY;
	err = next.clGetContextInfo(context, CL_CONTEXT_DEVICES, size, devices, NULL);
	if (!err)
		*device = devices[0];
	free(devices);
	return err;
}

/* cl_intel_unified_shared_memory: waits for the commands that may use @memory, of any queue. */
static cl_int CL_API_CALL intel_blocking_free(cl_context context, void *memory)
{
	__typeof__(&intel_blocking_free) driver;
	cl_device_id device;
	cl_int err = intel_context_device(context, &device);

	if (err)
		return err;
	driver = intel_driver_function(device, blocking_free_name);
	if (!driver)
		return CL_INVALID_OPERATION;
	queue_bracket_close_all();
	return driver(context, memory);
}

void *intel_function(const char *name)
{
	if (!next.clGetExtensionFunctionAddressForPlatform)
		return NULL;
	if (!strcmp(name, count_kernel_name))
		return (void *)intel_enqueue_count_kernel;
	if (!strcmp(name, blocking_free_name))
		return (void *)intel_blocking_free;
	return NULL;
}
