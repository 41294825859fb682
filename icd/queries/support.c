/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/queries/support.h"

#include <stdlib.h>
#include <string.h>

#include "icd/driver_info.h"
#include "icd/facts/store.h"
#include "icd/layer.h"
#include "icd/objects/method.h"
#include "icd/objects/device.h"
#include "util/thread.h"

static unsigned int support_of_facts(const struct facts *facts)
{
	unsigned int takes = facts->image2d ? TAKES_IMAGE2D : 0;

	for (int type = 0; type < IMPORT_TYPES; type++) {
		const char *method = facts->type[type].method;

		if (!strcmp(method, method_native_ops.name))
			takes |= TAKES_NATIVE;
		else if (method_find(method, (enum import_type)type))
			takes |= 1u << type;
	}
	if (takes & 1u << IMPORT_DMABUF && !facts->driver_dma_bufs)
		takes |= TAKES_EXTERNAL;
	return takes;
}

static unsigned int support_of_record(const struct facts_record *record)
{
	unsigned int takes = 0;

	for (unsigned int i = 0; record && i < record->count; i++)
		takes |= support_of_facts(&record->device[i]);
	return takes;
}

void support_prepare(cl_platform_id platform)
{
	char why[FACTS_WHY_SIZE];

	facts_get(platform, FACTS_KEPT, why);
}

/* A driver with the extension for each type needs no test and no addition. */
static bool support_is_native(cl_platform_id platform)
{
	char *extensions = platform_string(platform, CL_PLATFORM_EXTENSIONS);
	bool is_native = extensions;

	for (int type = 0; type < IMPORT_TYPES; type++)
		is_native &= has_word(extensions, type_extension(type));
	free(extensions);
	return is_native;
}

unsigned int support_of_platform(cl_platform_id platform)
{
	char why[FACTS_WHY_SIZE];
	THREAD_NO_CANCEL();

	if (support_is_native(platform))
		return TAKES_NATIVE;
	return support_of_record(facts_get(platform, FACTS_QUERY, why));
}

bool support_nothing(cl_platform_id platform)
{
	const struct facts_record *record;
	char why[FACTS_WHY_SIZE];
	THREAD_NO_CANCEL();

	record = facts_get(platform, FACTS_KEPT, why);
	return record && record->is_whole && !support_of_record(record);
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
	unsigned int takes = devices ? ~0u : 0;

	for (cl_uint i = 0; devices && i < count; i++)
		takes &= support_of_device(devices[i]);
	free(devices);
	return takes;
}
