/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/selftest/selftest.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "icd/layer.h"
#include "icd/selftest/job.h"
#include "import/import.h"
#include "util/log.h"
#include "util/thread.h"

#define ROUNDS 3 /* the first use is special in drivers that copy lazily */
#define PLACES SELFTEST_PLACES

static const char source[] =
	"__kernel void climport_selftest(volatile __global uchar *a, volatile __global uchar *b,\n"
	"	ulong at0, ulong at1, ulong at2, uint value)\n"
	"{\n"
	"	ulong at[3] = { at0, at1, at2 };\n"
	"	for (int i = 0; i < 3; i++) {\n"
	"		a[at[i]] = value;\n"
	"		a[at[i] + 1] = b[at[i]];\n"
	"		a[at[i] + 2] = b[at[i] + 3];\n"
	"	}\n"
	"}\n"
	"__kernel void climport_selftest_both(volatile __global uchar *a, volatile __global uchar "
	"*b,\n"
	"	ulong at0, ulong at1, ulong at2, uint value)\n"
	"{\n"
	"	ulong at[3] = { at0, at1, at2 };\n"
	"	for (int i = 0; i < 3; i++) {\n"
	"		a[at[i]] = value;\n"
	"		b[at[i] + 1] = value;\n"
	"	}\n"
	"}\n"
	"__kernel void climport_selftest_write(volatile __global uchar *a, uint value)\n"
	"{\n"
	"	a[0] = value;\n"
	"}\n"
	"__kernel void climport_selftest_read(volatile __global uchar *b)\n"
	"{\n"
	"	b[1] = b[0];\n"
	"	b[2] = b[3];\n"
	"}\n"
	"__kernel void climport_selftest_address(__global ulong *out, __global uchar *a)\n"
	"{\n"
	"	out[0] = (ulong)a;\n"
	"}\n";

#define CLASSES 3

/* The strictest alignment first: what passes only there is refused elsewhere. */
static const struct {
	size_t align, offset, size; /* 0: a page */
} classes[CLASSES] = {
	{ 0, 0, 0 },
	{ 64, 64, 192 },
	{ 1, 129, 77 },
};

struct selftest {
	const cl_device_id *devices; /* of the context */
	cl_uint num_devices;
	bool native; /* by native kernels; nothing is compiled */
	cl_context context;
	cl_command_queue queue; /* of the device that is tested */
	cl_program program;
};

/* Errors of the moment say nothing about the device. */
bool selftest_is_transient(cl_int err)
{
	return err == CL_OUT_OF_HOST_MEMORY || err == CL_OUT_OF_RESOURCES ||
	       err == CL_MEM_OBJECT_ALLOCATION_FAILURE || err == CL_DEVICE_NOT_AVAILABLE;
}

bool selftest_needs_compiler(cl_device_id device)
{
	cl_device_exec_capabilities can = 0;

	next.clGetDeviceInfo(device, CL_DEVICE_EXECUTION_CAPABILITIES, sizeof(can), &can, NULL);
	return !(can & CL_EXEC_NATIVE_KERNEL) || !next.clEnqueueNativeKernel;
}

static unsigned int limit_of(cl_device_id device)
{
	return selftest_needs_compiler(device) ? JOB_COMPILE_LIMIT_MS : JOB_LIMIT_MS;
}

/* On the caller's thread, perhaps: a driver may wait for a queue's thread. */
static void selftest_end(struct selftest *t)
{
	THREAD_NO_CANCEL();

	if (t->program)
		next.clReleaseProgram(t->program);
	if (t->queue)
		next.clReleaseCommandQueue(t->queue);
	if (t->context)
		next.clReleaseContext(t->context);
}

static cl_int selftest_build(struct selftest *t)
{
	const char *text = source;
	cl_int err;

	t->program = created_or_null(
		next.clCreateProgramWithSource(t->context, 1, &text, NULL, &err), &err);
	if (!err)
		err = next.clBuildProgram(t->program, t->num_devices, t->devices, "", NULL, NULL);
	return err;
}

static cl_int selftest_use_device(struct selftest *t, cl_device_id device)
{
	cl_int err;

	if (t->queue)
		next.clReleaseCommandQueue(t->queue);
	t->queue = created_or_null(next.clCreateCommandQueue(t->context, device, 0, &err), &err);
	return err;
}

/* The devices are the caller's, for as long as the test lasts. */
static cl_int selftest_begin(struct selftest *t, const cl_device_id *devices, cl_uint num_devices,
			     bool native)
{
	cl_int err;

	memset(t, 0, sizeof(*t));
	t->devices = devices;
	t->num_devices = num_devices;
	t->native = native;
	t->context = created_or_null(
		next.clCreateContext(NULL, num_devices, devices, NULL, NULL, &err), &err);
	if (!err)
		err = selftest_use_device(t, devices[0]);
	if (!err && !native)
		err = selftest_build(t);
	return err;
}

