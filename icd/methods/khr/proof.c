/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/methods/khr/proof.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "icd/layer.h"
#include "icd/methods/khr/buffer.h"
#include "icd/objects/memobj_watch.h"
#include "icd/selftest/job.h"
#include "icd/selftest/session.h"

#define PROOF_BYTES 4096
#define PROOF_ROUNDS 4 /* the first use is special in drivers with lazy copies */
#define PROOF_ACCESS (IMPORT_READ | IMPORT_WRITE)

struct proof_sample {
	struct import_region *region;
	bool is_open; /* the CPU's access has begun */
};

struct proof_job {
	struct job job;
	cl_device_id device;
};

/* The region is held until the driver has destroyed the buffer. */
static cl_mem proof_create(cl_context context, bool reader, void *arg, cl_int *err)
{
	struct import_region *region = ((struct proof_sample *)arg)->region;
	cl_mem mem = khr_buffer(context, CL_MEM_READ_WRITE, region->fd, region->size, err);

	(void)reader;
	if (!mem)
		return NULL;
	*err = memobj_watch(mem, region, memobj_destroyed);
	if (!*err)
		return mem;
	next.clReleaseMemObject(mem);
	return NULL;
}

/* The CPU's access ends before the device's begins, and the other way round. */
static cl_int proof_close(struct proof_sample *sample)
{
	if (!sample->is_open)
		return CL_SUCCESS;
	sample->is_open = false;
	return import_end_access(sample->region, PROOF_ACCESS) ? CL_OUT_OF_RESOURCES : CL_SUCCESS;
}

static cl_int proof_begin(cl_context context, void *arg)
{
	(void)context;
	return proof_close(arg);
}

static cl_int proof_end(void *arg)
{
	struct proof_sample *sample = arg;

	sample->is_open = !import_begin_access(sample->region, PROOF_ACCESS);
	return sample->is_open ? CL_SUCCESS : CL_OUT_OF_RESOURCES;
}

static cl_int proof_edge(cl_command_queue queue, bool begins, const cl_mem buffers[2], void *arg)
{
	(void)arg;
	return begins ? khr_enqueue_acquire(queue, 2, buffers, 0, NULL, NULL)
		      : khr_enqueue_release(queue, 2, buffers, 0, NULL, NULL);
}

static cl_int proof_run_rounds(cl_device_id device, struct import_region *region)
{
	struct proof_sample sample = { region, false };
	const struct selftest_memory memory = {
		.bytes = region->addr,
		.create = proof_create,
		.begin = proof_begin,
		.end = proof_end,
		.edge = proof_edge,
		.rounds = PROOF_ROUNDS,
		.apart = true,
		.arg = &sample,
	};
	cl_int result = proof_end(&sample);

	if (!result)
		result = selftest_memory(device, &memory);
	proof_close(&sample);
	return result;
}

static enum tested proof_get_sample(struct import_region **region)
{
	int fd, ret = import_sample_dmabuf(PROOF_BYTES, &fd);
	const struct import_desc desc = { IMPORT_DMABUF, &fd, PROOF_BYTES, PROOF_ACCESS, false };

	if (ret)
		return ret == -EOPNOTSUPP ? NO_SAMPLE : UNTESTED;
	ret = import_get(&desc, region);
	close(fd);
	return ret ? UNTESTED : PASSED;
}

static void proof_run(struct job *job)
{
	struct import_region *region;

	job->found = proof_get_sample(&region);
	if (job->found != PASSED)
		return;
	job->found = session_judge(proof_run_rounds(((struct proof_job *)job)->device, region));
	import_put(region);
}

enum tested khr_prove(cl_device_id device)
{
	struct proof_job *j = calloc(1, sizeof(*j));

	if (!j)
		return UNTESTED;
	j->job.run = proof_run;
	j->device = device;
	return job_test(&j->job, JOB_COMPILE_LIMIT_MS);
}
