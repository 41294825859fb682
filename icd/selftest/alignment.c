/* SPDX-License-Identifier: Apache-2.0 */
/* Which alignment of pointers and sizes CL_MEM_USE_HOST_PTR is zero copy for. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "icd/selftest/job.h"
#include "icd/selftest/rounds.h"
#include "icd/selftest/selftest.h"
#include "util/cl_names.h"

#define ALIGNMENTS 3

/* The strictest alignment first.  Samples are aligned so, and no more. */
static const struct {
	size_t align, offset, size; /* 0: a page */
} alignments[ALIGNMENTS] = {
	{ 0, 0, 0 },
	{ 64, 64, 192 },
	{ 1, 129, 77 },
};

struct alignment_job {
	struct job job;
	cl_device_id device;
	bool native;
	size_t align; /* 0: no alignment passed */
	cl_int result;
};

static cl_int alignment_run_one(struct session *s, struct import_region *region, size_t i)
{
	struct rounds_part part = {
		.region = region,
		.offset = alignments[i].offset,
		.size = alignments[i].size ? alignments[i].size : (size_t)sysconf(_SC_PAGESIZE),
		.flags = CL_MEM_READ_WRITE,
	};

	return rounds_run_part(s, &part);
}

/*
 * A driver may refuse loose alignments with an error that else means a lack of the moment.  The
 * alignment is to blame if whole pages pass, and the alignment fails again.
 */
static cl_int alignment_run_again(struct session *s, struct import_region *region, size_t i)
{
	cl_int result = alignment_run_one(s, region, 0);

	if (result != 1)
		return CL_OUT_OF_RESOURCES;
	result = alignment_run_one(s, region, i);
	return selftest_is_transient(result) ? CL_INVALID_HOST_PTR : result;
}

/*
 * Runs the rounds at each alignment, and stops where the rounds fail.  j->align is the loosest
 * alignment with success.
 */
static cl_int alignment_run_all(struct alignment_job *j, struct session *s,
				struct import_region *region)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);

	for (size_t i = 0; i < ALIGNMENTS; i++) {
		cl_int result = alignment_run_one(s, region, i);

		if (i && selftest_is_transient(result))
			result = alignment_run_again(s, region, i);
		if (result != 1)
			return result;
		j->align = alignments[i].align ? alignments[i].align : page;
	}
	return 1;
}

static void alignment_run(struct job *job)
{
	struct alignment_job *j = (struct alignment_job *)job;
	const struct import_sample_want want = {
		.kind = IMPORT_ANONYMOUS,
		.size = (size_t)sysconf(_SC_PAGESIZE),
		.is_sparse = true,
	};
	struct import_region *region;
	struct session s;

	if (import_sample_kind(&want, &region)) {
		j->result = CL_OUT_OF_HOST_MEMORY;
		return;
	}
	j->result = session_begin(&s, &j->device, 1, j->native);
	if (!j->result)
		j->result = alignment_run_all(j, &s, region);
	session_end(&s);
	import_put(region);
}

static enum tested alignment_judge(const struct alignment_job *j, char *why, size_t size)
{
	if (j->align && !selftest_is_transient(j->result)) {
		snprintf(why, size, "CL_MEM_USE_HOST_PTR is zero copy by self-test, alignment %zu",
			 j->align);
		return PASSED;
	}
	if (!j->result) {
		snprintf(why, size, "CL_MEM_USE_HOST_PTR copies on this device");
		return FAILED;
	}
	snprintf(why, size, "the self-test of CL_MEM_USE_HOST_PTR failed with %s",
		 cl_error_name(j->result));
	return selftest_is_transient(j->result) ? UNTESTED : BROKEN;
}

/* For a job without a result. */
static enum tested alignment_judge_end(enum job_end end, const char *what, unsigned int limit_ms,
				       char *why, size_t size)
{
	if (end == JOB_NOT_STARTED) {
		snprintf(why, size, "the self-test of %s got no thread", what);
		return UNTESTED;
	}
	snprintf(why, size, "the self-test of %s did not end within %u seconds", what,
		 limit_ms / 1000);
	return HUNG;
}

enum tested selftest_host_ptr(cl_device_id device, size_t *align, char *why, size_t size)
{
	struct alignment_job *j = calloc(1, sizeof(*j));
	unsigned int limit_ms = session_limit(device);
	enum tested found;
	enum job_end end;

	*align = 0;
	if (!j) {
		snprintf(why, size, "no memory for the self-test of CL_MEM_USE_HOST_PTR");
		return UNTESTED;
	}
	j->job.run = alignment_run;
	j->device = device;
	j->native = !selftest_needs_compiler(device);
	end = job_run(&j->job, limit_ms);
	if (end == JOB_ENDED) {
		found = alignment_judge(j, why, size);
		*align = j->align;
	} else {
		found = alignment_judge_end(end, "CL_MEM_USE_HOST_PTR", limit_ms, why, size);
	}
	job_put(&j->job);
	return found;
}
