/* SPDX-License-Identifier: Apache-2.0 */
#include "zero_copy.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "device.h"
#include "import/log.h"
#include "layer.h"
#include "result.h"
#include "selftest.h"

#define ACCESSES 3
#define ALIGNS 3
#define SMALLEST 11 /* all sizes below a page are one bucket */
#define BUCKETS 64

enum verdict {
	UNKNOWN,
	ZERO_COPY,
	COPIES,
	EACH, /* some pass and some do not, or there is no memory to try */
	STUCK,
	VERDICTS,
};

/* Written once each, or again with the same value. */
struct zero_copy {
	atomic_uchar buffer[IMPORT_KINDS][ACCESSES][ALIGNS][BUCKETS];
	atomic_uchar image[IMPORT_KINDS][ACCESSES];
};

struct class
{
	enum import_kind kind;
	unsigned int access; /* enum import_access */
	unsigned int align;  /* index of aligns */
	unsigned int bucket; /* sizes from 1 << bucket on, up to twice that */
};

static const struct {
	const char *name;
	size_t bytes, offset; /* of sizes and addresses; from a page, to be no more aligned */
} aligns[ALIGNS] = {
	{ "whole pages", 4096, 0 },
	{ "multiples of 64 bytes", 64, 64 },
	{ "any alignment", 1, 129 },
};

static const char *const kind_name[IMPORT_KINDS] = {
	[IMPORT_ANONYMOUS] = "anonymous memory",
	[IMPORT_FILE_PRIVATE] = "a private mapping of a file",
	[IMPORT_FILE_SHARED] = "a shared mapping of a file",
	[IMPORT_SHMEM] = "shared memory",
	[IMPORT_OF_DMABUF] = "a mapping of a dma-buf",
	[IMPORT_OTHER] = "a device's mapping or huge pages",
	[IMPORT_UNWRITABLE] = "a mapping without write permission",
};

static const char *access_name(unsigned int access)
{
	switch (access) {
	case IMPORT_READ:
		return "CL_MEM_READ_ONLY";
	case IMPORT_WRITE:
		return "CL_MEM_WRITE_ONLY";
	default:
		return "CL_MEM_READ_WRITE";
	}
}

struct zero_copy *zero_copy_create(void)
{
	return calloc(1, sizeof(struct zero_copy));
}

void zero_copy_destroy(struct zero_copy *proofs)
{
	free(proofs);
}

static unsigned int align_of(const void *addr, size_t size)
{
	unsigned int i = 0;

	while (((uintptr_t)addr | size) & (aligns[i].bytes - 1))
		i++;
	return i;
}

static unsigned int bucket_of(size_t size)
{
	unsigned int bucket = 63 - (unsigned int)__builtin_clzll(size);

	return bucket < SMALLEST ? SMALLEST : bucket;
}

static atomic_uchar *slot_of(const struct device *device, const struct class *c)
{
	return &device->zero_copy->buffer[c->kind][c->access - 1][c->align][c->bucket];
}

/* The least and the largest size of a class that a device takes. */
static void sizes_of(const struct class *c, size_t largest, size_t sizes[2])
{
	size_t align = aligns[c->align].bytes, begin = (size_t)1 << c->bucket,
	       end = begin * 2 - 1 < largest ? begin * 2 - 1 : largest;

	if (c->bucket == SMALLEST)
		begin = align == 1 ? 16 : align;
	sizes[0] = align == 1 ? begin + 1 : begin;
	sizes[1] = end / align * align;
}

static size_t largest_buffer(const struct device *device)
{
	cl_ulong bytes = 0;

	next.clGetDeviceInfo(device->id, CL_DEVICE_MAX_MEM_ALLOC_SIZE, sizeof(bytes), &bytes, NULL);
	return bytes ? bytes : SIZE_MAX;
}

static bool is_cpu(const struct device *device)
{
	cl_device_type type = 0;

	next.clGetDeviceInfo(device->id, CL_DEVICE_TYPE, sizeof(type), &type, NULL);
	return type & CL_DEVICE_TYPE_CPU;
}

/* The verdict of the two ends; @keep: whether it says something about the driver. */
static enum verdict verdict_of(const enum tested found[2], bool *keep)
{
	*keep = false;
	for (int i = 0; i < 2; i++) {
		if (found[i] == HUNG)
			return STUCK;
		if (found[i] == UNTESTED)
			return UNKNOWN;
		if (found[i] == NO_SAMPLE || found[i] == BROKEN)
			return EACH;
	}
	*keep = true;
	if (found[0] != found[1])
		return EACH;
	return found[0] == PASSED ? ZERO_COPY : COPIES;
}

static enum verdict class_test(const struct device *device, const struct class *c, bool *keep)
{
	struct selftest_part part = {
		.kind = c->kind,
		.access = c->access,
		.offset = aligns[c->align].offset,
	};
	enum tested found[2];

	*keep = false;
	sizes_of(c, largest_buffer(device), part.sizes);
	if (part.sizes[1] < part.sizes[0])
		return EACH; /* the driver makes no such buffer at all */
	part.is_sparse = is_cpu(device);
	selftest_part(device->id, &part, found);
	return verdict_of(found, keep);
}

/* At the first import of the class, in this process or with this driver. */
static enum verdict class_prove(const struct device *device, const struct class *c)
{
	enum verdict verdict;
	char test[64];
	long kept;
	bool keep;

