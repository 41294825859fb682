/* SPDX-License-Identifier: Apache-2.0 */
#include "identity.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "device.h"
#include "layer.h"

unsigned long long identity_hash(const char *text)
{
	unsigned long long h = 0xcbf29ce484222325;

	for (; *text; text++)
		h = (h ^ (unsigned char)*text) * 0x100000001b3;
	return h;
}

bool identity_is_privileged(void)
{
	return getauxval(AT_SECURE);
}

/*
 * The file that a function of the driver's own is in.  A function pointer in an object's dispatch
 * table may be a loader's.
 */
static bool identity_library(cl_platform_id platform, char *text, size_t size)
{
	void *function = next.clGetExtensionFunctionAddressForPlatform
				 ? next.clGetExtensionFunctionAddressForPlatform(
					   platform, "clIcdGetPlatformIDsKHR")
				 : NULL;
	struct stat st;
	Dl_info info;

	if (identity_is_privileged() || !function || !dladdr(function, &info) || !info.dli_fname ||
	    stat(info.dli_fname, &st))
		return false;
	return (size_t)snprintf(text, size, "%s %lld %lld.%09ld", info.dli_fname,
				(long long)st.st_size, (long long)st.st_mtim.tv_sec,
				st.st_mtim.tv_nsec) < size;
}

static char *platform_string(cl_platform_id platform, cl_platform_info name)
{
	size_t size;
	char *text;

	if (next.clGetPlatformInfo(platform, name, 0, NULL, &size))
		return NULL;
	text = calloc(1, size + 1);
	if (text && next.clGetPlatformInfo(platform, name, size, text, NULL)) {
		free(text);
		return NULL;
	}
	return text;
}

/* One after the other, each freed; false if one is NULL or there is no room. */
static bool join(char **parts, size_t count, char *text, size_t size)
{
	bool fits = true;
	size_t used = 0;

	for (size_t i = 0; i < count; i++) {
		if (parts[i] && used < size)
			used += (size_t)snprintf(text + used, size - used, ", %s", parts[i]);
		fits &= parts[i] && used < size;
		free(parts[i]);
	}
	for (char *c = text; fits && *c; c++)
		if (*c == '\n')
			*c = ' ';
	return fits;
}

/* A library, and the machine: containers of one image have names of their own. */
static bool identity_begin(cl_platform_id platform, char *text, size_t size)
{
	struct utsname machine;
	size_t used;

	if (uname(&machine) || !identity_library(platform, text, size))
		return false;
	used = strlen(text);
	return (size_t)snprintf(text + used, size - used, " on %s", machine.nodename) < size - used;
}

bool identity_device(cl_device_id device, cl_platform_id platform, char *text, size_t size)
{
	char *parts[] = {
		platform_string(platform, CL_PLATFORM_NAME),
		platform_string(platform, CL_PLATFORM_VERSION),
		device_string(device, CL_DEVICE_NAME),
		device_string(device, CL_DEVICE_VERSION),
		device_string(device, CL_DRIVER_VERSION),
	};
	bool known = identity_begin(platform, text, size);
	size_t used = known ? strlen(text) : 0;

	return join(parts, sizeof(parts) / sizeof(parts[0]), text + used, size - used) && known;
}

/* What drivers, and this layer, read of the environment to choose devices and how they work. */
static bool chooses_devices(const char *variable)
{
	static const char *const prefixes[] = {
		"POCL_", "CUDA_", "NVIDIA_", "RUSTICL_", "MESA_", "GALLIUM_", "LP_",	   "ZE_",
		"ROCR_", "HIP_",  "GPU_",    "CL_",	 "OCL_",  "OPENCL_",  "CLIMPORT_",
	};
	static const char *const others[] = {
		"OPENCL_LAYERS=",
		"CLIMPORT_LOG=",
		"CLIMPORT_PROBE=",
	};

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (!strncmp(variable, others[i], strlen(others[i])))
			return false;
	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
		if (!strncmp(variable, prefixes[i], strlen(prefixes[i])))
			return true;
	return false;
}

/* The same in whatever order the variables are. */
static unsigned long long environment_hash(void)
{
	unsigned long long sum = 0;

	for (char **variable = environ; variable && *variable; variable++)
		if (chooses_devices(*variable))
			sum += identity_hash(*variable);
	return sum;
}

bool identity_platform(cl_platform_id platform, char *text, size_t size)
{
	char *parts[] = {
		platform_string(platform, CL_PLATFORM_NAME),
		platform_string(platform, CL_PLATFORM_VERSION),
		platform_string(platform, CL_PLATFORM_VENDOR),
		NULL,
	};
	bool known = identity_begin(platform, text, size);
	size_t used = known ? strlen(text) : 0;

	if (asprintf(&parts[3], "environment %016llx", environment_hash()) < 0)
		parts[3] = NULL;
	return join(parts, sizeof(parts) / sizeof(parts[0]), text + used, size - used) && known;
}
