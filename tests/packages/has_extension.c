/* SPDX-License-Identifier: Apache-2.0 */
/* Exit status 0 if the first platform's first device has cl_arm_import_memory. */
#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>
#include <string.h>

int main(void)
{
	static char extensions[1 << 16];
	cl_platform_id platform;
	cl_device_id device;

	if (clGetPlatformIDs(1, &platform, NULL) ||
	    clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL) ||
	    clGetDeviceInfo(device, CL_DEVICE_EXTENSIONS, sizeof(extensions), extensions, NULL))
		return 2;
	return !strstr(extensions, "cl_arm_import_memory");
}
