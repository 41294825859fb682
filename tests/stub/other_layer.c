/* SPDX-License-Identifier: Apache-2.0 */
/* A second OpenCL layer, which passes a single query on. */
#include <string.h>

#include <CL/cl_layer.h>

#define EXPORT __attribute__((visibility("default")))

static struct _cl_icd_dispatch next, offered;

static cl_int CL_API_CALL other_clGetDeviceInfo(cl_device_id device, cl_device_info name,
						size_t size, void *value, size_t *size_ret)
{
	return next.clGetDeviceInfo(device, name, size, value, size_ret);
}

EXPORT cl_int CL_API_CALL clGetLayerInfo(cl_layer_info name, size_t size, void *value,
					 size_t *size_ret)
{
	const cl_layer_api_version version = CL_LAYER_API_VERSION_100;

	if (name != CL_LAYER_API_VERSION || (value && size < sizeof(version)))
		return CL_INVALID_VALUE;
	if (value)
		memcpy(value, &version, sizeof(version));
	if (size_ret)
		*size_ret = sizeof(version);
	return CL_SUCCESS;
}

EXPORT cl_int CL_API_CALL clInitLayer(cl_uint entries, const struct _cl_icd_dispatch *target,
				      cl_uint *entries_ret,
				      const struct _cl_icd_dispatch **dispatch)
{
	const size_t size = entries * sizeof(void *);

	memcpy(&next, target, size < sizeof(next) ? size : sizeof(next));
	offered.clGetDeviceInfo = other_clGetDeviceInfo;
	*entries_ret = entries;
	*dispatch = &offered;
	return CL_SUCCESS;
}
