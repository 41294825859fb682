/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The self-test behind struct host_rule.  The alignments come first, the strictest one at the beginning; at the
 * loosest that passes, each access, each kind of mapping and some sizes are tried, one property at a time.
 */
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include "icd/layer.h"
#include "icd/objects/memobj.h"
#include "icd/selftest/rounds.h"
#include "icd/selftest/selftest.h"
#include "util/cl_names.h"

/* Memory is aligned so, and no more.  A page comes first. */
static const struct alignment {
	size_t align, offset, size; /* bytes */
} alignments[] = {
	{ 64, 64, 192 },
	{ 1, 129, 77 },
};

#define ALIGNMENTS (sizeof(alignments) / sizeof(alignments[0]))

/* Most imports are frames and weights: the largest is the most memory that a test takes. */
static const size_t sizes[] = { 64u << 10, 1u << 20, 16u << 20, 256u << 20, 1u << 30 };

#define SIZES (sizeof(sizes) / sizeof(sizes[0]))

struct host_test {
	struct host_rule rule;
	bool is_cpu;
	size_t page, largest; /* bytes: of a buffer of the device */
	struct session session;
	cl_device_id device;
};

/* Memory to try, and the application's buffer over it. */
struct sample {
	struct import_sample_want want;
	cl_mem_flags flags;
	struct import_region *region;
};

static atomic_uintptr_t address_seen;

static void CL_CALLBACK address_native_kernel(void *arg)
{
	void *const *buffer = arg;

	atomic_store(&address_seen, (uintptr_t)*buffer);
}

/* After a clFinish() that fails the kernel may still run: it writes to memory that stays. */
static cl_int address_native(struct session *s, cl_mem buffer, uintptr_t *seen)
{
	void *address = NULL;
	const void *location = &address;
	cl_int err;

	atomic_store(&address_seen, 0);
	err = next.clEnqueueNativeKernel(s->queue, address_native_kernel, &address, sizeof(address),
					 1, &buffer, &location, 0, NULL, NULL);
	if (!err)
		err = next.clFinish(s->queue);
	*seen = atomic_load(&address_seen);
	return err;
}

static cl_int address_compiled(struct session *s, cl_mem buffer, uintptr_t *address)
{
	cl_ulong seen = 0;
	cl_int err;
	cl_mem out = created_or_null(
		next.clCreateBuffer(s->context, CL_MEM_READ_WRITE, sizeof(seen), NULL, &err), &err);
	const struct session_arg args[] = { { sizeof(out), &out }, { sizeof(buffer), &buffer } };
	cl_kernel kernel = NULL;

	if (!err)
		kernel = created_or_null(
			next.clCreateKernel(s->program, "climport_selftest_address", &err), &err);
	if (!err)
		err = session_enqueue(s, kernel, args, 2);
	if (!err)
		err = next.clEnqueueReadBuffer(s->queue, out, CL_TRUE, 0, sizeof(seen), &seen, 0,
					       NULL, NULL);
	if (kernel)
		next.clReleaseKernel(kernel);
	if (out)
		next.clReleaseMemObject(out);
	*address = (uintptr_t)seen;
	return err;
}

static cl_mem host_create(cl_context context, bool reader, void *arg, cl_int *err)
{
	const struct sample *sample = arg;
	cl_mem mem = created_or_null(
		next.clCreateBuffer(context,
				    rounds_flags(sample->flags, reader) | CL_MEM_USE_HOST_PTR,
				    sample->want.size, sample->region->addr, err),
		err);

	return memobj_holding(mem, sample->region, err);
}

/*
 * The kernel's address of a buffer over the memory, which is not touched.  On a CPU the host's own address means zero copy.
 * 1: it is the host's, 0: it is not, or an error.
 */
static cl_int host_compare_address(struct host_test *t, struct sample *sample)
{
	uintptr_t seen = 0;
	cl_int err;
	cl_mem mem =
		host_create(t->session.context, sample->flags & CL_MEM_READ_ONLY, sample, &err);

	if (!mem)
		return err;
	err = (t->session.program ? address_compiled : address_native)(&t->session, mem, &seen);
	next.clReleaseMemObject(mem);
	return err ? err : seen == (uintptr_t)sample->region->addr;
}

static cl_int host_run_rounds(struct host_test *t, struct sample *sample)
{
	const struct rounds rounds = {
		.bytes = sample->region->addr,
		.shape = ROUNDS_BYTES(sample->want.size),
		.create = host_create,
		.count = ROUNDS_DEFAULT,
		.arg = sample,
	};

	return rounds_run(&t->session, &rounds);
}

/* A driver may take all memory of a buffer; a test must not take the machine's. */
static bool host_is_affordable(const struct host_test *t, size_t size)
{
	return size <= t->largest && (t->rule.own_address || size <= import_memory_available() / 2);
}

