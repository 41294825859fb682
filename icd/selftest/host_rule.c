/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The self-test behind struct host_rule.  The alignments come first, the strictest one at the beginning; at the
 * loosest that passes, each access, each kind of mapping and some sizes are tried, one property at a time.
 */
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include "icd/layer.h"
#include "icd/objects/memobj.h"
#include "icd/selftest/address.h"
#include "icd/selftest/rounds.h"
#include "icd/selftest/selftest.h"
#include "util/cl_names.h"

#define ALIGNMENTS 3
#define SMALL 4096 /* bytes: of memory that is tried for its access or kind */

/* Memory is aligned so, and no more. */
static const struct alignment {
	size_t align, offset, size; /* 0: a page */
} alignments[ALIGNMENTS] = {
	{ 0, 0, 0 },
	{ 64, 64, 192 },
	{ 1, 129, 77 },
};

/* Most imports are frames and weights: the largest is the most memory that a test takes. */
static const size_t sizes[] = { 64u << 10, 1u << 20, 16u << 20, 256u << 20, 1u << 30 };

#define SIZES (sizeof(sizes) / sizeof(sizes[0]))

struct host_test {
	struct host_rule rule;
	cl_int result; /* of whole pages: 1, 0 or an error */
	bool is_cpu;
	size_t page, largest; /* bytes: of a buffer of the device */
	struct session session;
	cl_device_id device;
};

/* Memory to try, and the buffer over it. */
struct sample {
	enum import_kind kind;
	cl_mem_flags flags;
	size_t offset, size; /* bytes; the offset is from a page */
};

/* A part of a region, and the buffers over the part. */
struct host_part {
	struct import_region *region;
	size_t offset, size;
	cl_mem_flags flags; /* of the application's buffer */
};

/* The other buffer of one that is read, or written, alone does both. */
static cl_mem host_create(cl_context context, bool reader, void *arg, cl_int *err)
{
	const struct host_part *part = arg;
	const cl_mem_flags alone = reader ? CL_MEM_WRITE_ONLY : CL_MEM_READ_ONLY,
			   flags = part->flags & alone ? (part->flags & ~alone) | CL_MEM_READ_WRITE
						       : part->flags;
	cl_mem mem = created_or_null(
		next.clCreateBuffer(context, flags | CL_MEM_USE_HOST_PTR, part->size,
				    (unsigned char *)part->region->addr + part->offset, err),
		err);

	return memobj_holding(mem, part->region, err);
}

/* The kernel's address of a buffer over the memory.  1: it is the host's, 0: it is not, or an error. */
static cl_int host_compare_address(struct host_test *t, struct host_part *part)
{
	unsigned char *const memory = (unsigned char *)part->region->addr + part->offset;
	uintptr_t seen;
	cl_int err;
	cl_mem mem = host_create(t->session.context, part->flags & CL_MEM_READ_ONLY, part, &err);

	if (!mem)
		return err;
	err = address_find(&t->session, mem, &seen);
	next.clReleaseMemObject(mem);
	return err ? err : seen == (uintptr_t)memory;
}

static cl_int host_run_rounds(struct host_test *t, struct host_part *part)
{
	const struct rounds rounds = {
		.bytes = (unsigned char *)part->region->addr + part->offset,
		.shape = ROUNDS_BYTES(part->size),
		.create = host_create,
		.count = ROUNDS_DEFAULT,
		.arg = part,
	};

	return rounds_run(&t->session, &rounds);
}

static cl_int host_try_alignment(struct host_test *t, struct import_region *region,
				 const struct alignment *alignment)
{
	struct host_part part = {
		.region = region,
		.offset = alignment->offset,
		.size = alignment->size ? alignment->size : t->page,
		.flags = CL_MEM_READ_WRITE,
	};
	cl_int result = host_run_rounds(t, &part);

	if (result == 1 && t->is_cpu)
		t->rule.own_address = host_compare_address(t, &part) == 1;
	return result;
}

/* Stops at the first alignment that fails, or that the driver refuses.  The offset of the loosest that passes. */
static size_t host_try_alignments(struct host_test *t, struct import_region *region)
{
	size_t offset = 0;

	for (size_t i = 0; i < ALIGNMENTS; i++) {
		const struct alignment *alignment = &alignments[i];
		const cl_int result = host_try_alignment(t, region, alignment);

		if (!i)
			t->result = result;
		if (result != 1)
			break;
		t->rule.align = alignment->align ? alignment->align : t->page;
		offset = alignment->offset;
	}
	return offset;
}

