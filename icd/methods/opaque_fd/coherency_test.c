/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The self-test takes a page of host memory with a descriptor of the exporter, and creates two
 * buffers over the page.  Three results are possible: the device sees the host's memory at
 * once, sees the memory after an invalidation, or does not see the memory.
 */
#include "icd/methods/opaque_fd/coherency_test.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "icd/layer.h"
#include "icd/methods/opaque_fd/buffer.h"
#include "icd/methods/opaque_fd/invalidate.h"
#include "icd/objects/memobj_watch.h"
#include "icd/selftest/job.h"
#include "icd/selftest/selftest.h"
#include "util/log.h"

#define ROUNDS 256 /* by chance, other programs may evict the device's cache */

struct coherency_job {
	struct job job;
	cl_device_id device;
	unsigned char uuid[IMPORT_UUID_SIZE];
	unsigned int exporter;
	bool is_conclusive;
	enum coherency found;
};

struct coherency_sample {
	struct import_region *region;
	struct import_opaque opaque;
	const unsigned char *uuid;
	struct import_bracket *bracket; /* in the test's context; NULL at first */
};

/* The region is held until the driver has destroyed the buffer. */
static cl_mem coherency_buffer(cl_context context, bool reader, void *arg, cl_int *err)
{
	const struct coherency_sample *s = arg;
	cl_mem mem =
		opaque_fd_buffer(context, CL_MEM_READ_WRITE, s->opaque.fd, s->region->size, err);

	(void)reader;
	if (!mem)
		return NULL;
	*err = memobj_watch(mem, s->region, memobj_destroyed);
	if (!*err)
		return mem;
	next.clReleaseMemObject(mem);
	return NULL;
}

static cl_int coherency_invalidate(cl_context context, void *arg)
{
	struct coherency_sample *s = arg;

	if (!s->bracket && invalidate_get(context, s->uuid, &s->bracket))
		return CL_OUT_OF_RESOURCES;
	return s->bracket->begin(s->bracket) ? CL_INVALID_OPERATION : CL_SUCCESS;
}

static void coherency_finish(void *arg)
{
	struct coherency_sample *s = arg;

	if (s->bracket)
		s->bracket->put(s->bracket);
	s->bracket = NULL;
}

/* Returns 1: zero copy, 0: not, or an error of OpenCL. */
static cl_int coherency_run_rounds(cl_device_id device, struct coherency_sample *s,
				   bool invalidated)
{
	const struct selftest_memory memory = {
		.bytes = s->region->addr,
		.create = coherency_buffer,
		.begin = invalidated ? coherency_invalidate : NULL,
		.finish = coherency_finish,
		.rounds = ROUNDS,
		.apart = true,
		.arg = s,
	};

	return selftest_memory(&device, 1, &memory);
}

/* An invalidation precedes a kernel by a user event (access.h). */
static void coherency_check_events(struct coherency_job *j)
{
	switch (selftest_user_event(j->device)) {
	case PASSED:
		j->found = NEEDS_INVALIDATE;
		break;
	case UNTESTED:
		j->is_conclusive = false;
		break;
	default:
		log_error("commands that wait for user events do not work on this device, so its "
			  "caches cannot be invalidated before kernels");
		j->found = COPIES;
	}
}

/*
 * Memory that a device may cache is never believed to be coherent: a cache kept full by other
 * programs would pass the test.
 */
static void coherency_test_sample(struct coherency_job *j, struct coherency_sample *s)
{
	const bool is_cached = import_exporter_get(j->exporter)->is_cached;
	const cl_int result = coherency_run_rounds(j->device, s, is_cached);

	if (selftest_is_transient(result))
		j->is_conclusive = false;
	else if (result != 1)
		j->found = COPIES;
	else if (is_cached)
		coherency_check_events(j);
	else
		j->found = COHERENT;
}

static void coherency_run(struct job *job)
{
	struct coherency_job *j = (struct coherency_job *)job;
	struct coherency_sample s = { .uuid = j->uuid };

	j->is_conclusive = true;
	j->found = EXPORTS_NOTHING;
	if (import_sample(j->exporter, s.uuid, &s.region))
		return;
	if (!import_opaque(s.region, s.uuid, 1u << j->exporter, &s.opaque)) {
		coherency_test_sample(j, &s);
		close(s.opaque.fd);
	}
	import_put(s.region);
}

bool coherency_test(cl_device_id device, const unsigned char uuid[IMPORT_UUID_SIZE],
		    unsigned int exporter, enum coherency *found)
{
	struct coherency_job *j = calloc(1, sizeof(*j));
	bool is_conclusive = false;

	if (!j)
		return false;
	j->job.run = coherency_run;
	j->device = device;
	memcpy(j->uuid, uuid, sizeof(j->uuid));
	j->exporter = exporter;
	switch (job_run(&j->job, JOB_COMPILE_LIMIT_MS)) {
	case JOB_ENDED:
		is_conclusive = j->is_conclusive;
		*found = j->found;
		break;
	case JOB_ABANDONED:
		is_conclusive = true;
		*found = EXPORTS_NOTHING;
		break;
	case JOB_NOT_STARTED:
		break;
	}
	job_put(&j->job);
	return is_conclusive;
}