/* The driver holds the region until it has destroyed the buffer. */
static void CL_CALLBACK sample_unused(cl_mem mem, void *region)
{
	(void)mem;
	import_put(region);
}

static cl_mem sample_watch(struct import_region *region, cl_mem mem, cl_int *err)
{
	if (*err || !mem)
		return NULL;
	import_hold(region);
	*err = next.clSetMemObjectDestructorCallback(mem, sample_unused, region);
	if (!*err)
		return mem;
	import_put(region);
	next.clReleaseMemObject(mem);
	return NULL;
}

/* What a native kernel gets; the driver puts the buffers' addresses in. */
struct native_args {
	volatile unsigned char *a, *b;
	size_t at[PLACES];
	cl_uint value;
};

static void CL_CALLBACK native_exchange(void *arg)
{
	const struct native_args *n = arg;

	for (int i = 0; i < PLACES; i++) {
		n->a[n->at[i]] = n->value;
		n->a[n->at[i] + 1] = n->b[n->at[i]];
		n->a[n->at[i] + 2] = n->b[n->at[i] + 3];
	}
}

static void CL_CALLBACK native_both(void *arg)
{
	const struct native_args *n = arg;

	for (int i = 0; i < PLACES; i++) {
		n->a[n->at[i]] = n->value;
		n->b[n->at[i] + 1] = n->value;
	}
}

static cl_int run_native(struct selftest *t, const struct selftest_memory *memory, cl_mem a,
			 cl_mem b, cl_uint value)
{
	struct native_args args = { .value = value };
	const cl_mem mems[] = { a, b };
	const void *locations[] = { &args.a, &args.b };
	cl_int err;

	memcpy(args.at, memory->at, sizeof(args.at));
	err = next.clEnqueueNativeKernel(t->queue,
					 memory->write_only ? native_both : native_exchange, &args,
					 sizeof(args), 2, mems, locations, 0, NULL, NULL);
	return err ? err : next.clFinish(t->queue);
}

struct kernel_arg {
	size_t size;
	const void *value;
};

/* One work-item of kernel @name, not waited for. */
static cl_int enqueue_compiled(struct selftest *t, const char *name, const struct kernel_arg *args,
			       cl_uint count)
{
	const size_t one = 1;
	cl_int err;
	cl_kernel kernel = created_or_null(next.clCreateKernel(t->program, name, &err), &err);

	if (err)
		return err;
	for (cl_uint i = 0; i < count && !err; i++)
		err = next.clSetKernelArg(kernel, i, args[i].size, args[i].value);
	if (!err)
		err = next.clEnqueueNDRangeKernel(t->queue, kernel, 1, NULL, &one, &one, 0, NULL,
						  NULL);
	next.clReleaseKernel(kernel);
	return err;
}

static cl_int run_compiled(struct selftest *t, const struct selftest_memory *memory, cl_mem a,
			   cl_mem b, cl_uint value)
{
	const cl_ulong at[PLACES] = { memory->at[0], memory->at[1], memory->at[2] };
	const struct kernel_arg args[] = {
		{ sizeof(a), &a },	   { sizeof(b), &b },	      { sizeof(at[0]), &at[0] },
		{ sizeof(at[1]), &at[1] }, { sizeof(at[2]), &at[2] }, { sizeof(value), &value },
	};
	cl_int err = enqueue_compiled(
		t, memory->write_only ? "climport_selftest_both" : "climport_selftest", args, 6);

	return err ? err : next.clFinish(t->queue);
}

/* The same by two kernels, one after the other. */
static cl_int run_apart(struct selftest *t, cl_mem a, cl_mem b, cl_uint value)
{
	const struct kernel_arg write[] = { { sizeof(a), &a }, { sizeof(value), &value } };
	const struct kernel_arg read[] = { { sizeof(b), &b } };
	cl_int err = enqueue_compiled(t, "climport_selftest_write", write, 2);

	if (!err)
		err = enqueue_compiled(t, "climport_selftest_read", read, 1);
	return err ? err : next.clFinish(t->queue);
}

static cl_int run_kernels(struct selftest *t, const struct selftest_memory *memory, cl_mem a,
			  cl_mem b, cl_uint value)
{
	if (memory->apart)
		return run_apart(t, a, b, value);
	return t->native ? run_native(t, memory, a, b, value)
			 : run_compiled(t, memory, a, b, value);
}