/* A driver may take all memory of a buffer; a test must not take the machine's. */
static bool host_is_affordable(const struct host_test *t, const struct sample *sample)
{
	return sample->size <= t->largest &&
	       (t->rule.own_address || sample->size <= import_memory_available() / 2);
}

/* Whether such memory is zero copy.  Memory that cannot be made, or that the driver refuses, is not. */
static bool host_try(struct host_test *t, const struct sample *sample)
{
	struct import_sample_want want = {
		.kind = sample->kind,
		.offset = sample->offset,
		.size = sample->size,
		.is_sparse = t->rule.own_address,
	};
	struct host_part part = { .size = sample->size, .flags = sample->flags };
	cl_int result;

	rounds_places(&ROUNDS_BYTES(want.size), want.at);
	if (!host_is_affordable(t, sample) || import_sample_kind(&want, &part.region))
		return false;
	result = (t->rule.own_address ? host_compare_address : host_run_rounds)(t, &part);
	import_put(part.region);
	if (!result)
		t->rule.own_address = false;
	return result == 1;
}

static void host_try_accesses(struct host_test *t, size_t offset)
{
	for (unsigned int access = 0; access < HOST_RULE_ACCESSES; access++) {
		const struct sample sample = { IMPORT_ANONYMOUS, host_rule_flags(access), offset,
					       SMALL };

		if (host_try(t, &sample))
			t->rule.accesses |= 1u << access;
	}
}

/* Nothing can be written through a mapping without write permission: there the address alone tells. */
static void host_try_kinds(struct host_test *t, size_t offset)
{
	for (unsigned int kind = 0; kind < IMPORT_KINDS; kind++) {
		const bool is_writable = kind != IMPORT_UNWRITABLE;
		const struct sample sample = {
			.kind = (enum import_kind)kind,
			.flags = is_writable ? CL_MEM_READ_WRITE : CL_MEM_READ_ONLY,
			.offset = offset,
			.size = kind == IMPORT_SEVERAL ? 2 * t->page : SMALL,
		};

		if ((is_writable || t->rule.own_address) && host_try(t, &sample))
			t->rule.kinds |= 1u << kind;
	}
}

static void host_try_sizes(struct host_test *t)
{
	t->rule.largest = t->page;
	for (size_t i = 0; i < SIZES; i++) {
		const struct sample sample = { IMPORT_ANONYMOUS, CL_MEM_READ_WRITE, 0, sizes[i] };

		if (!host_try(t, &sample))
			return;
		t->rule.largest = sizes[i];
	}
}

static void host_try_all(struct host_test *t, struct import_region *region)
{
	const size_t offset = host_try_alignments(t, region);

	if (!t->rule.align)
		return;
	host_try_accesses(t, offset);
	host_try_kinds(t, offset);
	host_try_sizes(t);
}

static void host_run(struct host_test *t)
{
	const struct import_sample_want want = {
		.kind = IMPORT_ANONYMOUS,
		.size = t->page,
		.is_sparse = true,
	};
	struct import_region *region;

	if (import_sample_kind(&want, &region)) {
		t->result = CL_OUT_OF_HOST_MEMORY;
		return;
	}
	t->result = session_begin(&t->session, &t->device, 1);
	if (!t->result)
		host_try_all(t, region);
	session_end(&t->session);
	import_put(region);
}

static enum tested host_judge(const struct host_test *t, char *why, size_t size)
{
	if (t->rule.align)
		snprintf(why, size, "CL_MEM_USE_HOST_PTR is zero copy by self-test, alignment %zu",
			 t->rule.align);
	else if (!t->result)
		snprintf(why, size, "CL_MEM_USE_HOST_PTR copies on this device");
	else
		snprintf(why, size, "the self-test of CL_MEM_USE_HOST_PTR failed with %s",
			 cl_error_name(t->result));
	return session_judge(t->result);
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

	host_ask_device(&t);
	host_run(&t);
	*rule = t.rule;
	return host_judge(&t, why, size);
}
