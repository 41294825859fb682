/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An OpenCL loader without support for layers.  With READS_LAYER_FILES, the loader has the name of the
 * variable that moves the folder of layer files, as loaders have that read the files.
 */
#include <CL/cl.h>
#include <string.h>

#define API __attribute__((visibility("default")))

static const int platform = 1;

#ifdef READS_LAYER_FILES
API const char layer_variable[] = "OPENCL_LAYER_PATH";
#endif

API cl_int CL_API_CALL clGetPlatformIDs(cl_uint room, cl_platform_id *platforms, cl_uint *count)
{
	if (platforms && room)
		*platforms = (cl_platform_id)&platform;
	if (count)
		*count = 1;
	return CL_SUCCESS;
}

API cl_int CL_API_CALL clGetPlatformInfo(cl_platform_id id, cl_platform_info name, size_t size,
					 void *value, size_t *size_ret)
{
	(void)id;
	(void)name;
	if (value && size > 3)
		strcpy(value, "old");
	if (size_ret)
		*size_ret = 4;
	return CL_SUCCESS;
}

API void *CL_API_CALL clGetExtensionFunctionAddressForPlatform(cl_platform_id id, const char *name)
{
	(void)id;
	(void)name;
	return NULL;
}
