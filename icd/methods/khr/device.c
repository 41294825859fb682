/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/methods/khr/device.h"

#include <stdio.h>

#include "icd/driver_info.h"
#include "icd/layer.h"
#include "icd/methods/khr/buffer.h"
#include "icd/objects/device.h"

#define EXTENSION_DMABUF "cl_khr_external_memory_dma_buf"

static bool khr_refuse(struct method *method, const char *why)
{
	snprintf(method->why, sizeof(method->why), "%s", why);
	return false;
}

bool khr_may_take(const struct device *device, const char *extensions, struct method *method)
{
	if (!has_word(extensions, KHR_EXTENSION) && !has_word(extensions, EXTENSION_DMABUF))
		return khr_refuse(method, "the device has no " KHR_EXTENSION);
	if (!driver_imports_dma_bufs(device->id))
		return khr_refuse(method, "the device has " KHR_EXTENSION ", but not for dma-bufs");
	if (!khr_has_functions(device->platform))
		return khr_refuse(method, "the driver lacks functions of " KHR_EXTENSION);
	return true;
}

bool khr_find_out(const struct device *device, enum khr_memory memory, const char *const *says,
		  struct method *method)
{
	const enum tested found = khr_prove(device->id, memory);

	method->unknown = found == UNTESTED;
	method->align = 1;
	snprintf(method->why, sizeof(method->why), "%s", says[found]);
	return found == PASSED;
}
