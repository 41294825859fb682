/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/methods/khr/image.h"

#include <errno.h>
#include <unistd.h>

#include "icd/layer.h"
#include "icd/methods/host_ptr/image_check.h"
#include "icd/methods/host_ptr/image_made.h"
#include "icd/methods/host_ptr/image_proof.h"
#include "icd/methods/image_by_driver.h"
#include "icd/methods/khr/buffer.h"
#include "icd/objects/memobj.h"

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

static bool khr_image_run_proof(cl_platform_id platform, const char *words, char *answer,
				size_t size);

const struct proof khr_image_proof = {
	.name = "image_khr",
	.patience_ms = IMAGE_PROOF_PATIENCE_MS,
	.run = khr_image_run_proof,
};

static const struct selftest_image_ops khr_image_ops = {
	.name = "khr",
	.proof = &khr_image_proof,
	.sample = khr_image_sample,
	.create_buffer = khr_image_buffer,
	.edge = khr_image_edge,
};

static bool khr_image_run_proof(cl_platform_id platform, const char *words, char *answer,
				size_t size)
{
	return image_proof_run(&khr_image_ops, platform, words, answer, size);
}

cl_mem khr_create_image(struct context *context, const struct memobj *parent,
			const struct image_request *r, bool *hides_parent, cl_int *err)
{
	struct image_place place;
	cl_mem image;

	*err = image_check_address(r->format, image_memory(parent));
	if (*err)
		return NULL;
	image_place_get(parent, &place);
	place.ops = &khr_image_ops;
	*err = image_made_allow(context, r, parent, &place);
	if (*err)
		return NULL;
	image = image_by_driver_create(context, parent, r, hides_parent, err);
	if (!is_created(image, *err))
		return image;
	*err = image_made_check(context, image, r, parent, &place);
	if (!*err)
		return image;
	next.clReleaseMemObject(image);
	return NULL;
}
