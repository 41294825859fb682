/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/queries/describe.h"

#include "icd/methods/method.h"
#include "icd/objects/device.h"

cl_int CL_API_CALL describe_device(cl_device_id id, cl_uint import_type, const char **method,
				   const char **why, const char **kept)
{
	const struct device *device = device_get(id);
	const struct method *found;

	if (!device)
		return CL_INVALID_DEVICE;
	if (import_type != CL_IMPORT_TYPE_HOST_ARM && import_type != CL_IMPORT_TYPE_DMA_BUF_ARM)
		return CL_INVALID_VALUE;
	found = &device->method[import_type == CL_IMPORT_TYPE_HOST_ARM ? IMPORT_HOST
								       : IMPORT_DMABUF];
	*method = found->ops ? found->ops->name : "refused";
	*why = found->why;
	*kept = found->ops && found->ops->describe_kept && import_type == CL_IMPORT_TYPE_HOST_ARM
			? found->ops->describe_kept(id)
			: NULL;
	return CL_SUCCESS;
}
