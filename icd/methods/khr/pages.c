/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host memory on a device that copies host pointers: a dma-buf of the pages, by
 * cl_khr_external_memory.  A self-test decides, on host memory of climport's own.
 *
 * A dma-buf is of whole pages.  If an import begins inside, the import is a part of a backing buffer
 * over the pages (part.h).
 */
#include <unistd.h>

#include "icd/error.h"
#include "icd/methods/khr/buffer.h"
#include "icd/methods/khr/device.h"
#include "icd/methods/khr/image.h"
#include "icd/methods/part.h"
#include "icd/objects/context.h"

/* Sentences. */
static const char *const pages_says[] = {
	[UNTESTED] = "CL_MEM_USE_HOST_PTR copies, and the self-test of pages as dma-bufs "
		     "by " KHR_EXTENSION " could not run",
	[PASSED] = "pages as dma-bufs by " KHR_EXTENSION " are zero copy by self-test",
	[FAILED] = "CL_MEM_USE_HOST_PTR copies on this device, and pages as dma-bufs are not zero "
		   "copy",
	[BROKEN] = "CL_MEM_USE_HOST_PTR copies on this device, and the device refuses pages as "
		   "dma-bufs by " KHR_EXTENSION,
	[NO_SAMPLE] =
		"CL_MEM_USE_HOST_PTR copies on this device, and nobody makes a dma-buf of pages "
		"(/dev/gdmabuf, /dev/udmabuf)",
};

static bool pages_probe(struct device *device, const char *extensions, enum import_type type,
			struct method *method)
{
	struct method own = { .unknown = false };

	if (type != IMPORT_HOST || method->unknown || !khr_may_take(device, extensions, &own))
		return false;
	return khr_find_out(device, KHR_PAGES, pages_says, method);
}

static cl_int pages_create_from(cl_context context, const struct context_import *how,
				cl_mem_flags flags, const struct import_region *region,
				const struct import_pages *pages, struct method_buffer *buffer)
{
	struct backing *backing;
	cl_mem whole;
	cl_int err = part_check_offset(region, pages->offset, how->base_align);

	if (err)
		return err;
	whole = khr_buffer(context, flags, pages->fd, pages->offset + region->size, &err);
	if (!whole)
		return err;
	if (!pages->offset) {
		buffer->handle = whole;
		return CL_SUCCESS;
	}
	backing = backing_create(whole);
	if (!backing)
		return CL_OUT_OF_HOST_MEMORY;
	err = part_create(backing, flags, pages->offset, region->size, buffer);
	if (err)
		backing_put(backing);
	return err;
}

/* The driver's buffer keeps the pages. */
static cl_int pages_create(cl_context context, const struct context_import *how, cl_mem_flags flags,
			   struct import_region *region, struct method_buffer *buffer)
{
	struct import_pages pages;
	cl_int err = error_to_cl(import_pages(region, &pages));

	if (err)
		return err;
	err = pages_create_from(context, how, flags, region, &pages, buffer);
	close(pages.fd);
	return err;
}

static void pages_describe(const struct device *device, enum import_type type,
			   struct method_memory *memory)
{
	(void)type;
	memory->address_align = device->base_align;
}

const struct method_ops method_khr_pages_ops = {
	.name = "khr",
	.types = 1u << IMPORT_HOST,
	.probe = pages_probe,
	.create = pages_create,
	.create_sub_buffer = part_create_sub_buffer,
	.release_hidden = part_release,
	.hidden_buffer = part_buffer,
	.create_image = khr_create_image,
	.image_dangers = khr_image_dangers,
	.describe = pages_describe,
	.enqueue_acquire = khr_enqueue_acquire,
	.enqueue_release = khr_enqueue_release,
};
