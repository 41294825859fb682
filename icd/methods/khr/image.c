/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/methods/khr/image.h"

#include <errno.h>
#include <unistd.h>

#include "icd/layer.h"
#include "icd/methods/host_ptr/image_create.h"
#include "icd/methods/khr/buffer.h"
#include "icd/objects/device.h"
#include "icd/objects/memobj.h"
#include "icd/selftest/selftest.h"

/* Whole pages: a dma-buf has no other size, and begins at a page. */
static int khr_image_sample(const struct import_sample_want *want, struct import_region **region)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE),
		     size = (want->size + page - 1) & ~(page - 1);
	int fd, ret = want->offset ? -EOPNOTSUPP : import_sample_dmabuf(size, &fd);
	const struct import_desc desc = { .type = IMPORT_DMABUF,
					  .memory = &fd,
					  .size = size,
					  .access = IMPORT_READ | IMPORT_WRITE };

	if (ret)
		return ret;
	ret = import_get(&desc, region);
	close(fd);
	return ret;
}

static cl_mem khr_image_buffer(cl_context context, cl_mem_flags flags, struct import_region *region,
			       cl_int *err)
{
	cl_mem mem = khr_buffer(context, flags, region->fd, region->size, err);

	return memobj_holding(mem, region, err);
}

static cl_int khr_image_edge(cl_command_queue queue, bool begins, const cl_mem buffers[2])
{
	return begins ? khr_enqueue_acquire(queue, 2, buffers, 0, NULL, NULL)
		      : khr_enqueue_release(queue, 2, buffers, 0, NULL, NULL);
}

static void khr_test_image(struct device *device, unsigned int image)
{
	static const struct selftest_image_ops ops = { khr_image_sample, khr_image_buffer,
						       khr_image_edge };
	const struct selftest_image asked = {
		.device = device->id,
		.ops = &ops,
		.align = (size_t)sysconf(_SC_PAGESIZE),
		.number = image,
	};

	device->facts.is_unknown |= !selftest_image(&asked, &device->facts.images[image]);
}

static void khr_test_image_2d(struct device *device, unsigned int image)
{
	if (device->image2d_from_buffer)
		khr_test_image(device, image);
	else
		device->facts.images[image].found = IMAGE_UNPROVED;
}

const struct method_danger khr_image_dangers[] = {
	{ "image_1d_of_dma_buf", khr_test_image, IMAGE_RULE(IMAGE_OF_DMABUF, false) },
	{ "image_2d_of_dma_buf", khr_test_image_2d, IMAGE_RULE(IMAGE_OF_DMABUF, true) },
	{ "image_1d_of_part", khr_test_image, IMAGE_RULE(IMAGE_OF_PART_OF_DMABUF, false) },
	{ "image_2d_of_part", khr_test_image_2d, IMAGE_RULE(IMAGE_OF_PART_OF_DMABUF, true) },
	{ .name = NULL },
};

cl_mem khr_create_image(struct context *context, const struct memobj *parent,
			const struct image_request *r, bool *hides_parent, cl_int *err)
{
	(void)hides_parent;
	return image_from_buffer(
		context, parent, r,
		image_is_of_part(parent) ? IMAGE_OF_PART_OF_DMABUF : IMAGE_OF_DMABUF, err);
}
