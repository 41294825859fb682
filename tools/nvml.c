/* SPDX-License-Identifier: Apache-2.0 */
/* Functions and types as in the NVML API reference. */
#include "nvml.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "part.h"

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

static const char *nvml_load(const char *address, struct nvml_bar *bar)
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

/* What the library's process sends. */
struct nvml_answer {
	struct nvml_bar bar;
	char why[sizeof(reason)]; /* "": @bar is set */
};

static void nvml_answer(const char *address, int to)
{
	struct nvml_answer answer = { 0 };
	const char *why = nvml_load(address, &answer.bar);

	snprintf(answer.why, sizeof(answer.why), "%s", why ? why : "");
	_exit(write(to, &answer, sizeof(answer)) != sizeof(answer));
}

static const char *nvml_receive(pid_t child, int from, struct nvml_bar *bar)
{
	const char library[] = "libnvidia-ml.so.1 ";
	struct nvml_answer answer;
	const ssize_t got = read(from, &answer, sizeof(answer));

	memcpy(reason, library, sizeof(library));
	part_describe(part_wait(child), reason + strlen(library));
	if (got != sizeof(answer))
		return reason;
	*bar = answer.bar;
	return *answer.why ? nvml_because(answer.why) : NULL;
}

const char *nvml_read_bar(const char *address, struct nvml_bar *bar)
{
	const char *why;
	int ends[2];
	pid_t child;

	if (pipe2(ends, O_CLOEXEC))
		return nvml_because("no pipe");
	fflush(NULL);
	child = fork();
	if (!child)
		nvml_answer(address, ends[1]);
	close(ends[1]);
	why = child < 0 ? nvml_because("no process") : nvml_receive(child, ends[0], bar);
	close(ends[0]);
	return why;
}
