/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An OpenCL driver without a platform, which ends the process that opens it as DYING_DRIVER says:
 * abort, segv or exit; and unload: abort when the process ends.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include <CL/cl.h>

static cl_int CL_API_CALL dying_driver_platforms(cl_uint count, cl_platform_id *platforms,
						 cl_uint *count_ret)
{
	(void)count;
	(void)platforms;
	if (count_ret)
		*count_ret = 0;
	return CL_SUCCESS;
}

static cl_int CL_API_CALL dying_driver_info(cl_platform_id platform, cl_platform_info name,
					    size_t size, void *value, size_t *size_ret)
{
	(void)platform;
	(void)name;
	(void)size;
	(void)value;
	(void)size_ret;
	return CL_INVALID_PLATFORM;
}

void *clGetExtensionFunctionAddress(const char *name)
{
	if (!strcmp(name, "clIcdGetPlatformIDsKHR"))
		return (void *)dying_driver_platforms;
	return !strcmp(name, "clGetPlatformInfo") ? (void *)dying_driver_info : NULL;
}

__attribute__((constructor)) static void dying_driver_load(void)
{
	const char *how = getenv("DYING_DRIVER");

	if (!how || !strcmp(how, "unload"))
		return;
	if (!strcmp(how, "exit"))
		_Exit(0);
	signal(SIGSEGV, SIG_DFL); /* a sanitizer's handler would exit */
	signal(SIGABRT, SIG_DFL);
	raise(!strcmp(how, "segv") ? SIGSEGV : SIGABRT);
}

__attribute__((destructor)) static void dying_driver_unload(void)
{
	const char *how = getenv("DYING_DRIVER");

	if (!how || strcmp(how, "unload"))
		return;
	signal(SIGABRT, SIG_DFL);
	raise(SIGABRT);
}
