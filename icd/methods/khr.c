/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The method khr: dma-bufs by cl_khr_external_memory; and where host pointers are copied, host memory as a dma-buf of
 * its pages.
 *
 * The name of an extension is no proof, nor is a missing name a refusal: Intel's driver for GPUs
 * reports cl_khr_external_memory alone, and takes dma-bufs.  So the device's handle types are asked
 * for, and then a self-test decides on memory of climport's own: a driver may take a descriptor and give a buffer of
 * other memory, without an error.
 *
 * A device works on the memory itself, and is coherent with the CPU's caches, or fails the self-test, in which nobody
 * calls DMA_BUF_IOCTL_SYNC.  Before each command the device acquires what the command uses, and releases it behind
 * (access/access.h).
 */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "icd/driver_info.h"
#include "icd/error.h"
#include "icd/layer.h"
#include "icd/methods/descriptor_buffer.h"
#include "icd/methods/image_create.h"
#include "icd/methods/verify.h"
#include "icd/objects/backing.h"
#include "icd/objects/context.h"
#include "icd/objects/extensions.h"
#include "icd/selftest/rounds.h"
#include "util/log.h"

#define EXTENSION "cl_khr_external_memory"
#define COPIES "CL_MEM_USE_HOST_PTR copies on this device, and "

/* Sentences. */
static const char *const khr_says[IMPORT_TYPES][NO_SAMPLE + 1] = {
	[IMPORT_HOST] = {
		[UNTESTED] = (COPIES "the self-test of pages as dma-bufs by " EXTENSION " could not run"),
		[PASSED] = ("pages as dma-bufs by " EXTENSION " are zero copy by self-test"),
		[FAILED] = (COPIES "pages as dma-bufs are not zero copy"),
		[BROKEN] = (COPIES "the device refuses pages as dma-bufs by " EXTENSION),
		[NO_SAMPLE] = (COPIES "nobody makes a dma-buf of pages (/dev/gdmabuf, /dev/udmabuf)"),
	},
	[IMPORT_DMABUF] = {
		[UNTESTED] = ("the self-test of dma-bufs by " EXTENSION " could not run"),
		[PASSED] = ("dma-bufs by " EXTENSION " are zero copy by self-test"),
		[FAILED] = ("the device takes a dma-buf by " EXTENSION " and works on other memory"),
		[BROKEN] = ("the device refuses a dma-buf by " EXTENSION),
		[NO_SAMPLE] = ("dma-bufs by " EXTENSION " are not proved: climport can make none for a "
			      "self-test (/dev/udmabuf, /dev/dma_heap/system)"),
	},
};

static cl_int khr_enqueue_edge(cl_command_queue queue, bool begins, cl_uint count,
			       const cl_mem *imports, cl_uint num_wait, const cl_event *wait,
			       cl_event *event)
{
	layer_clEnqueueAcquireExternalMemObjectsKHR_fn edge;
	const struct extensions *driver;
	const cl_int err = extensions_of_queue(queue, &driver);

	if (err)
		return err;
	edge = begins ? driver->clEnqueueAcquireExternalMemObjectsKHR
		      : driver->clEnqueueReleaseExternalMemObjectsKHR;
	return edge ? edge(queue, count, imports, num_wait, wait, event) : CL_INVALID_COMMAND_QUEUE;
}

static bool khr_has_functions(cl_platform_id platform)
{
	const struct extensions *driver = extensions_of_platform(platform);

	return driver->clEnqueueAcquireExternalMemObjectsKHR &&
	       driver->clEnqueueReleaseExternalMemObjectsKHR && next.clCreateBufferWithProperties;
}

/* Why no self-test is worth the time, by names, handle types and functions; or NULL. */
static const char *khr_find_obstacle(const struct device *device)
{
	if (!has_word(device->extensions, EXTENSION) &&
	    !has_word(device->extensions, EXTENSION "_dma_buf"))
		return "the device has no " EXTENSION;
	if (!driver_imports(device->id, CL_EXTERNAL_MEMORY_HANDLE_DMA_BUF_KHR))
		return "the device has " EXTENSION ", but not for dma-bufs";
	if (!khr_has_functions(device->platform))
		return "the driver lacks functions of " EXTENSION;
	return NULL;
}

static enum tested khr_test(const struct device *device, enum import_type type)
{
	const struct context_import how = { .ops = &method_khr_ops,
					    .device = device,
					    .base_align = device->base_align };
	struct import_region *region;
	enum tested found;
	/* udmabuf takes whole pages. */
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	const int ret = type == IMPORT_HOST ? import_sample_pages(page, &region)
					    : selftest_sample_dmabuf(page, &region);

	if (ret)
		return ret == -EOPNOTSUPP ? NO_SAMPLE : UNTESTED;
	found = session_judge(verify_memory(&how, &device->id, 1, region, ROUNDS_DEFAULT));
	import_put(region);
	return found;
}

/* Of host memory, an obstacle is no reason for people: a method before has refused it. */
static bool khr_probe(struct device *device, enum import_type type, struct facts_type *answer)
{
	const char *obstacle = khr_find_obstacle(device);
	enum tested found;

	if (type == IMPORT_HOST && obstacle)
		return false;
	if (!obstacle) {
		found = khr_test(device, type);
		obstacle = khr_says[type][found];
		answer->is_reason = type == IMPORT_DMABUF;
		answer->align = 1;
		device->facts.is_unknown |= found == UNTESTED;
	} else {
		found = BROKEN;
	}
	snprintf(answer->why, sizeof(answer->why), "%s", obstacle);
	return found == PASSED;
}

/* A dma-buf of pages may begin before the import: the import is then a part of a backing buffer (objects/backing.h). */
static cl_int khr_create_from(cl_context context, const struct context_import *how,
			      cl_mem_flags flags, const struct import_region *region,
			      const struct import_pages *pages, struct method_buffer *buffer)
{
	cl_mem whole;
	cl_int err = backing_check_offset(region, pages->offset, how->base_align);

	if (err)
		return err;
	whole = descriptor_buffer(context, CL_EXTERNAL_MEMORY_HANDLE_DMA_BUF_KHR, flags, pages->fd,
				  pages->offset + region->size, &err);
	if (!whole)
		return err;
	if (!pages->offset) {
		buffer->handle = whole;
		return CL_SUCCESS;
	}
	return backing_import_alone(whole, flags, pages->offset, region->size, buffer);
}

/* The driver's buffer keeps the memory. */
static cl_int khr_create(cl_context context, const struct context_import *how, cl_mem_flags flags,
			 struct import_region *region, struct method_buffer *buffer)
{
	struct import_pages pages = { region->fd, 0 };
	cl_int err = CL_SUCCESS;

	if (region->fd < 0)
		err = error_to_cl(import_pages(region, &pages));
	if (err)
		return err;
	err = khr_create_from(context, how, flags, region, &pages, buffer);
	if (region->fd < 0)
		close(pages.fd);
	return err;
}

static void khr_describe(const struct device *device, enum import_type type,
			 struct device_description *memory)
{
	if (type == IMPORT_HOST)
		memory->address_align = device->base_align;
}

const struct method_ops method_khr_ops = {
	.name = "khr",
	.probe = khr_probe,
	.create = khr_create,
	.create_image = image_create,
	.images = IMAGE_OF_DMABUF,
	.describe = khr_describe,
	.enqueue_edge = khr_enqueue_edge,
	.cpu_optional = true,
	.unsynced = true,
};
