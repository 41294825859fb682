/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/methods/host_ptr/zero_copy.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "icd/calls/image_check.h"
#include "icd/layer.h"
#include "icd/objects/device.h"
#include "icd/selftest/job.h"
#include "icd/selftest/result.h"
#include "icd/selftest/selftest.h"
#include "util/log.h"

#define ACCESSES 3
#define HOST_ACCESSES 4
#define ALIGNS 3
#define SMALLEST 11 /* all sizes below a page are one bucket */
#define BUCKETS (64 - SMALLEST)

/* What is known of a class.  The bounds only ever move apart. */
struct slot {
	atomic_size_t proved; /* sizes up to this are zero copy; 0: none */
	atomic_size_t copied; /* a size that is copied, the least that is known; 0: none */
	atomic_uint obstacle; /* enum obstacle, and of HANGS job_late() at that time above it */
};

enum obstacle {
	NO_OBSTACLE,
	NO_PROOF, /* there is no memory to try, or the driver refuses it */
	HANGS,
	OBSTACLE_BITS = 2,
};

enum verdict {
	UNKNOWN, /* what is wrong is so at the moment */
	ZERO_COPY,
	COPIES,
	EACH, /* only the buffer itself can be proved */
	STUCK,
	VERDICTS,
};

/* Never changed or removed. */
struct image_proof {
	struct image_proof *next;
	struct selftest_image image;
	enum verdict verdict;
	unsigned int late; /* job_late() then */
};

struct zero_copy {
	const struct device *device; /* results are kept for it; NULL: for several none is */
	bool is_cpu;		     /* all are */
	size_t largest;		     /* buffer, of all */
	cl_uint num_devices;
	cl_device_id *devices; /* root devices, each once */
	struct slot buffer[IMPORT_KINDS][ACCESSES][HOST_ACCESSES][ALIGNS][BUCKETS];
	struct image_proof *_Atomic images;
};

struct class
{
	enum import_kind kind;
	cl_mem_flags flags;  /* what kernels do, and what the host may */
	unsigned int align;  /* index of aligns */
	unsigned int bucket; /* sizes from 1 << (SMALLEST + bucket) on, up to twice that */
};

static const struct {
	const char *name;
	size_t bytes, offset; /* of sizes and addresses; from a page, to be no more aligned */
} aligns[ALIGNS] = {
	{ "whole pages", 0, 0 }, /* a page's */
	{ "multiples of 64 bytes", 64, 64 },
	{ "any alignment", 1, 129 },
};

static const char *const kind_name[IMPORT_KINDS] = {
	[IMPORT_ANONYMOUS] = "anonymous memory",
	[IMPORT_FILE_PRIVATE] = "a private mapping of a file",
	[IMPORT_FILE_SHARED] = "a shared mapping of a file",
	[IMPORT_SHMEM] = "shared memory",
	[IMPORT_SHMEM_PRIVATE] = "a private mapping of shared memory",
	[IMPORT_HUGE] = "huge pages",
	[IMPORT_HUGE_SHARED] = "shared huge pages",
	[IMPORT_OF_DMABUF] = "a mapping of a dma-buf",
	[IMPORT_OTHER] = "a device's mapping",
	[IMPORT_UNWRITABLE] = "a mapping without write permission",
	[IMPORT_SEVERAL] = "a range of several mappings",
};

static unsigned int zero_copy_access_of(cl_mem_flags flags)
{
	return flags & CL_MEM_READ_ONLY ? 0 : flags & CL_MEM_WRITE_ONLY ? 1 : 2;
}

static unsigned int host_access_of(cl_mem_flags flags)
{
	return flags & CL_MEM_HOST_READ_ONLY	? 1
	       : flags & CL_MEM_HOST_WRITE_ONLY ? 2
	       : flags & CL_MEM_HOST_NO_ACCESS	? 3
						: 0;
}

static const char *access_name(cl_mem_flags flags)
{
	static const char *const names[ACCESSES] = { "CL_MEM_READ_ONLY", "CL_MEM_WRITE_ONLY",
						     "CL_MEM_READ_WRITE" };

	return names[zero_copy_access_of(flags)];
}

