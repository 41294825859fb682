/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/methods/host_ptr/buffer_class.h"

#include <stdint.h>
#include <stdio.h>

#include "icd/objects/device.h"
#include "icd/selftest/job.h"
#include "icd/selftest/result.h"
#include "icd/selftest/selftest.h"
#include "util/log.h"

/* Why a class has neither bound. */
enum obstacle {
	OBSTACLE_NONE,
	OBSTACLE_NO_PROOF, /* climport has no such memory, or the driver refuses the memory */
	OBSTACLE_HANGS,
	OBSTACLE_BITS = 2,
};

/* A class, and the needs of a test of the class. */
struct buffer_class {
	struct zero_copy *proofs;
	struct selftest_kept *kept;
	struct buffer_slot *slot; /* of the class, in proofs */
	enum import_kind kind;
	cl_mem_flags flags;  /* the access of kernels and of the host */
	unsigned int align;  /* index of aligns */
	unsigned int bucket; /* sizes from 1 << (CLASS_SMALLEST + bucket) up to twice as much */
};

static const struct {
	const char *name;
	size_t bytes;  /* divides addresses and sizes */
	size_t offset; /* of a sample from a page: aligned to the bytes above, and no more */
} aligns[CLASS_ALIGNS] = {
	{ "whole pages", 0, 0 }, /* 0 bytes: a page */
	{ "multiples of 64 bytes", 64, 64 },
	{ "any alignment", 1, 129 },
};

static size_t buffer_align_bytes(unsigned int align)
{
	return aligns[align].bytes ? aligns[align].bytes : class_page_size();
}

static unsigned int buffer_align_of(const void *addr, size_t size)
{
	unsigned int i = 0;

	while (((uintptr_t)addr | size) & (buffer_align_bytes(i) - 1))
		i++;
	return i;
}

static unsigned int buffer_bucket_of(size_t size)
{
	unsigned int bucket = class_magnitude(size);

	return bucket < CLASS_SMALLEST ? 0 : bucket - CLASS_SMALLEST;
}

/* The least size of a class. */
static size_t buffer_class_least(const struct buffer_class *c)
{
	const size_t align = buffer_align_bytes(c->align);

	if (c->bucket)
		return ((size_t)1 << (CLASS_SMALLEST + c->bucket)) + (align == 1);
	return align == 1 ? 17 : align;
}

static struct buffer_slot *buffer_class_slot(const struct buffer_class *c)
{
	return &c->proofs->buffers[c->kind][class_access(c->flags)][class_host_access(c->flags)]
				  [c->align][c->bucket];
}

static void buffer_slot_proved(struct buffer_slot *slot, size_t size)
{
	size_t known = atomic_load(&slot->proved);

	while (known < size && !atomic_compare_exchange_weak(&slot->proved, &known, size))
		;
}

static void buffer_slot_copied(struct buffer_slot *slot, size_t size)
{
	size_t known = atomic_load(&slot->copied);

	while ((!known || size < known) &&
	       !atomic_compare_exchange_weak(&slot->copied, &known, size))
		;
}

static void buffer_slot_hangs(struct buffer_slot *slot)
{
	atomic_store(&slot->obstacle, OBSTACLE_HANGS | job_late() << OBSTACLE_BITS);
}

/* The bounds of the class decide for a size, or leave the size unknown. */
static enum class_verdict buffer_class_verdict(const struct buffer_class *c, size_t size)
{
	const size_t proved = atomic_load_explicit(&c->slot->proved, memory_order_relaxed),
		     copied = atomic_load_explicit(&c->slot->copied, memory_order_relaxed);
	const unsigned int obstacle =
		atomic_load_explicit(&c->slot->obstacle, memory_order_relaxed);

	if (size <= proved)
		return CLASS_ZERO_COPY;
	if (copied && proved && c->proofs->is_cpu)
		return CLASS_EACH;
	if (copied && size >= copied)
		return CLASS_COPIES;
	if (obstacle == OBSTACLE_NO_PROOF)
		return CLASS_EACH;
	return obstacle == (OBSTACLE_HANGS | job_late() << OBSTACLE_BITS) ? CLASS_STUCK
									  : CLASS_UNKNOWN;
}

static void buffer_class_name(const struct buffer_class *c, char *name, size_t size)
{
	snprintf(name, size, "class %d %u %u %u %u", c->kind, class_access(c->flags),
		 class_host_access(c->flags), c->align, c->bucket);
}

/* A result is the largest proved size, or the least copied size as a negative number. */
static void buffer_class_load(const struct buffer_class *c)
{
	char name[64];
	long kept;

	buffer_class_name(c, name, sizeof(name));
	if (!c->proofs->device || !result_get(c->proofs->device, name, &kept))
		return;
	if (kept == RESULT_HANGS)
		buffer_slot_hangs(c->slot);
	else if (kept > 0)
		buffer_slot_proved(c->slot, (size_t)kept);
	else if (kept < 0)
		buffer_slot_copied(c->slot, (size_t)-kept);
}

static void buffer_class_keep(const struct buffer_class *c, long result)
{
	char name[64];

	if (!c->proofs->device)
		return;
	buffer_class_name(c, name, sizeof(name));
	result_set(c->proofs->device, name, result);
}

