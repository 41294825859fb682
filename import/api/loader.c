/* SPDX-License-Identifier: Apache-2.0 */
#include "import/api/loader.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "icd/probe/interface.h"
#include "util/log.h"

/* Opened once, and never closed. */
static void *loader_of_system(void)
{
	static void *_Atomic loader;
	void *known = atomic_load(&loader);

	if (!known) {
		known = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
		atomic_store(&loader, known);
	}
	return known;
}

/* The program's own loader, or the system's. */
void *loader_symbol(const char *name)
{
	void *found = dlsym(RTLD_DEFAULT, name), *loader;

	if (found)
		return found;
	loader = loader_of_system();
	found = loader ? dlsym(loader, name) : NULL;
	if (!found)
		log_error("%s cannot be found: no OpenCL loader", name);
	return found;
}

void *loader_function_of(cl_platform_id platform, const char *name)
{
	__typeof__(&clGetExtensionFunctionAddressForPlatform) address =
		LOADER(clGetExtensionFunctionAddressForPlatform);

	return address ? address(platform, name) : NULL;
}

/* OpenCL 1.1's function, which knows no platform: without the layer the answer is any driver's. */
void *loader_function_of_layer(const char *name)
{
	void *(CL_API_CALL * address)(const char *) =
		(void *(CL_API_CALL *)(const char *))loader_symbol("clGetExtensionFunctionAddress");

	return address && address(DESCRIBE_FUNCTION) ? address(name) : NULL;
}

cl_int loader_context_devices(cl_context context, cl_device_id **devices, size_t *count)
{
	__typeof__(&clGetContextInfo) info = LOADER(clGetContextInfo);
	cl_device_id *list;
	size_t size = 0;
	cl_int err;

	*devices = NULL;
	if (!info)
		return CL_INVALID_OPERATION;
	err = info(context, CL_CONTEXT_DEVICES, 0, NULL, &size);
	if (!err && !size)
		err = CL_INVALID_CONTEXT;
	if (err)
		return err;
	list = malloc(size);
	if (!list)
		return CL_OUT_OF_HOST_MEMORY;
	err = info(context, CL_CONTEXT_DEVICES, size, list, NULL);
	if (err) {
		free(list);
		return err;
	}
	*devices = list;
	*count = size / sizeof(*list);
	return CL_SUCCESS;
}

cl_int loader_platform_of(cl_device_id device, cl_platform_id *platform)
{
	__typeof__(&clGetDeviceInfo) info = LOADER(clGetDeviceInfo);

	return info ? info(device, CL_DEVICE_PLATFORM, sizeof(*platform), platform, NULL)
		    : CL_INVALID_OPERATION;
}