static const char *host_access_name(cl_mem_flags flags)
{
	static const char *const names[HOST_ACCESSES] = { "", ", CL_MEM_HOST_READ_ONLY",
							  ", CL_MEM_HOST_WRITE_ONLY",
							  ", CL_MEM_HOST_NO_ACCESS" };

	return names[host_access_of(flags)];
}

static bool is_cpu(cl_device_id device)
{
	cl_device_type type = 0;

	next.clGetDeviceInfo(device, CL_DEVICE_TYPE, sizeof(type), &type, NULL);
	return type & CL_DEVICE_TYPE_CPU;
}

static size_t largest_buffer(cl_device_id device)
{
	cl_ulong bytes = 0;

	next.clGetDeviceInfo(device, CL_DEVICE_MAX_MEM_ALLOC_SIZE, sizeof(bytes), &bytes, NULL);
	return bytes ? bytes : SIZE_MAX;
}

static void zero_copy_device_add(struct zero_copy *proofs, cl_device_id root)
{
	size_t largest = largest_buffer(root);

	for (cl_uint i = 0; i < proofs->num_devices; i++)
		if (proofs->devices[i] == root)
			return;
	proofs->devices[proofs->num_devices++] = root;
	proofs->is_cpu &= is_cpu(root);
	proofs->largest = largest < proofs->largest ? largest : proofs->largest;
}

struct zero_copy *zero_copy_create(const struct device *const *devices, size_t count)
{
	struct zero_copy *proofs = calloc(1, sizeof(*proofs));

	if (!proofs)
		return NULL;
	proofs->devices = calloc(count, sizeof(proofs->devices[0]));
	if (!proofs->devices) {
		free(proofs);
		return NULL;
	}
	proofs->is_cpu = true;
	proofs->largest = SIZE_MAX;
	for (size_t i = 0; i < count; i++)
		zero_copy_device_add(proofs, devices[i]->id);
	proofs->device = proofs->num_devices == 1 ? devices[0] : NULL;
	return proofs;
}

void zero_copy_destroy(struct zero_copy *proofs)
{
	if (!proofs)
		return;
	while (proofs->images) {
		struct image_proof *proof = proofs->images;

		proofs->images = proof->next;
		free(proof);
	}
	free(proofs->devices);
	free(proofs);
}

bool zero_copy_is_of_several(const struct zero_copy *proofs)
{
	return proofs->num_devices > 1;
}

static size_t page_size(void)
{
	static atomic_size_t known;
	size_t size = atomic_load_explicit(&known, memory_order_relaxed);

	if (!size) {
		size = (size_t)sysconf(_SC_PAGESIZE);
		atomic_store_explicit(&known, size, memory_order_relaxed);
	}
	return size;
}

static size_t align_bytes(unsigned int align)
{
	return aligns[align].bytes ? aligns[align].bytes : page_size();
}

static unsigned int align_of(const void *addr, size_t size)
{
	unsigned int i = 0;

	while (((uintptr_t)addr | size) & (align_bytes(i) - 1))
		i++;
	return i;
}

static unsigned int zero_copy_magnitude(size_t number)
{
	return number ? 63 - (unsigned int)__builtin_clzll(number) : 0;
}

static unsigned int zero_copy_bucket_of(size_t size)
{
	unsigned int bucket = zero_copy_magnitude(size);

	return bucket < SMALLEST ? 0 : bucket - SMALLEST;
}

/* The least size of a class. */
static size_t least_of(const struct class *c)
{
	const size_t align = align_bytes(c->align);

	if (c->bucket)
		return ((size_t)1 << (SMALLEST + c->bucket)) + (align == 1);
	return align == 1 ? 17 : align;
}

static struct slot *slot_of(struct zero_copy *proofs, const struct class *c)
{
	return &proofs->buffer[c->kind][zero_copy_access_of(c->flags)][host_access_of(c->flags)]
			      [c->align][c->bucket];
}

static void slot_proved(struct slot *slot, size_t size)
{
	size_t known = atomic_load(&slot->proved);

	while (known < size && !atomic_compare_exchange_weak(&slot->proved, &known, size))
		;
}

