/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/queries/support.h"

#include <stdlib.h>
#include <string.h>

#include "icd/driver_info.h"
#include "icd/facts/store.h"
#include "icd/layer.h"
#include "icd/objects/device.h"
#include "icd/objects/method.h"
#include "util/thread.h"

static unsigned int support_of_facts(const struct facts *facts)
{
	unsigned int takes = facts->image2d ? TAKES_IMAGE2D : 0;

	for (int type = 0; type < IMPORT_TYPES; type++)
		if (method_find(facts->type[type].method, (enum import_type)type))
			takes |= 1u << type;
	if (takes & 1u << IMPORT_DMABUF && !facts->driver_dma_bufs)
		takes |= TAKES_EXTERNAL;
	return takes;
}

unsigned int support_of_platform(cl_platform_id platform, enum facts_wait wait)
{
	const struct facts_record *record;
	char why[FACTS_WHY_SIZE];
	unsigned int takes = 0;
	THREAD_NO_CANCEL();

	record = facts_get(platform, wait, why);
	for (unsigned int i = 0; record && i < record->count; i++)
		takes |= support_of_facts(&record->device[i]);
	return takes;
}

unsigned int support_of_device(cl_device_id id)
{
	const cl_device_id root = device_root(id);
	const struct facts *facts;
	char why[FACTS_WHY_SIZE];
	cl_platform_id platform;
	THREAD_NO_CANCEL();

	if (next.clGetDeviceInfo(root, CL_DEVICE_PLATFORM, sizeof(platform), &platform, NULL))
		return 0;
	facts = device_facts(platform, root, FACTS_QUERY, why);
	return facts ? support_of_facts(facts) : 0;
}

unsigned int support_of_all(cl_platform_id platform)
{
	cl_uint count;
	cl_device_id *devices = device_list(platform, &count);
	unsigned int takes = ~0u;

	for (cl_uint i = 0; i < count; i++)
		takes &= support_of_device(devices[i]);
	free(devices);
	return count ? takes : 0;
}

cl_int CL_API_CALL describe_device(cl_device_id id, cl_uint import_type,
				   struct device_description *description)
{
	const struct device *device = device_get(id, FACTS_IMPORT);
	const bool is_host = import_type == CL_IMPORT_TYPE_HOST_ARM;
	const enum import_type type = is_host ? IMPORT_HOST : IMPORT_DMABUF;
	const struct facts_type *found;
	const struct method_ops *ops;

	if (!device)
		return CL_INVALID_DEVICE;
	if (!is_host && import_type != CL_IMPORT_TYPE_DMA_BUF_ARM)
		return CL_INVALID_VALUE;
	found = &device->facts.type[type];
	ops = device->ops[type];
	*description = (struct device_description){
		.method = ops ? ops->name : NULL,
		.why = found->why,
		.address_align = found->align,
		.size_align = found->align,
	};
	if (ops && ops->describe)
		ops->describe(device, type, description);
	return CL_SUCCESS;
}