/* 1: such memory is zero copy, 0: it is not, or an error.  Memory that cannot be made is not.  @offset: from a page. */
static cl_int host_run(struct host_test *t, enum import_kind kind, cl_mem_flags flags,
		       size_t offset, size_t size)
{
	struct sample sample = {
		.want = { .kind = kind,
			  .offset = offset,
			  .size = size,
			  .is_sparse = t->rule.own_address },
		.flags = flags,
	};
	cl_int result;

	rounds_places(&ROUNDS_BYTES(size), sample.want.at);
	if (!host_is_affordable(t, size) || import_sample_kind(&sample.want, &sample.region))
		return CL_OUT_OF_HOST_MEMORY;
	result = (t->rule.own_address ? host_compare_address : host_run_rounds)(t, &sample);
	import_put(sample.region);
	if (!result)
		t->rule.own_address = false;
	return result;
}

/* Whole pages, by data; and the kernel's address on a CPU.  1: zero copy, 0: not, or an error. */
static cl_int host_try_page(struct host_test *t)
{
	const cl_int result = host_run(t, IMPORT_ANONYMOUS, CL_MEM_READ_WRITE, 0, t->page);

	if (result != 1)
		return result;
	t->rule.align = t->page;
	t->rule.own_address = t->is_cpu;
	t->rule.own_address = t->is_cpu &&
			      host_run(t, IMPORT_ANONYMOUS, CL_MEM_READ_WRITE, 0, t->page) == 1;
	return 1;
}

/* Stops at the first alignment that fails, or that the driver refuses.  The offset of the loosest that passes. */
static size_t host_try_alignments(struct host_test *t)
{
	const bool own_address = t->rule.own_address;
	size_t offset = 0;

	for (size_t i = 0; i < ALIGNMENTS; i++) {
		const struct alignment *a = &alignments[i];

		if (host_run(t, IMPORT_ANONYMOUS, CL_MEM_READ_WRITE, a->offset, a->size) != 1) {
			t->rule.own_address = own_address;
			break;
		}
		t->rule.align = a->align;
		offset = a->offset;
	}
	return offset;
}

/* Nothing can be written through a mapping without write permission: there the address alone tells. */
static void host_try_kinds(struct host_test *t, size_t offset)
{
	for (unsigned int kind = 0; kind < IMPORT_KINDS; kind++) {
		const bool is_writable = kind != IMPORT_UNWRITABLE;
		const cl_mem_flags flags = is_writable ? CL_MEM_READ_WRITE : CL_MEM_READ_ONLY;
		const size_t size = kind == IMPORT_SEVERAL ? 2 * t->page : t->page;

		if ((is_writable || t->rule.own_address) &&
		    host_run(t, (enum import_kind)kind, flags, offset, size) == 1)
			t->rule.kinds |= 1u << kind;
	}
}

static cl_int host_try_all(struct host_test *t)
{
	const cl_int result = host_try_page(t);
	size_t offset;

	if (result != 1)
		return result;
	offset = host_try_alignments(t);
	for (unsigned int access = 0; access < HOST_RULE_ACCESSES; access++)
		if (host_run(t, IMPORT_ANONYMOUS, host_rule_flags(access), offset, t->page) == 1)
			t->rule.accesses |= 1u << access;
	host_try_kinds(t, offset);
	t->rule.largest = t->page;
	for (size_t i = 0;
	     i < SIZES && host_run(t, IMPORT_ANONYMOUS, CL_MEM_READ_WRITE, 0, sizes[i]) == 1; i++)
		t->rule.largest = sizes[i];
	return result;
}

static void host_ask_device(struct host_test *t)
{
	cl_device_type type = 0;
	cl_ulong bytes = 0;

	next.clGetDeviceInfo(t->device, CL_DEVICE_TYPE, sizeof(type), &type, NULL);
	next.clGetDeviceInfo(t->device, CL_DEVICE_MAX_MEM_ALLOC_SIZE, sizeof(bytes), &bytes, NULL);
	t->is_cpu = type & CL_DEVICE_TYPE_CPU;
	t->largest = bytes ? bytes : SIZE_MAX;
}

enum tested selftest_host_rule(cl_device_id device, struct host_rule *rule, char *why, size_t size)
{
	struct host_test t = { .page = (size_t)sysconf(_SC_PAGESIZE), .device = device };
	cl_int result;

	host_ask_device(&t);
	result = session_begin(&t.session, &t.device, 1);
	if (!result)
		result = host_try_all(&t);
	session_end(&t.session);
	*rule = t.rule;
	if (result == 1)
		snprintf(why, size, "CL_MEM_USE_HOST_PTR is zero copy by self-test, alignment %zu",
			 rule->align);
	else if (!result)
		snprintf(why, size, "CL_MEM_USE_HOST_PTR copies on this device");
	else
		snprintf(why, size, "the self-test of CL_MEM_USE_HOST_PTR failed with %s",
			 cl_error_name(result));
	return session_judge(result);
}