static void slot_copied(struct slot *slot, size_t size)
{
	size_t known = atomic_load(&slot->copied);

	while ((!known || size < known) &&
	       !atomic_compare_exchange_weak(&slot->copied, &known, size))
		;
}

static void slot_hangs(struct slot *slot)
{
	atomic_store(&slot->obstacle, HANGS | job_late() << OBSTACLE_BITS);
}

/* What is known of a size. */
static enum verdict slot_verdict(const struct zero_copy *proofs, struct slot *slot, size_t size)
{
	const size_t proved = atomic_load_explicit(&slot->proved, memory_order_relaxed),
		     copied = atomic_load_explicit(&slot->copied, memory_order_relaxed);
	const unsigned int obstacle = atomic_load_explicit(&slot->obstacle, memory_order_relaxed);

	if (size <= proved)
		return ZERO_COPY;
	if (copied && proved && proofs->is_cpu)
		return EACH;
	if (copied && size >= copied)
		return COPIES;
	if (obstacle == NO_PROOF)
		return EACH;
	return obstacle == (HANGS | job_late() << OBSTACLE_BITS) ? STUCK : UNKNOWN;
}

static void class_name(const struct class *c, char *name, size_t size)
{
	snprintf(name, size, "class %d %u %u %u %u", c->kind, zero_copy_access_of(c->flags),
		 host_access_of(c->flags), c->align, c->bucket);
}

/* Kept is the largest size that was proved, or the least that is copied as a negative number. */
static void class_load(const struct zero_copy *proofs, const struct class *c, struct slot *slot)
{
	char name[64];
	long kept;

	class_name(c, name, sizeof(name));
	if (!proofs->device || !result_get(proofs->device, name, &kept))
		return;
	if (kept == RESULT_HANGS)
		slot_hangs(slot);
	else if (kept > 0)
		slot_proved(slot, (size_t)kept);
	else if (kept < 0)
		slot_copied(slot, (size_t)-kept);
}

static void class_keep(const struct zero_copy *proofs, const struct class *c, long result)
{
	char name[64];

	if (!proofs->device)
		return;
	class_name(c, name, sizeof(name));
	result_set(proofs->device, name, result);
}

static void class_learn(const struct zero_copy *proofs, const struct class *c, struct slot *slot,
			size_t size, enum tested found)
{
	switch (found) {
	case PASSED:
		slot_proved(slot, size);
		class_keep(proofs, c, (long)size);
		break;
	case FAILED:
		slot_copied(slot, size);
		if (!atomic_load(&slot->proved))
			class_keep(proofs, c, -(long)size);
		break;
	case HUNG:
		slot_hangs(slot);
		class_keep(proofs, c, RESULT_HANGS);
		break;
	case BROKEN:
	case NO_SAMPLE:
		atomic_store(&slot->obstacle, NO_PROOF);
		break;
	case UNTESTED:
		break;
	}
}

static enum verdict class_test(const struct zero_copy *proofs, const struct class *c,
			       struct slot *slot, size_t size, struct selftest_kept *kept)
{
	const struct selftest_part part = {
		.kind = c->kind,
		.flags = c->flags,
		.offset = aligns[c->align].offset,
		.size = size,
		.is_sparse = proofs->is_cpu,
	};

	if (size > proofs->largest)
		return EACH; /* the driver makes no such buffer at all */
	class_learn(proofs, c, slot, size,
		    selftest_part(proofs->devices, proofs->num_devices, &part, kept));
	return slot_verdict(proofs, slot, size);
}

/* At the first import of the class, in this process or with this driver, and at larger ones. */
static enum verdict class_prove(const struct zero_copy *proofs, const struct class *c,
				struct slot *slot, size_t size, struct selftest_kept *kept)
{
	const size_t least = least_of(c);
	enum verdict verdict;