	snprintf(test, sizeof(test), "class %d %u %u %u", c->kind, c->access, c->align, c->bucket);
	if (result_get(device, test, &kept) && kept > UNKNOWN && kept < STUCK) {
		verdict = (enum verdict)kept;
	} else {
		verdict = class_test(device, c, &keep);
		if (keep)
			result_set(device, test, verdict);
	}
	log_debug("device %p, %s, %s, %s, from %zu bytes on: verdict %d", (void *)device->id,
		  kind_name[c->kind], access_name(c->access), aligns[c->align].name,
		  (size_t)1 << c->bucket, verdict);
	atomic_store_explicit(slot_of(device, c), verdict, memory_order_relaxed);
	return verdict;
}

static enum verdict class_verdict(const struct device *device, const struct class *c)
{
	enum verdict verdict = atomic_load_explicit(slot_of(device, c), memory_order_relaxed);

	return verdict == UNKNOWN ? class_prove(device, c) : verdict;
}

static cl_int class_check(const struct device *device, const struct class *c, bool *each)
{
	enum verdict verdict = class_verdict(device, c);
	static const char *const says[VERDICTS] = {
		[UNKNOWN] = "could not be tested this time",
		[COPIES] = "is copied by this device",
		[EACH] = "is not proved to be zero copy on this device",
		[STUCK] = "made a self-test hang on this device",
	};

	if (verdict == ZERO_COPY)
		return CL_SUCCESS;
	if ((verdict == EACH || verdict == UNKNOWN) && is_cpu(device)) {
		*each = true;
		return CL_SUCCESS;
	}
	log_error("%s, %s, %s, from %zu bytes on, %s", kind_name[c->kind], access_name(c->access),
		  aligns[c->align].name, (size_t)1 << c->bucket, says[verdict]);
	return verdict == UNKNOWN ? CL_OUT_OF_RESOURCES : CL_INVALID_OPERATION;
}

static cl_int device_check(const struct device *device, unsigned int kinds, struct class *c,
			   bool *each)
{
	cl_int err = CL_SUCCESS;

	for (unsigned int kind = 0; kind < IMPORT_KINDS && !err; kind++) {
		if (!(kinds & 1u << kind))
			continue;
		c->kind = (enum import_kind)kind;
		err = class_check(device, c, each);
	}
	return err;
}

cl_int zero_copy_prove(const struct context *context, unsigned int kinds, unsigned int access,
		       const void *addr, size_t size, bool *each)
{
	struct class c = {
		.access = access,
		.align = align_of(addr, size),
		.bucket = bucket_of(size),
	};
	const cl_device_id *ids;
	size_t count = context_devices(context, &ids);
	cl_int err = CL_SUCCESS;

	*each = false;
	for (size_t i = 0; i < count && !err; i++) {
		const struct device *device = device_get(ids[i]);

		err = device ? device_check(device, kinds, &c, each) : CL_OUT_OF_HOST_MEMORY;
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

cl_int zero_copy_prove_buffer(const struct context *context, cl_mem buffer, const void *addr)
{
	const cl_device_id *ids;
	size_t count = context_devices(context, &ids);
	cl_int err = CL_SUCCESS;

	for (size_t i = 0; i < count && !err; i++)
		err = buffer_check(ids[i], buffer, addr);
	return err;
}

/*
 * Of memory that climport cannot make there are no images to try.  On a CPU device a buffer over
 * it was proved, and images are taken to be no other than on anonymous memory.
 */
static enum tested image_test(const struct device *device, enum import_kind kind,
			      unsigned int access)
{
	enum tested found = selftest_image(device->id, kind, access);

	if (found == NO_SAMPLE && is_cpu(device))
		return selftest_image(device->id, IMPORT_ANONYMOUS, access);
	return found;
}

static enum verdict image_prove(const struct device *device, enum import_kind kind,
				unsigned int access)
{
	enum verdict verdict = UNKNOWN;
	enum tested found;
	char test[64];
	long kept;

	snprintf(test, sizeof(test), "image %d %u", kind, access);
	if (result_get(device, test, &kept) && (kept == ZERO_COPY || kept == COPIES))
		return (enum verdict)kept;
	found = image_test(device, kind, access);
	if (found == PASSED || found == FAILED) {
		verdict = found == PASSED ? ZERO_COPY : COPIES;
		result_set(device, test, verdict);
	} else if (found != UNTESTED) {
		verdict = STUCK;
	}
	return verdict;
}

static cl_int image_check(const struct device *device, enum import_kind kind, unsigned int access)
{
	atomic_uchar *slot = &device->zero_copy->image[kind][access - 1];
	enum verdict verdict = atomic_load_explicit(slot, memory_order_relaxed);

	if (verdict == UNKNOWN) {
		verdict = image_prove(device, kind, access);
		atomic_store_explicit(slot, verdict, memory_order_relaxed);
	}
	if (verdict == ZERO_COPY)
		return CL_SUCCESS;
	log_error("2D images, %s, over %s %s zero copy on this device", access_name(access),
		  kind_name[kind], verdict == COPIES ? "are not" : "could not be proved to be");
	return CL_INVALID_OPERATION;
}

cl_int zero_copy_prove_image(const struct context *context, unsigned int kinds, unsigned int access)
{
	const cl_device_id *ids;
	size_t count = context_devices(context, &ids);
	cl_int err = CL_SUCCESS;

	for (size_t i = 0; i < count && !err; i++) {
		const struct device *device = device_get(ids[i]);

		if (!device)
			return CL_OUT_OF_HOST_MEMORY;
		for (unsigned int kind = 0; kind < IMPORT_KINDS && !err; kind++)
			if (kinds & 1u << kind)
				err = image_check(device, (enum import_kind)kind, access);
	}
	return err;
}