static void buffer_class_learn(const struct buffer_class *c, size_t size, enum tested found)
{
	switch (found) {
	case PASSED:
		buffer_slot_proved(c->slot, size);
		buffer_class_keep(c, (long)size);
		break;
	case FAILED:
		buffer_slot_copied(c->slot, size);
		if (!atomic_load(&c->slot->proved))
			buffer_class_keep(c, -(long)size);
		break;
	case HUNG:
		buffer_slot_hangs(c->slot);
		buffer_class_keep(c, RESULT_HANGS);
		break;
	case BROKEN:
	case NO_SAMPLE:
		atomic_store(&c->slot->obstacle, OBSTACLE_NO_PROOF);
		break;
	case UNTESTED:
		break;
	}
}

static enum class_verdict buffer_class_test(const struct buffer_class *c, size_t size)
{
	const struct selftest_part part = {
		.kind = c->kind,
		.flags = c->flags,
		.offset = aligns[c->align].offset,
		.size = size,
		.is_sparse = c->proofs->is_cpu,
	};

	if (size > c->proofs->largest)
		return CLASS_EACH; /* the driver makes no such buffer */
	buffer_class_learn(
		c, size, selftest_part(c->proofs->devices, c->proofs->num_devices, &part, c->kept));
	return buffer_class_verdict(c, size);
}

static const char *const class_says[CLASS_VERDICTS] = {
	[CLASS_UNKNOWN] = "could not be tested this time",
	[CLASS_ZERO_COPY] = "is zero copy on this device",
	[CLASS_COPIES] = "is copied by this device",
	[CLASS_EACH] = "is not proved to be zero copy on this device",
	[CLASS_STUCK] = "made a self-test hang on this device",
};

/* At the first import of the class, and at each import above the largest size so far. */
static enum class_verdict buffer_class_find_out(const struct buffer_class *c, size_t size)
{
	const size_t least = buffer_class_least(c);
	enum class_verdict verdict;

	if (!atomic_load(&c->slot->proved) && !atomic_load(&c->slot->copied))
		buffer_class_load(c);
	verdict = buffer_class_verdict(c, size);
	if (verdict == CLASS_UNKNOWN && least < size && !atomic_load(&c->slot->proved) &&
	    buffer_class_test(c, least) != CLASS_ZERO_COPY)
		return buffer_class_verdict(c, size);
	if (verdict == CLASS_UNKNOWN)
		verdict = buffer_class_test(c, size < least ? least : size);
	log_debug("%s, %s%s, %s, %zu bytes, %s", class_kind_name(c->kind),
		  class_access_name(c->flags), class_host_access_name(c->flags),
		  aligns[c->align].name, size, class_says[verdict]);
	return verdict;
}

static cl_int buffer_class_refuse(const struct buffer_class *c, size_t size,
				  enum class_verdict verdict)
{
	log_error("%s, %s%s, %s, %zu bytes, %s", class_kind_name(c->kind),
		  class_access_name(c->flags), class_host_access_name(c->flags),
		  aligns[c->align].name, size, class_says[verdict]);
	return verdict == CLASS_UNKNOWN ? CL_OUT_OF_RESOURCES : CL_INVALID_OPERATION;
}

static cl_int buffer_class_check(const struct buffer_class *c, size_t size, bool *each)
{
	enum class_verdict verdict = buffer_class_verdict(c, size);

	if (verdict == CLASS_UNKNOWN)
		verdict = buffer_class_find_out(c, size);
	if (verdict == CLASS_ZERO_COPY)
		return CL_SUCCESS;
	if ((verdict == CLASS_EACH || verdict == CLASS_UNKNOWN) && c->proofs->is_cpu) {
		*each = true;
		return CL_SUCCESS;
	}
	return buffer_class_refuse(c, size, verdict);
}

cl_int buffer_class_prove(struct zero_copy *proofs, struct selftest_kept *kept, unsigned int kinds,
			  cl_mem_flags flags, const void *addr, size_t size, bool *each)
{
	struct buffer_class c = {
		.proofs = proofs,
		.kept = kept,
		.flags = flags,
		.align = buffer_align_of(addr, size),
		.bucket = buffer_bucket_of(size),
	};
	cl_int err = CL_SUCCESS;

	*each = false;
	for (unsigned int kind = 0; kind < IMPORT_KINDS && !err; kind++) {
		if (!(kinds & 1u << kind))
			continue;
		c.kind = (enum import_kind)kind;
		c.slot = buffer_class_slot(&c);
		err = buffer_class_check(&c, size, each);
	}
	return err;
}

static cl_int buffer_check(cl_device_id device, cl_mem buffer, const void *addr)
{
	switch (selftest_address(device, buffer, addr)) {
	case PASSED:
		return CL_SUCCESS;
	case FAILED:
		log_error("the device works on a copy of the memory at %p", addr);
		return CL_INVALID_OPERATION;
	case HUNG:
		log_error("the proof that the device works on the memory at %p did not end", addr);
		return CL_INVALID_OPERATION;
	default:
		log_error("the proof that the device works on the memory at %p could not run",
			  addr);
		return CL_OUT_OF_RESOURCES;
	}
}

cl_int buffer_class_prove_buffer(const struct context *context, cl_mem buffer, const void *addr)
{
	const cl_device_id *ids;
	size_t count = context_devices(context, &ids);
	cl_int err = CL_SUCCESS;

	for (size_t i = 0; i < count && !err; i++)
		err = buffer_check(ids[i], buffer, addr);
	return err;
}
