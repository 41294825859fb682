/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/objects/extensions.h"

#include <stdlib.h>
#include <string.h>

#include "icd/layer.h"

/* cl_platform_id -> struct extensions, never removed */
static HANDLE_TABLE_DEFINE(extensions_table, NULL);

const struct extensions extensions_none;

static struct extensions *extensions_create(cl_platform_id platform)
{
	struct extensions *e = next.clGetExtensionFunctionAddressForPlatform ? calloc(1, sizeof(*e))
									     : NULL;

	if (!e)
		return NULL;
#define EXTENSION(type, name, parameters)                                                      \
	e->name = (__typeof__(e->name))next.clGetExtensionFunctionAddressForPlatform(platform, \
										     #name);
#include "icd/table.h"
	return e;
}

const struct extensions *extensions_of_platform(cl_platform_id platform)
{
	struct extensions *e = handle_table_peek(&extensions_table, platform), *created;

	if (e)
		return e;
	created = extensions_create(platform);
	if (!created)
		return &extensions_none;
	e = handle_table_publish(&extensions_table, platform, created);
	if (e != created)
		free(created);
	return e ? e : &extensions_none;
}

static cl_int queue_device(cl_command_queue queue, cl_device_id *device, cl_platform_id *platform)
{
	cl_int err = CL_INVALID_COMMAND_QUEUE;

	if (queue)
		err = next.clGetCommandQueueInfo(queue, CL_QUEUE_DEVICE, sizeof(*device), device,
						 NULL);
	return err ? err
		   : next.clGetDeviceInfo(*device, CL_DEVICE_PLATFORM, sizeof(*platform), platform,
					  NULL);
}

cl_int extensions_of_queue(cl_command_queue queue, const struct extensions **driver)
{
	cl_platform_id platform;
	cl_device_id device;
	cl_int err = queue_device(queue, &device, &platform);

	if (!err)
		*driver = extensions_of_platform(platform);
	return err;
}

/* The version that a list of @size bytes has for @name, or 0. */
static cl_version version_in(const cl_name_version *list, size_t size, const char *name)
{
	for (size_t i = 0; i < size / sizeof(list[0]); i++)
		if (!strncmp(list[i].name, name, sizeof(list[i].name)))
			return list[i].version;
	return 0;
}

static cl_version extension_version(cl_device_id device, const char *name)
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

struct command_target command_target_of_queue(cl_command_queue queue)
{
	struct command_target target = { &extensions_none, false, false };
	cl_platform_id platform;
	cl_device_id device;

	if (queue_device(queue, &device, &platform))
		return target;
	target.driver = extensions_of_platform(platform);
	target.properties = extension_version(device, "cl_khr_command_buffer") >=
			    CL_MAKE_VERSION(0, 9, 5);
	target.arrays = extension_version(device, "cl_khr_command_buffer_mutable_dispatch") >=
			CL_MAKE_VERSION(0, 9, 2);
	return target;
}
