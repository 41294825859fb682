/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/driver_info.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "icd/layer.h"
#include "util/log.h"

#define MAX_DEPTH 32 /* of sub-devices */

bool has_word(const char *list, const char *name)
{
	size_t length = strlen(name);

	for (const char *at = list; at && (at = strstr(at, name)); at += length)
		if ((at == list || at[-1] == ' ') && (!at[length] || at[length] == ' '))
			return true;
	return false;
}

const char *type_extension(enum import_type type)
{
	static const char *const names[IMPORT_TYPES] = {
		[IMPORT_HOST] = "cl_arm_import_memory_host",
		[IMPORT_DMABUF] = "cl_arm_import_memory_dma_buf",
	};

	return names[type];
}

static char *info_string(cl_platform_id platform, cl_device_id id, cl_uint name)
{
	size_t size;
	char *text;

	if (id ? next.clGetDeviceInfo(id, name, 0, NULL, &size)
	       : next.clGetPlatformInfo(platform, name, 0, NULL, &size))
		return NULL;
	text = calloc(1, size + 1);
	if (text && (id ? next.clGetDeviceInfo(id, name, size, text, NULL)
			: next.clGetPlatformInfo(platform, name, size, text, NULL))) {
		free(text);
		return NULL;
	}
	return text;
}

char *device_string(cl_device_id id, cl_device_info name)
{
	return info_string(NULL, id, name);
}

char *platform_string(cl_platform_id platform, cl_platform_info name)
{
	return info_string(platform, NULL, name);
}

/* "OpenCL<space><major_version.minor_version><space><vendor-specific information>" */
cl_version device_version(cl_device_id id)
{
	char *text = device_string(id, CL_DEVICE_VERSION);
	unsigned int major = 1, minor = 0;

	if (!text)
		return 0;
	if (sscanf(text, "OpenCL %u.%u", &major, &minor) != 2)
		log_debug("device version \"%s\" is unknown and taken for 1.0", text);
	free(text);
	return CL_MAKE_VERSION(major, minor, 0);
}

/* OpenCL 1.0 and 1.1 drivers know no sub-devices and fail the query.  Devices may be each other's parents. */
cl_device_id device_root(cl_device_id id)
{
	cl_device_id root = id;

	for (int depth = 0; depth < MAX_DEPTH; depth++) {
		cl_device_id parent = NULL;

		if (next.clGetDeviceInfo(root, CL_DEVICE_PARENT_DEVICE, sizeof(parent), &parent,
					 NULL) ||
		    !parent || parent == root)
			return root;
		root = parent;
	}
	return id;
}

size_t device_base_align(cl_device_id id)
{
	cl_uint bits = 0;

	next.clGetDeviceInfo(id, CL_DEVICE_MEM_BASE_ADDR_ALIGN, sizeof(bits), &bits, NULL);
	return bits > 8 ? bits / 8 : 1;
}

cl_device_id *device_list(cl_platform_id platform, cl_uint *count)
{
	cl_device_id *devices;

	*count = 0;
	if (next.clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, NULL, count) || !*count)
		return NULL;
	devices = calloc(*count, sizeof(*devices));
	if (devices && !next.clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, *count, devices, NULL))
		return devices;
	free(devices);
	*count = 0;
	return NULL;
}

bool driver_imports(cl_device_id device, cl_external_memory_handle_type_khr type)
{
	cl_external_memory_handle_type_khr types[32]; /* more than Khronos has */
	size_t size = 0;

	if (next.clGetDeviceInfo(device, CL_DEVICE_EXTERNAL_MEMORY_IMPORT_HANDLE_TYPES_KHR,
				 sizeof(types), types, &size))
		return false;
	for (size_t i = 0; i < size / sizeof(types[0]) && i < sizeof(types) / sizeof(types[0]); i++)
		if (!type || types[i] == type)
			return true;
	return false;
}