	if (!atomic_load(&slot->proved) && !atomic_load(&slot->copied))
		class_load(proofs, c, slot);
	verdict = slot_verdict(proofs, slot, size);
	if (verdict == UNKNOWN && least < size && !atomic_load(&slot->proved) &&
	    class_test(proofs, c, slot, least, kept) != ZERO_COPY)
		return slot_verdict(proofs, slot, size);
	if (verdict == UNKNOWN)
		verdict = class_test(proofs, c, slot, size < least ? least : size, kept);
	log_debug("%s, %s%s, %s, %zu bytes: verdict %d", kind_name[c->kind], access_name(c->flags),
		  host_access_name(c->flags), aligns[c->align].name, size, verdict);
	return verdict;
}

static cl_int class_refuse(const struct class *c, size_t size, enum verdict verdict)
{
	static const char *const says[VERDICTS] = {
		[UNKNOWN] = "could not be tested this time",
		[COPIES] = "is copied by this device",
		[EACH] = "is not proved to be zero copy on this device",
		[STUCK] = "made a self-test hang on this device",
	};

	log_error("%s, %s%s, %s, %zu bytes, %s", kind_name[c->kind], access_name(c->flags),
		  host_access_name(c->flags), aligns[c->align].name, size, says[verdict]);
	return verdict == UNKNOWN ? CL_OUT_OF_RESOURCES : CL_INVALID_OPERATION;
}

static cl_int class_check(struct zero_copy *proofs, const struct class *c, size_t size,
			  struct selftest_kept *kept, bool *each)
{
	struct slot *slot = slot_of(proofs, c);
	enum verdict verdict = slot_verdict(proofs, slot, size);

	if (verdict == UNKNOWN)
		verdict = class_prove(proofs, c, slot, size, kept);
	if (verdict == ZERO_COPY)
		return CL_SUCCESS;
	if ((verdict == EACH || verdict == UNKNOWN) && proofs->is_cpu) {
		*each = true;
		return CL_SUCCESS;
	}
	return class_refuse(c, size, verdict);
}

