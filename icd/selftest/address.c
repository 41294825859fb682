/* SPDX-License-Identifier: Apache-2.0 */
/* The self-test of the address in a kernel of a buffer of the application. */
#include <stdint.h>
#include <stdlib.h>

#include "icd/layer.h"
#include "icd/selftest/job.h"
#include "icd/selftest/selftest.h"
#include "icd/selftest/session.h"

struct address_job {
	struct job job;
	cl_device_id device;
	bool native;
	cl_context context; /* kept by the buffer */
	cl_mem buffer;	    /* retained */
	cl_int err;
	uintptr_t seen;
	bool ran; /* the native kernel, which holds the job until then */
};

struct address_args {
	void *buffer;
	struct address_job *job;
};

static void CL_CALLBACK address_native_kernel(void *arg)
{
	const struct address_args *args = arg;

	args->job->seen = (uintptr_t)args->buffer;
	args->job->ran = true;
	job_put(&args->job->job);
}

static cl_int address_native(struct session *s, struct address_job *j)
{
	struct address_args args = { .job = j };
	const void *location = &args.buffer;
	cl_int err;

	job_hold(&j->job);
	err = next.clEnqueueNativeKernel(s->queue, address_native_kernel, &args, sizeof(args), 1,
					 &j->buffer, &location, 0, NULL, NULL);
	if (!err) {
		err = next.clFinish(s->queue);
		if (err)
			return err; /* the kernel may still run */
	}
	if (!j->ran)
		job_put(&j->job);
	return err;
}

static cl_int address_compiled(struct session *s, struct address_job *j)
{
	cl_ulong seen = 0;
	cl_int err;
	cl_mem out = created_or_null(
		next.clCreateBuffer(s->context, CL_MEM_READ_WRITE, sizeof(seen), NULL, &err), &err);
	const struct session_arg args[] = { { sizeof(out), &out },
					    { sizeof(j->buffer), &j->buffer } };

	if (!err)
		err = session_enqueue(s, "climport_selftest_address", args, 2);
	if (!err)
		err = next.clEnqueueReadBuffer(s->queue, out, CL_TRUE, 0, sizeof(seen), &seen, 0,
					       NULL, NULL);
	if (out)
		next.clReleaseMemObject(out);
	j->seen = (uintptr_t)seen;
	return err;
}

static void address_run(struct job *job)
{
	struct address_job *j = (struct address_job *)job;
	struct session s = {
		.devices = &j->device,
		.num_devices = 1,
		.native = j->native,
		.context = j->context,
	};

	s.queue = created_or_null(next.clCreateCommandQueue(j->context, j->device, 0, &j->err),
				  &j->err);
	if (!j->err && !j->native)
		j->err = session_build(&s);
	if (!j->err)
		j->err = j->native ? address_native(&s, j) : address_compiled(&s, j);
	s.context = NULL; /* the application's */
	session_end(&s);
	next.clReleaseMemObject(j->buffer);
}

enum tested selftest_address(cl_device_id device, cl_mem buffer, const void *addr)
{
	struct address_job *j = calloc(1, sizeof(*j));
	enum tested found = UNTESTED;

	if (!j)
		return UNTESTED;
	j->job.run = address_run;
	j->device = device;
	j->native = !selftest_needs_compiler(device);
	j->buffer = buffer;
	if (next.clGetMemObjectInfo(buffer, CL_MEM_CONTEXT, sizeof(j->context), &j->context,
				    NULL) ||
	    next.clRetainMemObject(buffer)) {
		free(j);
		return UNTESTED;
	}
	switch (job_run(&j->job, session_limit(device))) {
	case JOB_ENDED:
		found = session_judge(j->err ? j->err : j->seen == (uintptr_t)addr);
		break;
	case JOB_ABANDONED:
		found = HUNG;
		break;
	case JOB_NOT_STARTED:
		next.clReleaseMemObject(buffer);
		break;
	}
	job_put(&j->job);
	return found;
}
