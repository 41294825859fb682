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
#include "icd/methods/khr/buffer.h"
#include "icd/methods/khr/device.h"
#include "icd/methods/khr/image.h"
#include "icd/objects/device.h"
#include "icd/objects/method.h"

/* Sentences. */
static const char *const khr_says[] = {
	[UNTESTED] = "the self-test of dma-bufs by " KHR_EXTENSION " could not run",
	[PASSED] = "dma-bufs by " KHR_EXTENSION " are zero copy by self-test",
	[FAILED] = "the device takes a dma-buf by " KHR_EXTENSION " and works on other memory",
	[BROKEN] = "the device refuses a dma-buf by " KHR_EXTENSION,
	[NO_SAMPLE] = "dma-bufs by " KHR_EXTENSION " are not proved: climport can make none for a "
		      "self-test (/dev/udmabuf, /dev/dma_heap/system)",
};

static bool khr_probe(struct device *device, const char *extensions, enum import_type type,
		      struct method *method)
{
	if (type != IMPORT_DMABUF)
		return false;
	if (!khr_may_take(device, extensions, method))
		return false;
	method->is_reason = true;
	return khr_find_out(device, KHR_DMABUF, khr_says, method);
}

/* The region has no bracket: the device does not use the CPU's mapping. */
static cl_int khr_create(cl_context context, const struct context_import *how, cl_mem_flags flags,
			 struct import_region *region, struct method_buffer *buffer)
{
	cl_int err;

	(void)how;
	region->unsynced = true;
	buffer->handle = khr_buffer(context, flags, region->fd, region->size, &err);
	return err;
}

const struct method_ops method_khr_ops = {
	.name = "khr",
	.types = 1u << IMPORT_DMABUF,
	.probe = khr_probe,
	.create = khr_create,
	.create_image = khr_create_image,
	.image_dangers = khr_image_dangers,
	.enqueue_acquire = khr_enqueue_acquire,
	.enqueue_release = khr_enqueue_release,
	.cpu_optional = true,
};
