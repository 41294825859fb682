/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/selftest/rounds.h"

#include <string.h>

#include "icd/layer.h"
#include "icd/objects/memobj_watch.h"

/* Arguments of a native kernel; the driver fills in the buffers' addresses. */
struct native_args {
	volatile unsigned char *a, *b;
	size_t at[SELFTEST_PLACES];
	cl_uint value;
};

static void CL_CALLBACK rounds_native_exchange(void *arg)
{
	const struct native_args *n = arg;

	for (int i = 0; i < SELFTEST_PLACES; i++) {
		n->a[n->at[i]] = n->value;
		n->a[n->at[i] + 1] = n->b[n->at[i]];
		n->a[n->at[i] + 2] = n->b[n->at[i] + 3];
	}
}

static void CL_CALLBACK rounds_native_both(void *arg)
{
	const struct native_args *n = arg;

	for (int i = 0; i < SELFTEST_PLACES; i++) {
		n->a[n->at[i]] = n->value;
		n->b[n->at[i] + 1] = n->value;
	}
}

static cl_int rounds_run_native(struct session *s, const struct selftest_memory *memory, cl_mem a,
				cl_mem b, cl_uint value)
{
	struct native_args args = { .value = value };
	const cl_mem mems[] = { a, b };
	const void *locations[] = { &args.a, &args.b };
	cl_int err;

	memcpy(args.at, memory->at, sizeof(args.at));
	err = next.clEnqueueNativeKernel(
		s->queue, memory->write_only ? rounds_native_both : rounds_native_exchange, &args,
		sizeof(args), 2, mems, locations, 0, NULL, NULL);
	return err ? err : next.clFinish(s->queue);
}

static cl_int rounds_run_compiled(struct session *s, const struct selftest_memory *memory, cl_mem a,
				  cl_mem b, cl_uint value)
{
	const cl_ulong at[SELFTEST_PLACES] = { memory->at[0], memory->at[1], memory->at[2] };
	const struct session_arg args[] = {
		{ sizeof(a), &a },	   { sizeof(b), &b },	      { sizeof(at[0]), &at[0] },
		{ sizeof(at[1]), &at[1] }, { sizeof(at[2]), &at[2] }, { sizeof(value), &value },
	};
	cl_int err = session_enqueue(
		s, memory->write_only ? "climport_selftest_both" : "climport_selftest", args, 6);

	return err ? err : next.clFinish(s->queue);
}

static cl_int rounds_enqueue_edge(struct session *s, const struct selftest_memory *memory,
				  bool begins, cl_mem a, cl_mem b)
{
	const cl_mem buffers[2] = { a, b };

	return memory->edge ? memory->edge(s->queue, begins, buffers, memory->arg) : CL_SUCCESS;
}

/* The work of the kernel above by two kernels in sequence. */
static cl_int rounds_run_apart(struct session *s, const struct selftest_memory *memory, cl_mem a,
			       cl_mem b, cl_uint value)
{
	const struct session_arg write[] = { { sizeof(a), &a }, { sizeof(value), &value } };
	const struct session_arg read[] = { { sizeof(b), &b } };
	cl_int err = rounds_enqueue_edge(s, memory, true, a, b);

	if (!err)
		err = session_enqueue(s, "climport_selftest_write", write, 2);
	if (!err)
		err = session_enqueue(s, "climport_selftest_read", read, 1);
	if (!err)
		err = rounds_enqueue_edge(s, memory, false, a, b);
	return err ? err : next.clFinish(s->queue);
}

static cl_int rounds_run_kernels(struct session *s, const struct selftest_memory *memory, cl_mem a,
				 cl_mem b, cl_uint value)
{
	if (memory->apart)
		return rounds_run_apart(s, memory, a, b, value);
	return s->native ? rounds_run_native(s, memory, a, b, value)
			 : rounds_run_compiled(s, memory, a, b, value);
}

/* Whether the host sees the work of the kernel at a place. */
static bool rounds_is_shared(const struct selftest_memory *memory, size_t at, unsigned char value,
			     unsigned char host)
{
	const volatile unsigned char *p = memory->bytes + at;

	if (memory->write_only)
		return p[0] == value && p[1] == value && p[3] == host;
	return p[0] == value && p[1] == value && p[2] == host;
}

