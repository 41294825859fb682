/* SPDX-License-Identifier: Apache-2.0 */
/* The layer below climport's layer: changes nothing, and remembers the driver's functions. */
#include "below.h"

#include <CL/cl_layer.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT struct _cl_icd_dispatch mutant_driver;

static const struct _cl_icd_dispatch nothing;

EXPORT cl_int CL_API_CALL clGetLayerInfo(cl_layer_info name, size_t size, void *result,
					 size_t *size_ret)
{
	const cl_layer_api_version version = CL_LAYER_API_VERSION_100;

	if (name != CL_LAYER_API_VERSION || (result && size < sizeof(version)))
		return CL_INVALID_VALUE;
	if (result)
		memcpy(result, &version, sizeof(version));
	if (size_ret)
		*size_ret = sizeof(version);
	return CL_SUCCESS;
}

EXPORT cl_int CL_API_CALL clInitLayer(cl_uint entries, const struct _cl_icd_dispatch *target,
				      cl_uint *entries_ret,
				      const struct _cl_icd_dispatch **dispatch_ret)
{
	const size_t most = sizeof(mutant_driver) / sizeof(void *);

	if (entries > most)
		entries = most;
	memcpy(&mutant_driver, target, entries * sizeof(void *));
	*entries_ret = entries;
	*dispatch_ret = &nothing;
	return CL_SUCCESS;
}
