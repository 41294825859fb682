/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/queries/describe.h"

#include "icd/objects/method.h"
#include "icd/objects/device.h"

cl_int CL_API_CALL describe_device(cl_device_id id, cl_uint import_type,
				   struct device_description *description)
{
	const struct device *device = device_get(id);
	enum import_type type = import_type == CL_IMPORT_TYPE_HOST_ARM ? IMPORT_HOST
								       : IMPORT_DMABUF;
	const struct facts_type *found;
	const struct method_ops *ops;
	struct method_memory memory;

	if (!device)
		return CL_INVALID_DEVICE;
	if (import_type != CL_IMPORT_TYPE_HOST_ARM && import_type != CL_IMPORT_TYPE_DMA_BUF_ARM)
		return CL_INVALID_VALUE;
	found = &device->facts.type[type];
	ops = device->ops[type];
	memory =
		(struct method_memory){ .address_align = found->align, .size_align = found->align };
	if (ops && ops->describe)
		ops->describe(device, type, &memory);
	*description = (struct device_description){
		.method = ops ? ops->name : NULL,
		.why = found->why,
		.kept = memory.kept,
		.address_align = memory.address_align,
		.size_align = memory.size_align,
		.by_uuid = memory.by_uuid,
		.by_uuid_alone = memory.by_uuid_alone,
	};
	return CL_SUCCESS;
}
