/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions of Intel's extensions that use memory objects, or wait for commands.
 *
 * An application finds such a function by address alone, and the layer hands one address out for
 * all drivers.  So each call asks for the functions of the platform of its queue or context.
 */
#include "icd/calls/intel.h"

#include <stdlib.h>
#include <string.h>

#include "icd/calls/kernel.h"
#include "icd/layer.h"
#include "icd/objects/command_functions.h"

/* The functions of a device's platform; NULL: an unknown device, or no memory. */
static const struct command_functions *intel_functions(cl_device_id device)
{
	cl_platform_id platform;

	if (next.clGetDeviceInfo(device, CL_DEVICE_PLATFORM, sizeof(platform), &platform, NULL))
		return NULL;
	return command_functions_get(platform);
}

/* cl_intel_concurrent_dispatch: clEnqueueNDRangeKernel() with a number of work-groups. */
static cl_int CL_API_CALL intel_enqueue_count_kernel(cl_command_queue queue, cl_kernel kernel,
						     cl_uint work_dim, const size_t *offset,
						     const size_t *count, const size_t *local,
						     cl_uint num_wait, const cl_event *wait,
						     cl_event *event)
{
	const struct command_functions *functions;
	__typeof__(&intel_enqueue_count_kernel) driver;
	cl_device_id device;
	struct access a;
	cl_int err;

	if (!queue ||
	    next.clGetCommandQueueInfo(queue, CL_QUEUE_DEVICE, sizeof(device), &device, NULL))
		return CL_INVALID_COMMAND_QUEUE;
	functions = intel_functions(device);
	driver = functions ? functions->count_kernel : NULL;
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
	const struct command_functions *functions;
	__typeof__(&intel_blocking_free) driver;
	cl_device_id device;
	cl_int err = intel_context_device(context, &device);

	if (err)
		return err;
	functions = intel_functions(device);
	driver = functions ? functions->blocking_free : NULL;
	if (!driver)
		return CL_INVALID_OPERATION;
	queue_bracket_close_all();
	return driver(context, memory);
}

void *intel_function(const char *name)
{
	if (!next.clGetExtensionFunctionAddressForPlatform)
		return NULL;
	if (!strcmp(name, "clEnqueueNDCountKernelINTEL"))
		return (void *)intel_enqueue_count_kernel;
	if (!strcmp(name, "clMemBlockingFreeINTEL"))
		return (void *)intel_blocking_free;
	return NULL;
}
