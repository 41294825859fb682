/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The method khr: dma-bufs by cl_khr_external_memory.
 *
 * The name of an extension is no proof, nor is a missing name a refusal: Intel's driver for GPUs
 * reports cl_khr_external_memory alone, and takes dma-bufs.  So the device's handle types are asked
 * for, and then a self-test decides on a dma-buf of climport's own (proof.h).
 *
 * A device works on the memory itself, so the CPU's caches are not the layer's business.  Before each
 * command the device acquires what the command uses, and releases it behind (access/acquired.h).
 */
#include <stdio.h>
#include <stdlib.h>

#include "icd/error.h"
#include "icd/layer.h"
#include "icd/methods/khr/buffer.h"
#include "icd/methods/khr/proof.h"
#include "icd/methods/method.h"
#include "icd/selftest/job.h"
#include "icd/selftest/result.h"
#include "util/log.h"

#define EXTENSION "cl_khr_external_memory"
#define EXTENSION_DMABUF "cl_khr_external_memory_dma_buf"

/* Sentences. */
static const char *const khr_says[] = {
	[UNTESTED] = "the self-test of dma-bufs by " EXTENSION " could not run",
	[PASSED] = "dma-bufs by " EXTENSION " are zero copy by self-test",
	[FAILED] = "the device takes a dma-buf by " EXTENSION " and works on other memory",
	[BROKEN] = "the device refuses a dma-buf by " EXTENSION,
	[HUNG] = "the self-test of dma-bufs by " EXTENSION " did not end",
	[NO_SAMPLE] = "dma-bufs by " EXTENSION " are not proved: climport can make none for a "
		      "self-test (/dev/udmabuf, /dev/dma_heap/system)",
};

static bool khr_refuse(struct method *method, const char *why)
{
	snprintf(method->why, sizeof(method->why), "%s", why);
	return false;
}

static bool khr_takes_handles(cl_device_id device)
{
	cl_external_memory_handle_type_khr types[32];
	size_t size = 0;

	if (next.clGetDeviceInfo(device, CL_DEVICE_EXTERNAL_MEMORY_IMPORT_HANDLE_TYPES_KHR,
				 sizeof(types), types, &size))
		return false;
	for (size_t i = 0; i < size / sizeof(types[0]); i++)
		if (types[i] == CL_EXTERNAL_MEMORY_HANDLE_DMA_BUF_KHR)
			return true;
	return false;
}

/* A self-test that hung is believed for an hour, another bad result as well. */
static bool khr_recall(const struct device *device, enum tested *found)
{
	long kept;

	if (!result_get(device, "khr", &kept))
		return false;
	*found = kept == RESULT_HANGS ? HUNG : kept > 0 ? PASSED : FAILED;
	return true;
}

static enum tested khr_test(const struct device *device)
{
	const enum tested found = khr_prove(device->id);

	if (found == PASSED || found == FAILED)
		result_set(device, "khr", found == PASSED);
	if (found == HUNG)
		result_set(device, "khr", RESULT_HANGS);
	return found;
}

static bool khr_find_out(const struct device *device, struct method *method)
{
	enum tested found = UNTESTED;

	if (!khr_recall(device, &found) && device->may_compile)
		found = khr_test(device);
	method->untested = found == UNTESTED;
	method->hangs = found == HUNG;
	method->late = job_late();
	method->align = 1;
	method->is_reason = true;
	snprintf(method->why, sizeof(method->why), "%s", khr_says[found]);
	return found == PASSED;
}

static bool khr_probe(const struct device *device, const char *extensions, enum import_type type,
		      struct method *method)
{
	if (type != IMPORT_DMABUF)
		return false;
	if (!has_word(extensions, EXTENSION) && !has_word(extensions, EXTENSION_DMABUF))
		return khr_refuse(method, "the device has no " EXTENSION);
	if (!khr_takes_handles(device->id))
		return khr_refuse(method, "the device has " EXTENSION ", but not for dma-bufs");
	if (!khr_has_functions(device->platform))
		return khr_refuse(method, "the driver lacks functions of " EXTENSION);
	return khr_find_out(device, method);
}

/* The region has no bracket: the device does not use the CPU's mapping. */
static cl_int khr_create(cl_context context, cl_mem_flags flags, struct import_region *region,
			 size_t align, struct method_buffer *buffer)
{
	cl_int err;

	(void)align;
	region->unsynced = true;
	buffer->handle = khr_buffer(context, flags, region->fd, region->size, &err);
	return err;
}

const struct method_ops method_khr_ops = {
	.name = "khr",
	.probe = khr_probe,
	.create = khr_create,
	.enqueue_acquire = khr_enqueue_acquire,
	.enqueue_release = khr_enqueue_release,
	.cpu_optional = true,
};