/* Returns 1: passed, 0: failed, or an error of OpenCL. */
static cl_int rounds_run_one(struct session *s, const struct selftest_memory *memory, cl_mem a,
			     cl_mem b, unsigned char seed)
{
	const unsigned char value = seed + 1, host = seed + 2;
	cl_int err;

	for (int i = 0; i < SELFTEST_PLACES; i++) {
		volatile unsigned char *p = memory->bytes + memory->at[i];

		p[0] = p[1] = p[2] = seed;
		p[3] = host;
	}
	err = memory->begin ? memory->begin(memory->arg) : CL_SUCCESS;
	if (!err)
		err = rounds_run_kernels(s, memory, a, b, value);
	if (!err && memory->end)
		err = memory->end(memory->arg);
	for (int i = 0; i < SELFTEST_PLACES && !err; i++)
		if (!rounds_is_shared(memory, memory->at[i], value, host))
			return 0;
	return err ? err : 1;
}

static cl_int rounds_run(struct session *s, const struct selftest_memory *memory)
{
	cl_mem a, b;
	cl_int err, result;

	a = memory->create(s->context, false, memory->arg, &err);
	if (!a)
		return err;
	b = memory->create(s->context, true, memory->arg, &result);
	if (b) {
		result = 1;
		for (unsigned int round = 0; round < memory->rounds && result == 1; round++)
			result = rounds_run_one(s, memory, a, b, 0x11 + 0x30 * round);
		next.clReleaseMemObject(b);
	}
	next.clReleaseMemObject(a);
	return result;
}

static bool rounds_are_native(const cl_device_id *devices, cl_uint num_devices)
{
	for (cl_uint i = 0; i < num_devices; i++)
		if (selftest_needs_compiler(devices[i]))
			return false;
	return true;
}

cl_int rounds_run_on_all(struct session *s, const struct selftest_memory *memory)
{
	cl_int result = rounds_run(s, memory);

	for (cl_uint i = 1; i < s->num_devices && result == 1; i++) {
		result = session_use_device(s, s->devices[i]);
		if (!result)
			result = rounds_run(s, memory);
	}
	return result;
}

cl_int selftest_memory(const cl_device_id *devices, cl_uint num_devices,
		       const struct selftest_memory *memory)
{
	struct session s;
	cl_int result = session_begin(&s, devices, num_devices,
				      !memory->apart && rounds_are_native(devices, num_devices));

	if (!result)
		result = rounds_run_on_all(&s, memory);
	session_end(&s);
	return result;
}

/* The kernel has to write through the first whatever the application's kernels do. */
static cl_mem_flags rounds_part_flags(cl_mem_flags flags, bool reader)
{
	if (flags & CL_MEM_READ_ONLY && !reader)
		return (flags & ~(cl_mem_flags)CL_MEM_READ_ONLY) | CL_MEM_READ_WRITE;
	return flags;
}

cl_mem rounds_part_create(cl_context context, bool reader, void *arg, cl_int *err)
{
	const struct rounds_part *part = arg;
	cl_mem mem = created_or_null(
		next.clCreateBuffer(
			context, rounds_part_flags(part->flags, reader) | CL_MEM_USE_HOST_PTR,
			part->size, (unsigned char *)part->region->addr + part->offset, err),
		err);

	return memobj_holding(mem, part->region, err);
}

void rounds_places(size_t size, size_t at[SELFTEST_PLACES])
{
	const size_t last = size - 4;

	at[0] = 0;
	at[1] = last / 8 * 4;
	at[2] = last;
}

cl_int rounds_run_part(struct session *s, struct rounds_part *part)
{
	struct selftest_memory memory = {
		.bytes = (unsigned char *)part->region->addr + part->offset,
		.create = rounds_part_create,
		.rounds = ROUNDS_DEFAULT,
		.write_only = part->flags & CL_MEM_WRITE_ONLY,
		.arg = part,
	};

	rounds_places(part->size, memory.at);
	return rounds_run(s, &memory);
}
