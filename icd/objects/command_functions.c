/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/objects/command_functions.h"

#include <stdlib.h>
#include <string.h>

#include "icd/layer.h"
#include "icd/objects/handle_table.h"

/* cl_platform_id -> struct command_functions, never removed */
static HANDLE_TABLE_DEFINE(command_functions_table, NULL);

static struct command_functions *command_functions_create(cl_platform_id platform)
{
	struct command_functions *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	const struct {
		const char *name;
		void **function;
	} names[] = {
		{ "clCreateCommandBufferKHR", &f->create },
		{ "clRetainCommandBufferKHR", &f->retain },
		{ "clReleaseCommandBufferKHR", &f->release },
		{ "clEnqueueCommandBufferKHR", &f->enqueue },
		{ "clRemapCommandBufferKHR", &f->remap },
		{ "clUpdateMutableCommandsKHR", &f->update },
		{ "clCommandNDRangeKernelKHR", &f->ndrange_kernel },
		{ "clCommandCopyBufferKHR", &f->copy_buffer },
		{ "clCommandCopyBufferRectKHR", &f->copy_buffer_rect },
		{ "clCommandCopyBufferToImageKHR", &f->copy_buffer_to_image },
		{ "clCommandCopyImageKHR", &f->copy_image },
		{ "clCommandCopyImageToBufferKHR", &f->copy_image_to_buffer },
		{ "clCommandFillBufferKHR", &f->fill_buffer },
		{ "clCommandFillImageKHR", &f->fill_image },
		{ "clEnqueueNDCountKernelINTEL", &f->count_kernel },
		{ "clMemBlockingFreeINTEL", &f->blocking_free },
		{ "clEnqueueAcquireExternalMemObjectsKHR", &f->acquire_external },
		{ "clEnqueueReleaseExternalMemObjectsKHR", &f->release_external },
	};
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		*names[i].function =
			next.clGetExtensionFunctionAddressForPlatform(platform, names[i].name);
	return f;
}

const struct command_functions *command_functions_get(cl_platform_id platform)
{
	static const struct command_functions none;
	struct command_functions *f = handle_table_peek(&command_functions_table, platform);
	struct command_functions *created;

	if (f)
		return f;
	if (!next.clGetExtensionFunctionAddressForPlatform)
		return &none;
	created = command_functions_create(platform);
	if (!created)
		return NULL;
	f = handle_table_publish(&command_functions_table, platform, created);
	if (f != created)
		free(created);
	return f;
}

/* The version that a list of @size bytes has for @name, or 0. */
static cl_version version_in(const cl_name_version *list, size_t size, const char *name)
{
	for (size_t i = 0; i < size / sizeof(list[0]); i++)
		if (!strncmp(list[i].name, name, sizeof(list[i].name)))
			return list[i].version;
	return 0;
}

static cl_version device_extension(cl_device_id device, const char *name)
{
	cl_name_version *list = NULL;
	cl_version version = 0;
	size_t size = 0;

	if (!next.clGetDeviceInfo(device, CL_DEVICE_EXTENSIONS_WITH_VERSION_KHR, 0, NULL, &size))
		list = malloc(size);
	if (list &&
	    !next.clGetDeviceInfo(device, CL_DEVICE_EXTENSIONS_WITH_VERSION_KHR, size, list, NULL))
		version = version_in(list, size, name);
	free(list);
	return version;
}

static cl_version platform_extension(cl_platform_id platform, const char *name)
{
	cl_name_version *list = NULL;
	cl_version version = 0;
	size_t size = 0;

	if (!next.clGetPlatformInfo(platform, CL_PLATFORM_EXTENSIONS_WITH_VERSION_KHR, 0, NULL,
				    &size))
		list = malloc(size);
	if (list && !next.clGetPlatformInfo(platform, CL_PLATFORM_EXTENSIONS_WITH_VERSION_KHR, size,
					    list, NULL))
		version = version_in(list, size, name);
	free(list);
	return version;
}

static cl_version extension_version(cl_device_id device, cl_platform_id platform, const char *name)
{
	cl_version version = device_extension(device, name);

	return version ? version : platform_extension(platform, name);
}

cl_int command_target_find(cl_command_queue queue, struct command_target *target)
{
	cl_platform_id platform;
	cl_device_id device;

	if (!queue ||
	    next.clGetCommandQueueInfo(queue, CL_QUEUE_DEVICE, sizeof(device), &device, NULL) ||
	    next.clGetDeviceInfo(device, CL_DEVICE_PLATFORM, sizeof(platform), &platform, NULL))
		return CL_INVALID_COMMAND_QUEUE;
	target->functions = command_functions_get(platform);
	if (!target->functions)
		return CL_OUT_OF_HOST_MEMORY;
	target->properties = extension_version(device, platform, "cl_khr_command_buffer") >=
			     CL_MAKE_VERSION(0, 9, 5);
	target->arrays =
		extension_version(device, platform, "cl_khr_command_buffer_mutable_dispatch") >=
		CL_MAKE_VERSION(0, 9, 2);
	return CL_SUCCESS;
}

cl_int command_functions_of_queue(cl_command_queue queue,
				  const struct command_functions **functions)
{
	cl_platform_id platform;
	cl_device_id device;
	cl_int err = CL_INVALID_COMMAND_QUEUE;

	if (queue)
		err = next.clGetCommandQueueInfo(queue, CL_QUEUE_DEVICE, sizeof(device), &device,
						 NULL);
	if (!err)
		err = next.clGetDeviceInfo(device, CL_DEVICE_PLATFORM, sizeof(platform), &platform,
					   NULL);
	if (err)
		return err;
	*functions = command_functions_get(platform);
	return *functions ? CL_SUCCESS : CL_OUT_OF_HOST_MEMORY;
}
