/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/methods/khr/device.h"

#include <stdio.h>

#include "icd/layer.h"
#include "icd/methods/khr/buffer.h"
#include "icd/selftest/result.h"

#define EXTENSION_DMABUF "cl_khr_external_memory_dma_buf"

static bool khr_refuse(struct method *method, const char *why)
{
	snprintf(method->why, sizeof(method->why), "%s", why);
	return false;
}

static bool khr_takes_handles(cl_device_id device)
{
	cl_external_memory_handle_type_khr types[32];
	const size_t room = sizeof(types) / sizeof(types[0]);
	size_t size = 0;

	if (next.clGetDeviceInfo(device, CL_DEVICE_EXTERNAL_MEMORY_IMPORT_HANDLE_TYPES_KHR,
				 sizeof(types), types, &size))
		return false;
	for (size_t i = 0; i < size / sizeof(types[0]) && i < room; i++) /* a driver may say more */
		if (types[i] == CL_EXTERNAL_MEMORY_HANDLE_DMA_BUF_KHR)
			return true;
	return false;
}

bool khr_may_take(const struct device *device, const char *extensions, struct method *method)
{
	if (!has_word(extensions, KHR_EXTENSION) && !has_word(extensions, EXTENSION_DMABUF))
		return khr_refuse(method, "the device has no " KHR_EXTENSION);
	if (!khr_takes_handles(device->id))
		return khr_refuse(method, "the device has " KHR_EXTENSION ", but not for dma-bufs");
	if (!khr_has_functions(device->platform))
		return khr_refuse(method, "the driver lacks functions of " KHR_EXTENSION);
	return true;
}

static const char *khr_result_name(enum khr_memory memory)
{
	return memory == KHR_PAGES ? "khr pages" : "khr";
}

/* A self-test that hung is believed for an hour, another bad result as well. */
static bool khr_recall(const struct device *device, enum khr_memory memory, enum tested *found)
{
	long kept;

	if (!result_get(device, khr_result_name(memory), &kept))
		return false;
	*found = kept == RESULT_HANGS ? HUNG : kept > 0 ? PASSED : FAILED;
	return true;
}

static enum tested khr_test(const struct device *device, enum khr_memory memory)
{
	const enum tested found = khr_prove(&device->id, 1, memory);

	if (found == PASSED || found == FAILED)
		result_set(device, khr_result_name(memory), found == PASSED);
	if (found == HUNG)
		result_set(device, khr_result_name(memory), RESULT_HANGS);
	return found;
}

bool khr_find_out(const struct device *device, enum khr_memory memory, const char *const *says,
		  struct method *method)
{
	enum tested found = UNTESTED;

	if (!khr_recall(device, memory, &found) && device->may_compile && !method->hangs)
		found = khr_test(device, memory);
	method->untested = found == UNTESTED;
	method->hangs = found == HUNG;
	method->align = 1;
	snprintf(method->why, sizeof(method->why), "%s", says[found]);
	return found == PASSED;
}
