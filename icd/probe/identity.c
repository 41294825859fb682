/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/probe/identity.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#include "icd/driver_info.h"
#include "icd/layer.h"
#include "icd/place.h"
#include "icd/start.h"
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
 * table may be a loader's.  No loader has a clIcdGetPlatformIDsKHR of its own.  Some drivers name
 * clIcdGetPlatformIDsKHR to loaders alone; for such drivers the list below is tried.
 */
static bool library_of_platform(cl_platform_id platform, struct dl_find_object *library)
{
	static const char *const names[] = {
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

	if (!next.clGetExtensionFunctionAddressForPlatform)
		return false;
	if (library_find(next.clGetExtensionFunctionAddressForPlatform(platform,
								       "clIcdGetPlatformIDsKHR"),
			 library))
		return true;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (library_find(next.clGetExtensionFunctionAddressForPlatform(platform, names[i]),
				 library) &&
		    !library_is_below(library))
			return true;
	return false;
}

void identity_driver(cl_platform_id platform, char *path, size_t size)
{
	struct dl_find_object library;

	*path = '\0';
	if (library_of_platform(platform, &library) && *library.dlfo_link_map->l_name == '/')
		snprintf(path, size, "%s", library.dlfo_link_map->l_name);
}

/* "": no library is known, or the process has more rights than the user, and the environment is not believed. */
static char *identity_library(cl_platform_id platform)
{
	struct dl_find_object library;
	const char *path;
	struct stat st;
	size_t head;

	if (getauxval(AT_SECURE) || !library_of_platform(platform, &library))
		return text_create("%s", "");
	path = library.dlfo_link_map->l_name;
	head = (size_t)((char *)library.dlfo_map_end - (char *)library.dlfo_map_start);
	if (stat(path, &st))
		return text_create("%s", "");
	return text_create("%s %lld %lld.%09ld %016llx", path, (long long)st.st_size,
			   (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec,
			   text_hash_bytes(library.dlfo_map_start,
					   head < IDENTITY_HEAD ? head : IDENTITY_HEAD));
}

/* Containers of an image have machine names of their own. */
bool identity_platform(cl_platform_id platform, unsigned long long *key, bool *has_library)
{
	char *library = identity_library(platform),
	     *name = platform_string(platform, CL_PLATFORM_NAME),
	     *version = platform_string(platform, CL_PLATFORM_VERSION),
	     *vendor = platform_string(platform, CL_PLATFORM_VENDOR), *text = NULL;
	struct utsname machine;

	if (library && name && version && vendor && !uname(&machine))
		text = text_create("%s\n%s\n%s\n%s\n%s %s %s\n%s %llx", library, name, version,
				   vendor, machine.nodename, machine.release, machine.version,
				   place_layers_below(), start_sum());
	*has_library = library && *library;
	*key = text ? text_hash(text) : 0;
	free(library);
	free(name);
	free(version);
	free(vendor);
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
