/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/probe/identity.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "icd/driver_info.h"
#include "icd/layer.h"
#include "icd/place.h"
#include "icd/text.h"
#include "util/restricted.h"

/*
 * Of a loaded library: the ELF header, the program headers and, by convention of linkers, the build ID.  They outlive
 * the file, which a new version may have replaced.
 */
#define IDENTITY_HEAD 4096u

/* dladdr() and dl_iterate_phdr() take locks, which a child of fork() may find taken (glibc 2.36). */
static bool library_find(void *function, struct dl_find_object *library)
{
	return function && !_dl_find_object(function, library) && *library->dlfo_link_map->l_name;
}

/* A function below climport's layer belongs to the loader or to a layer, which answer for a driver. */
static bool library_is_below(const struct dl_find_object *library)
{
	void *const below[] = {
		(void *)next.clGetPlatformIDs,
		(void *)next.clGetExtensionFunctionAddress,
		(void *)next.clGetExtensionFunctionAddressForPlatform,
		(void *)next.clGetDeviceInfo,
	};
	struct dl_find_object other;

	for (size_t i = 0; i < sizeof(below) / sizeof(below[0]); i++)
		if (library_find(below[i], &other) &&
		    other.dlfo_map_start == library->dlfo_map_start)
			return true;
	return false;
}

/*
 * The library of a function of the driver's own.  A function pointer in an object's dispatch
 * table may be a loader's.  No loader has a clIcdGetPlatformIDsKHR of its own, but some drivers name it to loaders alone.
 */
static bool library_of_platform(cl_platform_id platform, struct dl_find_object *library)
{
	static const char *const names[] = {
		"clIcdGetPlatformIDsKHR",
		"clGetPlatformInfo",
		"clGetDeviceIDs",
		"clIcdGetFunctionAddressForPlatformKHR",
		"clIcdSetPlatformDispatchDataKHR",
		"clCreateCommandBufferKHR",
		"clGetKernelSuggestedLocalWorkSizeKHR",
		"clCreateSemaphoreWithPropertiesKHR",
		"clHostMemAllocINTEL",
		"clCreateCommandQueueWithPropertiesKHR",
		"clGetKernelSubGroupInfoKHR",
		"clCreateFromGLBuffer",
	};

	for (size_t i = 0;
	     next.clGetExtensionFunctionAddressForPlatform && i < sizeof(names) / sizeof(names[0]);
	     i++)
		if (library_find(next.clGetExtensionFunctionAddressForPlatform(platform, names[i]),
				 library) &&
		    !library_is_below(library))
			return true;
	return false;
}

const char *identity_driver(cl_platform_id platform)
{
	struct dl_find_object library;

	return library_of_platform(platform, &library) && *library.dlfo_link_map->l_name == '/'
		       ? library.dlfo_link_map->l_name
		       : "";
}

static bool identity_begins(const char *variable, const char *const *prefixes, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!strncmp(variable, prefixes[i], strlen(prefixes[i])))
			return true;
	return false;
}

bool identity_drops(const char *variable)
{
	static const char *const dropped[] = {
		"OPENCL_LAYERS=", "CLIMPORT_PROBE=",
		"HWLOC_PLUGINS_PATH=", /* PoCL sets it while devices are listed */
	};

	const char *preload = strncmp(variable, "LD_PRELOAD=", 11) == 0 ? getenv("LD_PRELOAD")
									: NULL;

	return identity_begins(variable, dropped, sizeof(dropped) / sizeof(dropped[0])) ||
	       (preload && (strstr(preload, "san.so") || strstr(preload, "libclang_rt.") ||
			    strstr(preload, "vgpreload_")));
}

/*
 * A sum over the variables by which drivers choose devices and ways of work; their order does not matter.  With
 * NEOReadDebugKeys, Intel's driver reads dozens of variables whose names have nothing in common.
 */
static unsigned long long identity_environment(void)
{
	static const char *const chosen[] = {
		"POCL_",  "CUDA_", "NVIDIA_", "NV_",	 "RUSTICL_",	"MESA_", "GALLIUM_",
		"LIBGL_", "DRI_",  "RADEON_", "AMD_",	 "HSA_",	"ROCR_", "HIP_",
		"GPU_",	  "LP_",   "ZE_",     "INTEL_",	 "IGC_",	"NEO",	 "CL_",
		"OCL_",	  "CLVK_", "VK_",     "OPENCL_", "LD_PRELOAD=",
	};
	const bool all = getenv("NEOReadDebugKeys");
	unsigned long long sum = 0;

	for (char **line = environ; line && *line; line++)
		if (!identity_drops(*line) &&
		    (all || identity_begins(*line, chosen, sizeof(chosen) / sizeof(chosen[0]))))
			sum += text_hash(*line);
	return sum;
}

/* Programs change the environment later.  Drivers read some variables early and some late. */
static unsigned long long environment_at_start;

__attribute__((constructor)) static void identity_note_start(void)
{
	environment_at_start = identity_environment();
}

/* A process that has more rights than the user does not believe the environment.  Containers of an image have machine names. */
bool identity_platform(cl_platform_id platform, unsigned long long *key, bool *is_kept)
{
	const unsigned long long environment = identity_environment();
	char *name = platform_string(platform, CL_PLATFORM_NAME),
	     *version = platform_string(platform, CL_PLATFORM_VERSION), *text = NULL;
	struct dl_find_object library;
	struct utsname machine;
	struct stat st;
	size_t head;

	*is_kept = !getauxval(AT_SECURE) && library_of_platform(platform, &library) &&
		   !stat(library.dlfo_link_map->l_name, &st);
	head = *is_kept ? (size_t)((char *)library.dlfo_map_end - (char *)library.dlfo_map_start)
			: 0;
	if (name && version && !uname(&machine))
		text = text_create(
			"%s %lld %lld.%09ld %016llx\n%s\n%s\n%s %s %s %ld\n%s %llx",
			head ? library.dlfo_link_map->l_name : "", head ? (long long)st.st_size : 0,
			head ? (long long)st.st_mtim.tv_sec : 0, head ? st.st_mtim.tv_nsec : 0,
			text_hash_bytes(head ? library.dlfo_map_start : NULL,
					head < IDENTITY_HEAD ? head : IDENTITY_HEAD),
			name, version, machine.nodename, machine.release, machine.version,
			sysconf(_SC_PAGESIZE), place.below, environment);
	*is_kept &= environment == environment_at_start;
	*key = text ? text_hash(text) : 0;
	free(name);
	free(version);
	free(text);
	return *key;
}

unsigned long long identity_limits(void)
{
	static const int kinds[] = { RLIMIT_AS,	   RLIMIT_DATA,	   RLIMIT_STACK, RLIMIT_NOFILE,
				     RLIMIT_NPROC, RLIMIT_MEMLOCK, RLIMIT_CPU };
	rlim_t values[sizeof(kinds) / sizeof(kinds[0]) + 1] = { (rlim_t)restricted_filters() };
	struct rlimit limit;

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (!getrlimit(kinds[i], &limit))
			values[i + 1] = limit.rlim_cur;
	return text_hash_bytes(values, sizeof(values));
}