/* Whether the host sees at one place what the kernel did. */
static bool is_shared(const struct selftest_memory *memory, size_t at, unsigned char value,
		      unsigned char host)
{
	const volatile unsigned char *p = memory->bytes + at;

	if (memory->write_only)
		return p[0] == value && p[1] == value && p[3] == host;
	return p[0] == value && p[1] == value && p[2] == host;
}

/* One round: 1 passed, 0 failed, or an error of OpenCL. */
static cl_int selftest_run_round(struct selftest *t, const struct selftest_memory *memory, cl_mem a,
				 cl_mem b, unsigned char seed)
{
	const unsigned char value = seed + 1, host = seed + 2;
	cl_int err;

	for (int i = 0; i < PLACES; i++) {
		volatile unsigned char *p = memory->bytes + memory->at[i];

		p[0] = p[1] = p[2] = seed;
		p[3] = host;
	}
	err = memory->invalidate ? memory->invalidate(t->context, memory->arg) : CL_SUCCESS;
	if (!err)
		err = run_kernels(t, memory, a, b, value);
	for (int i = 0; i < PLACES && !err; i++)
		if (!is_shared(memory, memory->at[i], value, host))
			return 0;
	return err ? err : 1;
}

static cl_int run_memory(struct selftest *t, const struct selftest_memory *memory)
{
	cl_mem a, b;
	cl_int err, result;

	a = memory->create(t->context, false, memory->arg, &err);
	if (!a)
		return err;
	b = memory->create(t->context, true, memory->arg, &result);
	if (b) {
		result = 1;
		for (unsigned int round = 0; round < memory->rounds && result == 1; round++)
			result = selftest_run_round(t, memory, a, b, 0x11 + 0x30 * round);
		next.clReleaseMemObject(b);
	}
	next.clReleaseMemObject(a);
	return result;
}

cl_int selftest_memory(cl_device_id device, const struct selftest_memory *memory)
{
	struct selftest t;
	cl_int result =
		selftest_begin(&t, &device, 1, !memory->apart && !selftest_needs_compiler(device));

	if (!result)
		result = run_memory(&t, memory);
	if (t.context && memory->finish)
		memory->finish(t.context);
	selftest_end(&t);
	return result;
}

/* A part of a sample, and what the buffers over it are for. */
struct part {
	struct import_region *region;
	size_t offset, size;
	cl_mem_flags flags; /* of the application's buffer */
};

/* The kernel has to write through the first whatever the application's kernels do. */
static cl_mem_flags part_flags(cl_mem_flags flags, bool reader)
{
	if (flags & CL_MEM_READ_ONLY && !reader)
		return (flags & ~(cl_mem_flags)CL_MEM_READ_ONLY) | CL_MEM_READ_WRITE;
	return flags;
}

static cl_mem part_create(cl_context context, bool reader, void *arg, cl_int *err)
{
	const struct part *part = arg;
	cl_mem mem = created_or_null(
		next.clCreateBuffer(context, part_flags(part->flags, reader) | CL_MEM_USE_HOST_PTR,
				    part->size, (unsigned char *)part->region->addr + part->offset,
				    err),
		err);

	return sample_watch(part->region, mem, err);
}

/* Four bytes from each of these are used. */
static void places_of(size_t size, size_t at[PLACES])
{
	const size_t last = size - 4;

	at[0] = 0;
	at[1] = last / 8 * 4;
	at[2] = last;
}

static cl_int run_part(struct selftest *t, struct part *part)
{
	struct selftest_memory memory = {
		.bytes = (unsigned char *)part->region->addr + part->offset,
		.create = part_create,
		.rounds = ROUNDS,
		.write_only = part->flags & CL_MEM_WRITE_ONLY,
		.arg = part,
	};

	places_of(part->size, memory.at);
	return run_memory(t, &memory);
}

static cl_int run_class(struct selftest *t, struct import_region *region, size_t offset,
			size_t size)
{
	struct part part = { region, offset, size, CL_MEM_READ_WRITE };

	return run_part(t, &part);
}

struct host_ptr_job {
	struct job job;
	cl_device_id device;
	bool native;
	size_t align;
	cl_int result;
};

/* The loosest class that passed with all stricter ones; a driver may refuse the loose ones. */
static cl_int run_classes(struct selftest *t, struct import_region *region, size_t *align)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	cl_int result = 1;

	for (size_t i = 0; i < CLASSES && result == 1; i++) {
		result = run_class(t, region, classes[i].offset,
				   classes[i].size ? classes[i].size : page);
		if (result == 1)
			*align = classes[i].align ? classes[i].align : page;
	}
	return result;
}

