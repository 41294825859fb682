/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/methods/host_ptr/image_class.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "icd/config.h"
#include "icd/image_format.h"
#include "icd/methods/host_ptr/image_proof.h"
#include "icd/probe/question.h"
#include "icd/selftest/result.h"
#include "util/log.h"
#include "util/thread.h"

#define PAUSE_MS 1000 /* without another probe process, after one without an answer */

/* The result for an image.  A record never changes and stays in the list. */
struct image_record {
	struct published published; /* first */
	struct selftest_image image;
	enum class_verdict verdict;
};

static void image_class_name(const struct selftest_image *image, char *name, size_t size)
{
	snprintf(name, size, "image %d %u %u %#x %#x %zu %zu %zu %zu %d %#x %zu%s%s", image->kind,
		 class_access(image->flags), class_host_access(image->flags),
		 image->format.image_channel_order, image->format.image_channel_data_type,
		 image->width, image->height, image->pitch, image->offset, image->from, image->type,
		 image->origin, image->ops ? " " : "", image->ops ? image->ops->name : "");
}

static enum class_verdict image_class_verdict(enum tested found)
{
	switch (found) {
	case PASSED:
		return CLASS_ZERO_COPY;
	case FAILED:
		return CLASS_COPIES;
	case UNTESTED:
		return CLASS_UNKNOWN;
	default:
		return CLASS_UNPROVED;
	}
}

static enum class_verdict image_class_recall(const struct zero_copy *proofs,
					     const struct selftest_image *image)
{
	char name[160];
	long kept;

	image_class_name(image, name, sizeof(name));
	if (!proofs->device)
		return CLASS_UNKNOWN;
	if (!result_get(proofs->device, name, &kept))
		return result_is_fatal(proofs->device, name) ? CLASS_FATAL : CLASS_UNKNOWN;
	if (kept > 0)
		return CLASS_ZERO_COPY;
	return CLASS_COPIES;
}

static void image_class_keep(const struct zero_copy *proofs, const struct selftest_image *image,
			     long result)
{
	char name[160];

	if (!proofs->device)
		return;
	image_class_name(image, name, sizeof(name));
	result_set(proofs->device, name, result);
}

static void image_class_keep_fatal(const struct zero_copy *proofs,
				   const struct selftest_image *image)
{
	char name[160];

	if (!proofs->device)
		return;
	image_class_name(image, name, sizeof(name));
	result_set_fatal(proofs->device, name);
}

static enum class_verdict image_class_judge(const struct zero_copy *proofs,
					    const struct selftest_image *image, enum tested found)
{
	if (found == PASSED || found == FAILED)
		image_class_keep(proofs, image, found == PASSED);
	return image_class_verdict(found);
}

/* In this process. */
static enum class_verdict image_class_test(const struct zero_copy *proofs,
					   const struct selftest_image *image)
{
	return image_class_judge(
		proofs, image,
		image_proof_test(proofs->devices, proofs->num_devices, proofs->is_cpu, image));
}

static int64_t image_class_clock(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}

/* In a probe process. */
static enum class_verdict image_class_ask(struct zero_copy *proofs,
					  const struct selftest_image *image)
{
	enum class_verdict verdict;
	enum tested found;

	if (image_class_clock() < atomic_load(&proofs->again_ms))
		return CLASS_UNKNOWN;
	if (!image_proof_ask(proofs, image, &found)) {
		image_class_keep_fatal(proofs, image);
		return CLASS_FATAL;
	}
	verdict = image_class_judge(proofs, image, found);
	if (verdict == CLASS_UNKNOWN)
		atomic_store(&proofs->again_ms, image_class_clock() + PAUSE_MS);
	return verdict;
}

