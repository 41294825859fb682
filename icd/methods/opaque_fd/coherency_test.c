/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The self-test takes a page of host memory with a descriptor of the exporter, and creates two
 * buffers over the page: the device sees the host's memory, or does not.
 *
 * To make and to release a context takes a fifth of a second (NVIDIA 580), so a session serves all
 * exporters.  After a test that has not passed, the next test gets a new session: a kernel may have
 * ended the context.
 */
#include "icd/methods/opaque_fd/coherency_test.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "icd/layer.h"
#include "icd/methods/opaque_fd/buffer.h"
#include "icd/objects/memobj_watch.h"
#include "icd/selftest/job.h"
#include "icd/selftest/rounds.h"
#include "icd/selftest/selftest.h"
#include "util/log.h"
#include "util/shortage.h"

#define ROUNDS 256 /* by chance, other programs may evict the device's cache */

struct coherency_job {
	struct job job; /* job.found: PASSED if found is set */
	cl_device_id device;
	unsigned char uuid[IMPORT_UUID_SIZE];
	unsigned int exporter;
	struct session *session; /* NULL: none yet, or no more */
	enum coherency found;
};

struct coherency_sample {
	struct import_region *region;
	struct import_opaque opaque;
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

/* A kept session was made by an earlier job for the device. */
static cl_int coherency_test_begin(struct coherency_job *j)
{
	if (j->session) {
		j->session->devices = &j->device;
		return CL_SUCCESS;
	}
	j->session = calloc(1, sizeof(*j->session));
	return j->session ? session_begin(j->session, &j->device, 1, false) : CL_OUT_OF_HOST_MEMORY;
}

static void coherency_test_end(struct coherency_job *j)
{
	session_free(j->session);
	j->session = NULL;
}

/* Returns 1: zero copy, 0: not, or an error of OpenCL. */
static cl_int coherency_run_rounds(struct coherency_job *j, struct coherency_sample *s)
{
	const struct selftest_memory memory = {
		.bytes = s->region->addr,
		.create = coherency_buffer,
		.rounds = ROUNDS,
		.apart = true,
		.arg = s,
	};
	cl_int result = coherency_test_begin(j);

	if (!result)
		result = rounds_run_on_all(j->session, &memory);
	if (result != 1)
		coherency_test_end(j);
	return result;
}

static void coherency_test_sample(struct coherency_job *j, struct coherency_sample *s)
{
	const cl_int result = coherency_run_rounds(j, s);

	if (selftest_is_transient(result))
		j->job.found = UNTESTED;
	else
		j->found = result == 1 ? COHERENT : COPIES;
}

/* 0, or why the exporter makes no descriptor of a page: a negative errno. */
static int coherency_test_exporter(struct coherency_job *j)
{
	struct coherency_sample s;
	int ret = import_sample(j->exporter, j->uuid, &s.region);

	if (ret)
		return ret;
	ret = import_opaque(s.region, j->uuid, &s.opaque);
	if (!ret) {
		coherency_test_sample(j, &s);
		close(s.opaque.fd);
	}
	import_put(s.region);
	return ret;
}

/* A shortage says nothing about the exporter. */
static void coherency_run(struct job *job)
{
	struct coherency_job *j = (struct coherency_job *)job;

	j->job.found = PASSED;
	j->found = EXPORTS_NOTHING;
	if (shortage_is(coherency_test_exporter(j)))
		j->job.found = UNTESTED;
}

static void coherency_test_keep(struct coherency_job *j, struct selftest_kept *kept)
{
	if (j->session)
		session_keep(kept, j->session);
}

static void coherency_test_late(struct job *job)
{
	coherency_test_end((struct coherency_job *)job);
}

enum tested coherency_test(cl_device_id device, const unsigned char uuid[IMPORT_UUID_SIZE],
			   unsigned int exporter, struct selftest_kept *kept, enum coherency *found)
{
	struct coherency_job *j = calloc(1, sizeof(*j));
	enum tested tested = UNTESTED;

	if (!j)
		return UNTESTED;
	j->job.run = coherency_run;
	j->job.late = coherency_test_late;
	j->device = device;
	memcpy(j->uuid, uuid, sizeof(j->uuid));
	j->exporter = exporter;
	j->session = session_take(kept);
	switch (job_run(&j->job, JOB_COMPILE_LIMIT_MS)) {
	case JOB_ENDED:
		tested = j->job.found;
		*found = j->found;
		coherency_test_keep(j, kept);
		break;
	case JOB_ABANDONED:
		tested = HUNG;
		break;
	case JOB_NOT_STARTED:
		coherency_test_keep(j, kept);
		break;
	}
	job_put(&j->job);
	return tested;
}

/* A job: a driver may hang in the release of a context. */
struct coherency_drop {
	struct job job;
	struct session *session;
};

static void coherency_test_drop(struct job *job)
{
	session_free(((struct coherency_drop *)job)->session);
}

void coherency_drop(struct selftest_kept *kept)
{
	struct session *session = session_take(kept);
	struct coherency_drop *drop = session ? calloc(1, sizeof(*drop)) : NULL;

	if (!drop) {
		session_free(session);
		return;
	}
	drop->job.run = coherency_test_drop;
	drop->session = session;
	if (job_run(&drop->job, JOB_LIMIT_MS) == JOB_NOT_STARTED)
		session_free(session);
	job_put(&drop->job);
}