static void host_ptr_run(struct job *job)
{
	struct host_ptr_job *j = (struct host_ptr_job *)job;
	const struct import_sample_want want = {
		.kind = IMPORT_ANONYMOUS,
		.size = (size_t)sysconf(_SC_PAGESIZE),
		.is_sparse = true,
	};
	struct import_region *region;
	struct selftest t;

	if (import_sample_kind(&want, &region)) {
		j->result = CL_OUT_OF_HOST_MEMORY;
		return;
	}
	j->result = selftest_begin(&t, &j->device, 1, j->native);
	if (!j->result)
		j->result = run_classes(&t, region, &j->align);
	selftest_end(&t);
	import_put(region);
}

static enum tested host_ptr_judge(const struct host_ptr_job *j, char *why, size_t size)
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
	snprintf(why, size, "the self-test of CL_MEM_USE_HOST_PTR failed with error %d", j->result);
	return selftest_is_transient(j->result) ? UNTESTED : BROKEN;
}

/* What a job that gave no result found. */
static enum tested job_judge(enum job_end end, const char *what, unsigned int limit_ms, char *why,
			     size_t size)
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
	struct host_ptr_job *j = calloc(1, sizeof(*j));
	unsigned int limit_ms = limit_of(device);
	enum tested found;
	enum job_end end;

	*align = 0;
	if (!j) {
		snprintf(why, size, "no memory for the self-test of CL_MEM_USE_HOST_PTR");
		return UNTESTED;
	}
	j->job.run = host_ptr_run;
	j->device = device;
	j->native = !selftest_needs_compiler(device);
	end = job_run(&j->job, limit_ms);
	if (end == JOB_ENDED) {
		found = host_ptr_judge(j, why, size);
		*align = j->align;
	} else {
		found = job_judge(end, "CL_MEM_USE_HOST_PTR", limit_ms, why, size);
	}
	job_put(&j->job);
	return found;
}

struct part_job {
	struct job job;
	struct selftest_part part;
	bool native;
	struct selftest *test;
	bool is_whole; /* the test's objects are all there */
	enum tested found;
	cl_uint num_devices;
	cl_device_id devices[];
};

static enum tested part_judge(cl_int result)
{
	if (result == 1)
		return PASSED;
	if (!result)
		return FAILED;
	return selftest_is_transient(result) ? UNTESTED : BROKEN;
}

/* A driver that populates what it is given must not take the machine's memory for a test. */
static bool is_affordable(const struct selftest_part *part)
{
	return part->is_sparse || part->size <= import_memory_available() / 2;
}

static enum tested part_sample(const struct selftest_part *part, struct import_region **region)
{
	struct import_sample_want want = {
		.kind = part->kind,
		.offset = part->offset,
		.size = part->size,
		.is_sparse = part->is_sparse,
	};

	if (!is_affordable(part))
		return UNTESTED;
	places_of(part->size, want.at);
	switch (import_sample_kind(&want, region)) {
	case 0:
		return PASSED;
	case -EOPNOTSUPP:
		return NO_SAMPLE;
	default:
		return UNTESTED;
	}
}

/* A kept test is of another job's, but for the same devices. */
static cl_int part_begin(struct part_job *j)
{
	cl_int err;

	if (j->test) {
		j->test->devices = j->devices;
		return selftest_use_device(j->test, j->devices[0]);
	}
	j->test = calloc(1, sizeof(*j->test));
	if (!j->test)
		return CL_OUT_OF_HOST_MEMORY;
	err = selftest_begin(j->test, j->devices, j->num_devices, j->native);
	j->is_whole = !err;
	return err;
}

static cl_int part_run_on(struct part_job *j, struct import_region *region)
{
	struct part part = { region, 0, j->part.size, j->part.flags };
	cl_int result = part_begin(j);

	if (!result)
		result = run_part(j->test, &part);
	for (cl_uint i = 1; i < j->num_devices && result == 1; i++) {
		result = selftest_use_device(j->test, j->devices[i]);
		if (!result)
			result = run_part(j->test, &part);
	}
	return result;
}

static void selftest_free(struct selftest *t)
{
	if (t)
		selftest_end(t);
	free(t);
}

void selftest_drop(struct selftest_kept *kept)
{
	selftest_free(atomic_exchange(&kept->test, NULL));
}

static void part_late(struct job *job)
{
	selftest_free(((struct part_job *)job)->test);
}

/* After a test that ended: what was compiled serves the next. */
static void part_keep(struct part_job *j, struct selftest_kept *kept)
{
	struct selftest *none = NULL;

	if (j->native || !j->is_whole ||
	    !atomic_compare_exchange_strong(&kept->test, &none, j->test))
		selftest_free(j->test);
}