static bool image_class_is_same(const struct selftest_image *a, const struct selftest_image *b)
{
	return a->ops == b->ops && a->kind == b->kind && a->type == b->type && a->from == b->from &&
	       a->flags == b->flags && a->offset == b->offset && a->origin == b->origin &&
	       a->format.image_channel_order == b->format.image_channel_order &&
	       a->format.image_channel_data_type == b->format.image_channel_data_type &&
	       class_magnitude(a->width) == class_magnitude(b->width) &&
	       class_magnitude(a->height) == class_magnitude(b->height) &&
	       class_magnitude(a->pitch) == class_magnitude(b->pitch);
}

static bool image_class_is_within(const struct selftest_image *a, const struct selftest_image *b)
{
	return a->width <= b->width && a->height <= b->height && a->pitch <= b->pitch;
}

/* A zero-copy image decides for smaller images of the class, a copied image for larger images. */
static bool image_record_tells(const void *object, const void *key)
{
	const struct image_record *proof = object;
	const struct selftest_image *image = key;

	if (!image_class_is_same(&proof->image, image))
		return false;
	if (proof->verdict == CLASS_ZERO_COPY)
		return image_class_is_within(image, &proof->image);
	return image_class_is_within(&proof->image, image);
}

/* An unknown result is no record: the next image of the class is tested again. */
static void image_class_learn(struct zero_copy *proofs, const struct selftest_image *image,
			      enum class_verdict verdict)
{
	struct image_record *proof = verdict == CLASS_UNKNOWN ? NULL : malloc(sizeof(*proof));

	if (!proof)
		return;
	proof->image = *image;
	proof->verdict = verdict;
	if (publish_add(&proofs->images, proof, image_record_tells, image) != proof)
		free(proof);
}

static cl_int image_class_refuse(const struct selftest_image *image, enum class_verdict verdict)
{
	static const char *const says[CLASS_VERDICTS] = {
		[CLASS_UNKNOWN] = "could not be tested on this device now",
		[CLASS_COPIES] = "are not zero copy on this device",
		[CLASS_UNPROVED] = "could not be proved to be zero copy on this device",
		[CLASS_FATAL] = "crashed or hung this device's driver in a self-test",
	};

	log_error("%s images of %zux%zu, %s%s, %s" /* the object is named, if it matters */
		  "over %s %s",
		  image->type == CL_MEM_OBJECT_IMAGE2D ? "2D" : "1D", image->width, image->height,
		  class_access_name(image->flags), class_host_access_name(image->flags),
		  image->from == IMAGE_OF_SUB_BUFFER ? "made from a sub-buffer, " : "",
		  host_rule_kind_name(image->kind), says[verdict]);
	return verdict == CLASS_UNKNOWN ? CL_OUT_OF_RESOURCES : CL_INVALID_OPERATION;
}

/* CLASS_UNKNOWN: nothing is known yet. */
static enum class_verdict image_class_known(struct zero_copy *proofs,
					    const struct selftest_image *image)
{
	const struct image_record *proof = publish_find(&proofs->images, image_record_tells, image);
	enum class_verdict verdict;

	if (proof)
		return proof->verdict;
	verdict = image_class_recall(proofs, image);
	image_class_learn(proofs, image, verdict);
	return verdict;
}

/* Unless another thread has had the image tested meanwhile. */
static enum class_verdict image_class_find_out(struct zero_copy *proofs,
					       const struct selftest_image *image)
{
	enum class_verdict verdict = image_class_known(proofs, image);

	if (verdict != CLASS_UNKNOWN)
		return verdict;
	verdict = config_probe() == PROBE_HERE ? image_class_test(proofs, image)
					       : image_class_ask(proofs, image);
	image_class_learn(proofs, image, verdict);
	return verdict;
}

