/* SPDX-License-Identifier: Apache-2.0 */
/* Functions and types as in the NVML API reference. */
#include "nvml.h"

#include <dlfcn.h>
#include <stdio.h>

/* nvmlReturn_t: 0 is success. */
struct nvml {
	int (*init)(void);
	int (*shutdown)(void);
	const char *(*error_string)(int result);
	int (*device)(const char *pci_bus_id, void **device);
	int (*bar)(void *device, struct nvml_bar *bar);
};

static char reason[256];

static const char *nvml_because(const char *what)
{
	snprintf(reason, sizeof(reason), "%s", what ? what : "libnvidia-ml.so.1 lacks a function");
	return reason;
}

/* 0 if a function is missing. */
static int nvml_find_functions(void *library, struct nvml *nvml)
{
	*(void **)&nvml->init = dlsym(library, "nvmlInit_v2");
	*(void **)&nvml->shutdown = dlsym(library, "nvmlShutdown");
	*(void **)&nvml->error_string = dlsym(library, "nvmlErrorString");
	*(void **)&nvml->device = dlsym(library, "nvmlDeviceGetHandleByPciBusId_v2");
	*(void **)&nvml->bar = dlsym(library, "nvmlDeviceGetBAR1MemoryInfo");
	return nvml->init && nvml->shutdown && nvml->error_string && nvml->device && nvml->bar;
}

static const char *nvml_ask(const struct nvml *nvml, const char *address, struct nvml_bar *bar)
{
	void *device;
	int result = nvml->init();

	if (result)
		return nvml_because(nvml->error_string(result));
	result = nvml->device(address, &device);
	if (!result)
		result = nvml->bar(device, bar);
	nvml->shutdown();
	return result ? nvml_because(nvml->error_string(result)) : NULL;
}

const char *nvml_read_bar(const char *address, struct nvml_bar *bar)
{
	void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
	struct nvml nvml;
	const char *why;

	if (!library)
		return nvml_because(dlerror());
	why = nvml_find_functions(library, &nvml) ? nvml_ask(&nvml, address, bar)
						  : nvml_because(NULL);
	dlclose(library);
	return why;
}
