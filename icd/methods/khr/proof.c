/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/methods/khr/proof.h"

#include <errno.h>
#include <unistd.h>

#include "icd/layer.h"
#include "icd/methods/khr/buffer.h"
#include "icd/objects/memobj.h"
#include "icd/selftest/session.h"

#define PROOF_BYTES 4096
#define PROOF_ROUNDS 4 /* the first use is special in drivers with lazy copies */
#define PROOF_ACCESS (IMPORT_READ | IMPORT_WRITE)

struct proof_sample {
	struct import_region *dmabuf;
	struct import_region *pages; /* of host memory, for the CPU; NULL: the dma-buf's mapping */
	bool is_open;		     /* the CPU's access has begun */
};

/* The region is held until the driver has destroyed the buffer. */
static cl_mem proof_create(cl_context context, bool reader, void *arg, cl_int *err)
{
	struct import_region *region = ((struct proof_sample *)arg)->dmabuf;
	cl_mem mem = khr_buffer(context, CL_MEM_READ_WRITE, region->fd, region->size, err);

	(void)reader;
	return memobj_holding(mem, region, err);
}

/* The CPU's access ends before the device's begins, and the other way round. */
static cl_int proof_close(struct proof_sample *sample)
{
	if (!sample->is_open)
		return CL_SUCCESS;
	sample->is_open = false;
	return import_end_access(sample->dmabuf, PROOF_ACCESS) ? CL_OUT_OF_RESOURCES : CL_SUCCESS;
}

static cl_int proof_begin(void *arg)
{
	return proof_close(arg);
}

static cl_int proof_end(void *arg)
{
	struct proof_sample *sample = arg;

	sample->is_open = !import_begin_access(sample->dmabuf, PROOF_ACCESS);
	return sample->is_open ? CL_SUCCESS : CL_OUT_OF_RESOURCES;
}

/* Commands wait for an acquire by its event, and the application for a release: a driver must give both. */
static cl_int proof_edge(cl_command_queue queue, bool begins, const cl_mem buffers[2], void *arg)
{
	cl_event event = NULL;
	cl_int err = begins ? khr_enqueue_acquire(queue, 2, buffers, 0, NULL, &event)
			    : khr_enqueue_release(queue, 2, buffers, 0, NULL, &event);

	(void)arg;
	if (is_created(event, err))
		next.clReleaseEvent(event);
	else if (!err)
		err = CL_INVALID_EVENT;
	return err;
}

static cl_int proof_run_rounds(cl_device_id device, struct proof_sample *sample)
{
	const struct selftest_memory memory = {
		.bytes = sample->pages ? sample->pages->addr : sample->dmabuf->addr,
		.create = proof_create,
		.begin = proof_begin,
		.end = proof_end,
		.edge = proof_edge,
		.rounds = PROOF_ROUNDS,
		.apart = true,
		.arg = sample,
	};
	cl_int result = proof_end(sample);

	if (!result)
		result = selftest_memory(&device, 1, &memory);
	proof_close(sample);
	return result;
}

/* Takes @fd over. */
static int proof_get_dmabuf(int fd, bool cpu_optional, struct proof_sample *sample)
{
	const struct import_desc desc = { .type = IMPORT_DMABUF,
					  .memory = &fd,
					  .size = PROOF_BYTES,
					  .access = PROOF_ACCESS,
					  .cpu_optional = cpu_optional };
	const int ret = import_get(&desc, &sample->dmabuf);

	close(fd);
	return ret;
}

static int proof_get_pages(struct proof_sample *sample)
{
	struct import_pages pages;
	int ret = import_sample_pages(PROOF_BYTES, &sample->pages);

	if (ret)
		return ret;
	ret = import_pages(sample->pages, &pages);
	if (!ret)
		ret = proof_get_dmabuf(pages.fd, true, sample);
	if (ret)
		import_put(sample->pages);
	return ret;
}

static enum tested proof_get_sample(enum khr_memory memory, struct proof_sample *sample)
{
	int ret, fd;

	if (memory == KHR_PAGES) {
		ret = proof_get_pages(sample);
	} else {
		ret = import_sample_dmabuf(PROOF_BYTES, &fd);
		if (!ret)
			ret = proof_get_dmabuf(fd, false, sample);
	}
	if (ret)
		return ret == -EOPNOTSUPP ? NO_SAMPLE : UNTESTED;
	return PASSED;
}

enum tested khr_prove(cl_device_id device, enum khr_memory memory)
{
	struct proof_sample sample = { NULL, NULL, false };
	enum tested found = proof_get_sample(memory, &sample);

	if (found != PASSED)
		return found;
	found = session_judge(proof_run_rounds(device, &sample));
	import_put(sample.dmabuf);
	import_put(sample.pages);
	return found;
}