/* The threads that make such an image wait for one test. */
static enum class_verdict image_class_get(struct zero_copy *proofs,
					  const struct selftest_image *image)
{
	enum class_verdict verdict = image_class_known(proofs, image);
	char key[IMAGE_PROOF_KEY_SIZE];
	THREAD_NO_CANCEL();

	if (verdict != CLASS_UNKNOWN || !image_proof_key(proofs, image, key))
		return verdict;
	if (question_begin(key, &verdict, sizeof(verdict))) {
		verdict = image_class_find_out(proofs, image);
		question_end(key, &verdict, sizeof(verdict));
	} else {
		image_class_learn(proofs, image, verdict);
	}
	return verdict;
}

static cl_int image_class_check(struct zero_copy *proofs, const struct selftest_image *image)
{
	const enum class_verdict verdict = image_class_get(proofs, image);

	return verdict == CLASS_ZERO_COPY ? CL_SUCCESS : image_class_refuse(image, verdict);
}

/*
 * With nothing known, the driver makes only images that need no proof: of one row, which begin with their root object,
 * at a page.
 */
static cl_int image_class_check_fatal(struct zero_copy *proofs, const struct selftest_image *image)
{
	const bool is_plain = image->type == CL_MEM_OBJECT_IMAGE1D_BUFFER && !image->origin &&
			      !image->offset;
	enum class_verdict verdict;

	if (config_probe() == PROBE_HERE)
		return CL_SUCCESS;
	verdict = image_class_get(proofs, image);
	return verdict == CLASS_FATAL || (verdict == CLASS_UNKNOWN && !is_plain)
		       ? image_class_refuse(image, verdict)
		       : CL_SUCCESS;
}

/* An offset from a page with the alignment of an address, and no more alignment. */
static size_t image_class_offset(uintptr_t addr)
{
	const size_t within = addr & (class_page_size() - 1);

	return within & -within;
}

/* An origin with the alignment of @origin, and a page at most. */
static size_t image_class_origin(size_t origin)
{
	const size_t align = origin & -origin;

	return align < class_page_size() ? align : class_page_size();
}

/* @check: for each kind of the memory. */
static cl_int image_class_each(struct zero_copy *proofs, unsigned int kinds, cl_mem_flags flags,
			       const cl_image_format *format, const cl_image_desc *desc,
			       const struct image_place *place,
			       cl_int (*check)(struct zero_copy *, const struct selftest_image *))
{
	const bool is_2d = desc->image_type == CL_MEM_OBJECT_IMAGE2D;
	struct selftest_image image = {
		.ops = place->ops,
		.type = desc->image_type,
		.from = place->from,
		.flags = flags,
		.format = *format,
		.width = desc->image_width,
		.height = is_2d ? desc->image_height : 1,
		.pitch = is_2d ? desc->image_row_pitch : 0,
		.offset = image_class_offset((uintptr_t)place->addr),
		.origin = image_class_origin(place->origin),
	};
	cl_int err = CL_SUCCESS;

	if (!image.pitch)
		image.pitch = image.width * image_format_element(format);
	image.is_sparse = proofs->is_cpu;
	for (unsigned int kind = 0; kind < IMPORT_KINDS && !err; kind++) {
		image.kind = (enum import_kind)kind;
		if (kinds & 1u << kind)
			err = check(proofs, &image);
	}
	return err;
}

cl_int image_class_prove(struct zero_copy *proofs, unsigned int kinds, cl_mem_flags flags,
			 const cl_image_format *format, const cl_image_desc *desc,
			 const struct image_place *place)
{
	return image_class_each(proofs, kinds, flags, format, desc, place, image_class_check);
}

cl_int image_class_allow(struct zero_copy *proofs, unsigned int kinds, cl_mem_flags flags,
			 const cl_image_format *format, const cl_image_desc *desc,
			 const struct image_place *place)
{
	return image_class_each(proofs, kinds, flags, format, desc, place, image_class_check_fatal);
}

void image_class_free(struct zero_copy *proofs)
{
	struct image_record *proof = publish_list_head(&proofs->images);

	while (proof) {
		struct image_record *gone = proof;

		proof = publish_next(proof);
		free(gone);
	}
}
