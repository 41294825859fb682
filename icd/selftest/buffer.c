/* SPDX-License-Identifier: Apache-2.0 */
/* The self-test of buffers over a class of memory: struct selftest_part. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "icd/selftest/job.h"
#include "icd/selftest/rounds.h"
#include "icd/selftest/selftest.h"

struct buffer_job {
	struct job job;
	struct selftest_part part;
	bool native;
	struct session *session;
	bool is_whole; /* every object of the session exists */
	enum tested found;
	cl_uint num_devices;
	cl_device_id devices[];
};

/* A driver may populate all memory of a buffer; a test must not take the machine's memory. */
static bool buffer_is_affordable(const struct selftest_part *part)
{
	return part->is_sparse || part->size <= import_memory_available() / 2;
}

static enum tested buffer_get_sample(const struct selftest_part *part,
				     struct import_region **region)
{
	struct import_sample_want want = {
		.kind = part->kind,
		.offset = part->offset,
		.size = part->size,
		.is_sparse = part->is_sparse,
	};

	if (!buffer_is_affordable(part))
		return UNTESTED;
	rounds_places(part->size, want.at);
	switch (import_sample_kind(&want, region)) {
	case 0:
		return PASSED;
	case -EOPNOTSUPP:
		return NO_SAMPLE;
	default:
		return UNTESTED;
	}
}

/* A kept session was made by an earlier job for equal devices. */
static cl_int buffer_begin(struct buffer_job *j)
{
	cl_int err;

	if (j->session) {
		j->session->devices = j->devices;
		return session_use_device(j->session, j->devices[0]);
	}
	j->session = calloc(1, sizeof(*j->session));
	if (!j->session)
		return CL_OUT_OF_HOST_MEMORY;
	err = session_begin(j->session, j->devices, j->num_devices, j->native);
	j->is_whole = !err;
	return err;
}

static cl_int buffer_run_on(struct buffer_job *j, struct import_region *region)
{
	struct rounds_part part = { region, 0, j->part.size, j->part.flags };
	cl_int result = buffer_begin(j);

	if (!result)
		result = rounds_run_part(j->session, &part);
	for (cl_uint i = 1; i < j->num_devices && result == 1; i++) {
		result = session_use_device(j->session, j->devices[i]);
		if (!result)
			result = rounds_run_part(j->session, &part);
	}
	return result;
}

static void buffer_late(struct job *job)
{
	session_free(((struct buffer_job *)job)->session);
}

/* After the end of a test: the compiled kernels serve the next test. */
static void buffer_keep(struct buffer_job *j, struct selftest_kept *kept)
{
	if (j->native || !j->is_whole)
		session_free(j->session);
	else
		session_keep(kept, j->session);
}

static void buffer_run(struct job *job)
{
	struct buffer_job *j = (struct buffer_job *)job;
	struct import_region *region;

	j->found = buffer_get_sample(&j->part, &region);
	if (j->found != PASSED)
		return;
	j->found = session_judge(buffer_run_on(j, region));
	import_put(region);
}

/* More milliseconds, as a driver may populate all memory of a buffer. */
static unsigned int buffer_populate_limit(size_t size)
{
	return (unsigned int)(size >> 26) * 1000;
}

enum tested selftest_part(const cl_device_id *devices, cl_uint num_devices,
			  const struct selftest_part *part, struct selftest_kept *kept)
{
	const size_t bytes = num_devices * sizeof(devices[0]);
	struct buffer_job *j = calloc(1, sizeof(*j) + bytes);
	unsigned int limit_ms = JOB_LIMIT_MS;
	enum tested found = UNTESTED;

	if (!j)
		return UNTESTED;
	j->job.run = buffer_run;
	j->job.late = buffer_late;
	j->part = *part;
	j->num_devices = num_devices;
	memcpy(j->devices, devices, bytes);
	j->native = true;
	for (cl_uint i = 0; i < num_devices; i++)
		j->native &= !selftest_needs_compiler(devices[i]);
	if (!j->native) {
		limit_ms = JOB_COMPILE_LIMIT_MS;
		j->session = session_take(kept);
		j->is_whole = j->session;
	}
	switch (job_run(&j->job, limit_ms + buffer_populate_limit(part->size))) {
	case JOB_ENDED:
		found = j->found;
		buffer_keep(j, kept);
		break;
	case JOB_ABANDONED:
		found = HUNG;
		break;
	case JOB_NOT_STARTED:
		buffer_keep(j, kept);
		break;
	}
	job_put(&j->job);
	return found;
}