cl_int zero_copy_prove(struct context *context, unsigned int kinds, cl_mem_flags flags,
		       const void *addr, size_t size, bool *each)
{
	struct zero_copy *proofs = context_zero_copy(context);
	struct class c = {
		.flags = flags,
		.align = align_of(addr, size),
		.bucket = zero_copy_bucket_of(size),
	};
	cl_int err = CL_SUCCESS;

	*each = false;
	if (!proofs)
		return CL_OUT_OF_HOST_MEMORY;
	for (unsigned int kind = 0; kind < IMPORT_KINDS && !err; kind++) {
		if (!(kinds & 1u << kind))
			continue;
		c.kind = (enum import_kind)kind;
		err = class_check(proofs, &c, size, context_selftest(context), each);
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
static enum tested image_test(const struct zero_copy *proofs, const struct selftest_image *image)
{
	struct selftest_image anonymous = *image;
	enum tested found = selftest_image(proofs->devices, proofs->num_devices, image);

	anonymous.kind = IMPORT_ANONYMOUS;
	if (found == NO_SAMPLE && proofs->is_cpu)
		return selftest_image(proofs->devices, proofs->num_devices, &anonymous);
	return found;
}

static void image_name(const struct selftest_image *image, char *name, size_t size)
{
	snprintf(name, size, "image %d %u %u %#x %#x %zu %zu %zu %zu", image->kind,
		 zero_copy_access_of(image->flags), host_access_of(image->flags),
		 image->format.image_channel_order, image->format.image_channel_data_type,
		 image->width, image->height, image->pitch, image->offset);
}

static enum verdict image_verdict(enum tested found)
{
	switch (found) {
	case PASSED:
		return ZERO_COPY;
	case FAILED:
		return COPIES;
	case UNTESTED:
		return UNKNOWN;
	default:
		return STUCK;
	}
}

static enum verdict image_find_out(const struct zero_copy *proofs,
				   const struct selftest_image *image)
{
	enum tested found;
	char name[160];
	long kept;

	image_name(image, name, sizeof(name));
	if (proofs->device && result_get(proofs->device, name, &kept))
		return kept > 0 ? ZERO_COPY : kept == RESULT_HANGS ? STUCK : COPIES;
	found = image_test(proofs, image);
	if (proofs->device && (found == PASSED || found == FAILED))
		result_set(proofs->device, name, found == PASSED);
	if (proofs->device && found == HUNG)
		result_set(proofs->device, name, RESULT_HANGS);
	return image_verdict(found);
}

static bool is_same_class(const struct selftest_image *a, const struct selftest_image *b)
{
	return a->kind == b->kind && a->flags == b->flags && a->offset == b->offset &&
	       a->format.image_channel_order == b->format.image_channel_order &&
	       a->format.image_channel_data_type == b->format.image_channel_data_type &&
	       zero_copy_magnitude(a->width) == zero_copy_magnitude(b->width) &&
	       zero_copy_magnitude(a->height) == zero_copy_magnitude(b->height) &&
	       zero_copy_magnitude(a->pitch) == zero_copy_magnitude(b->pitch);
}

static bool zero_copy_is_within(const struct selftest_image *a, const struct selftest_image *b)
{
	return a->width <= b->width && a->height <= b->height && a->pitch <= b->pitch;
}

/* What is zero copy is so for smaller images of the class, what is copied for larger ones. */
static bool image_tells(const struct image_proof *proof, const struct selftest_image *image)
{
	if (!is_same_class(&proof->image, image))
		return false;
	if (proof->verdict == ZERO_COPY)
		return zero_copy_is_within(image, &proof->image);
	return zero_copy_is_within(&proof->image, image) &&
	       (proof->verdict == COPIES || proof->late == job_late());
}

static void image_learn(struct zero_copy *proofs, const struct selftest_image *image,
			enum verdict verdict)
{
	struct image_proof *proof = malloc(sizeof(*proof));

	if (!proof)
		return; /* it is found out anew */
	proof->image = *image;
	proof->verdict = verdict;
	proof->late = job_late();
	proof->next = atomic_load(&proofs->images);
	while (!atomic_compare_exchange_weak(&proofs->images, &proof->next, proof))
		;
}

static cl_int image_check(struct zero_copy *proofs, const struct selftest_image *image)
{
	const struct image_proof *proof =
		atomic_load_explicit(&proofs->images, memory_order_acquire);
	enum verdict verdict;

	while (proof && !image_tells(proof, image))
		proof = proof->next;
	if (proof) {
		verdict = proof->verdict;
	} else {
		verdict = image_find_out(proofs, image);
		if (verdict != UNKNOWN)
			image_learn(proofs, image, verdict);
	}
	if (verdict == ZERO_COPY)
		return CL_SUCCESS;
	log_error("2D images of %zux%zu, %s%s, over %s %s zero copy on this device", image->width,
		  image->height, access_name(image->flags), host_access_name(image->flags),
		  kind_name[image->kind],
		  verdict == COPIES ? "are not" : "could not be proved to be");
	return verdict == UNKNOWN ? CL_OUT_OF_RESOURCES : CL_INVALID_OPERATION;
}

/* The alignment of an address, and an offset from a page that has no more. */
static size_t offset_like(const void *addr)
{
	const size_t within = (uintptr_t)addr & (page_size() - 1);

	return within & -within;
}

cl_int zero_copy_prove_image(struct context *context, unsigned int kinds, cl_mem_flags flags,
			     const cl_image_format *format, const cl_image_desc *desc,
			     const void *addr)
{
	struct zero_copy *proofs = context_zero_copy(context);
	struct selftest_image image = {
		.flags = flags,
		.format = *format,
		.width = desc->image_width,
		.height = desc->image_height,
		.pitch = desc->image_row_pitch,
		.offset = offset_like(addr),
	};
	cl_int err = CL_SUCCESS;

	if (!proofs)
		return CL_OUT_OF_HOST_MEMORY;
	if (!image.pitch)
		image.pitch = image.width * image_element(format);
	image.is_sparse = proofs->is_cpu;
	for (unsigned int kind = 0; kind < IMPORT_KINDS && !err; kind++) {
		image.kind = (enum import_kind)kind;
		if (kinds & 1u << kind)
			err = image_check(proofs, &image);
	}
	return err;
}