static void part_run(struct job *job)
{
	struct part_job *j = (struct part_job *)job;
	struct import_region *region;

	j->found = part_sample(&j->part, &region);
	if (j->found != PASSED)
		return;
	j->found = part_judge(part_run_on(j, region));
	import_put(region);
}

/* Drivers that populate what they are given take time by its size. */
static unsigned int limit_of_size(size_t size)
{
	return (unsigned int)(size >> 26) * 1000;
}

enum tested selftest_part(const cl_device_id *devices, cl_uint num_devices,
			  const struct selftest_part *part, struct selftest_kept *kept)
{
	const size_t bytes = num_devices * sizeof(devices[0]);
	struct part_job *j = calloc(1, sizeof(*j) + bytes);
	unsigned int limit_ms = JOB_LIMIT_MS;
	enum tested found = UNTESTED;

	if (!j)
		return UNTESTED;
	j->job.run = part_run;
	j->job.late = part_late;
	j->part = *part;
	j->num_devices = num_devices;
	memcpy(j->devices, devices, bytes);
	j->native = true;
	for (cl_uint i = 0; i < num_devices; i++)
		j->native &= !selftest_needs_compiler(devices[i]);
	if (!j->native) {
		limit_ms = JOB_COMPILE_LIMIT_MS;
		j->test = atomic_exchange(&kept->test, NULL);
		j->is_whole = j->test;
	}
	switch (job_run(&j->job, limit_ms + limit_of_size(part->size))) {
	case JOB_ENDED:
		found = j->found;
		part_keep(j, kept);
		break;
	case JOB_ABANDONED:
		found = HUNG;
		break;
	case JOB_NOT_STARTED:
		part_keep(j, kept);
		break;
	}
	job_put(&j->job);
	return found;
}

struct address_job {
	struct job job;
	cl_device_id device;
	bool native;
	cl_context context; /* the buffer's, which keeps it */
	cl_mem buffer;	    /* retained */
	cl_int err;
	uintptr_t seen;
	bool ran; /* the native kernel, which holds the job until then */
};

struct address_args {
	void *buffer;
	struct address_job *job;
};

static void CL_CALLBACK native_address(void *arg)
{
	const struct address_args *args = arg;

	args->job->seen = (uintptr_t)args->buffer;
	args->job->ran = true;
	job_put(&args->job->job);
}

static cl_int address_native(struct selftest *t, struct address_job *j)
{
	struct address_args args = { .job = j };
	const void *location = &args.buffer;
	cl_int err;

	job_hold(&j->job);
	err = next.clEnqueueNativeKernel(t->queue, native_address, &args, sizeof(args), 1,
					 &j->buffer, &location, 0, NULL, NULL);
	if (!err) {
		err = next.clFinish(t->queue);
		if (err)
			return err; /* it may still run */
	}
	if (!j->ran)
		job_put(&j->job);
	return err;
}

static cl_int address_compiled(struct selftest *t, struct address_job *j)
{
	cl_ulong seen = 0;
	cl_int err;
	cl_mem out = created_or_null(
		next.clCreateBuffer(t->context, CL_MEM_READ_WRITE, sizeof(seen), NULL, &err), &err);
	const struct kernel_arg args[] = { { sizeof(out), &out },
					   { sizeof(j->buffer), &j->buffer } };

	if (!err)
		err = enqueue_compiled(t, "climport_selftest_address", args, 2);
	if (!err)
		err = next.clEnqueueReadBuffer(t->queue, out, CL_TRUE, 0, sizeof(seen), &seen, 0,
					       NULL, NULL);
	if (out)
		next.clReleaseMemObject(out);
	j->seen = (uintptr_t)seen;
	return err;
}

static void address_run(struct job *job)
{
	struct address_job *j = (struct address_job *)job;
	struct selftest t = {
		.devices = &j->device,
		.num_devices = 1,
		.native = j->native,
		.context = j->context,
	};

	t.queue = created_or_null(next.clCreateCommandQueue(j->context, j->device, 0, &j->err),
				  &j->err);
	if (!j->err && !j->native)
		j->err = selftest_build(&t);
	if (!j->err)
		j->err = j->native ? address_native(&t, j) : address_compiled(&t, j);
	t.context = NULL; /* the application's */
	selftest_end(&t);
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
	switch (job_run(&j->job, limit_of(device))) {
	case JOB_ENDED:
		found = part_judge(j->err ? j->err : j->seen == (uintptr_t)addr);
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
