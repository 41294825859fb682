/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/methods/host_ptr/image_proof.h"

#include <stdio.h>
#include <stdlib.h>

#include "icd/image_format.h"
#include "icd/objects/device.h"
#include "util/log.h"

#define IMAGE_NUMBERS 14 /* of an image in words; the numbers of devices follow */
#define IMAGE_MAX_DEVICES 32

/*
 * If kernels cannot write the format of an image that the driver makes from a buffer, an image with
 * pixels of equal size is tested instead: the bytes of the image are in question, and not the format.
 */
static enum tested image_proof_test_format(const cl_device_id *devices, cl_uint num_devices,
					   const struct selftest_image *image)
{
	struct selftest_image other = *image;
	enum tested found = selftest_image(devices, num_devices, image);

	if (found == BROKEN && image->from != IMAGE_OF_MEMORY &&
	    image_format_of_size(image_format_element(&image->format), &other.format))
		return selftest_image(devices, num_devices, &other);
	return found;
}

/*
 * If climport can make no memory of the image's kind, a CPU device is tested with an image on
 * anonymous memory instead.  A buffer over the application's memory is proved before.
 */
enum tested image_proof_test(const cl_device_id *devices, cl_uint num_devices, bool is_cpu,
			     const struct selftest_image *image)
{
	struct selftest_image anonymous = *image;
	enum tested found = image_proof_test_format(devices, num_devices, image);

	anonymous.kind = IMPORT_ANONYMOUS;
	if (found == NO_SAMPLE && is_cpu && !image->ops)
		return image_proof_test_format(devices, num_devices, &anonymous);
	return found;
}

/* False: no room. */
static bool image_proof_write(const struct zero_copy *proofs, const struct selftest_image *image,
			      char *words, size_t size)
{
	size_t used = (size_t)snprintf(
		words, size, "%d %u %d %llu %u %u %zu %zu %zu %zu %zu %d %d %u", (int)image->kind,
		image->type, (int)image->from, (unsigned long long)image->flags,
		image->format.image_channel_order, image->format.image_channel_data_type,
		image->width, image->height, image->pitch, image->offset, image->origin,
		image->is_sparse, proofs->is_cpu, proofs->num_devices);

	return used < size && device_write_numbers(proofs->platform, proofs->devices,
						   proofs->num_devices, words, size);
}

/* False: not so many numbers. */
static bool image_proof_read_numbers(const char **words, unsigned long long *numbers, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		char *end;

		numbers[i] = strtoull(*words, &end, 10);
		if (end == *words)
			return false;
		*words = end;
	}
	return true;
}

static void image_proof_fill(const unsigned long long *n, struct selftest_image *image)
{
	*image = (struct selftest_image){
		.kind = (enum import_kind)n[0],
		.type = (cl_mem_object_type)n[1],
		.from = (enum selftest_image_from)n[2],
		.flags = n[3],
		.format = { (cl_channel_order)n[4], (cl_channel_type)n[5] },
		.width = n[6],
		.height = n[7],
		.pitch = n[8],
		.offset = n[9],
		.origin = n[10],
		.is_sparse = n[11],
	};
}

bool image_proof_run(const struct selftest_image_ops *ops, cl_platform_id platform,
		     const char *words, char *answer, size_t size)
{
	cl_device_id devices[IMAGE_MAX_DEVICES];
	unsigned long long numbers[IMAGE_NUMBERS];
	struct selftest_image image;
	cl_uint count;

	if (!image_proof_read_numbers(&words, numbers, IMAGE_NUMBERS) ||
	    numbers[IMAGE_NUMBERS - 1] > IMAGE_MAX_DEVICES)
		return false;
	count = (cl_uint)numbers[IMAGE_NUMBERS - 1];
	image_proof_fill(numbers, &image);
	image.ops = ops;
	if (!device_read_numbers(platform, words, devices, count))
		return false;
	snprintf(answer, size, "tested %d",
		 (int)image_proof_test(devices, count, numbers[IMAGE_NUMBERS - 2], &image));
	return true;
}

static bool image_proof_run_host_ptr(cl_platform_id platform, const char *words, char *answer,
				     size_t size)
{
	return image_proof_run(NULL, platform, words, answer, size);
}

const struct proof image_proof = {
	.name = "image",
	.patience_ms = IMAGE_PROOF_PATIENCE_MS,
	.run = image_proof_run_host_ptr,
};

/* The method, if the method is another than host_ptr, has images and a proof of its own. */
static const struct proof *image_proof_of(const struct selftest_image *image)
{
	return image->ops ? image->ops->proof : &image_proof;
}

bool image_proof_key(const struct zero_copy *proofs, const struct selftest_image *image,
		     char key[IMAGE_PROOF_KEY_SIZE])
{
	const size_t used = (size_t)snprintf(key, IMAGE_PROOF_KEY_SIZE, "%s %p ",
					     image_proof_of(image)->name, (void *)proofs->platform);

	return proofs->num_devices <= IMAGE_MAX_DEVICES && used < IMAGE_PROOF_KEY_SIZE &&
	       image_proof_write(proofs, image, key + used, IMAGE_PROOF_KEY_SIZE - used);
}

bool image_proof_ask(const struct zero_copy *proofs, const struct selftest_image *image,
		     enum tested *found)
{
	char words[PROBE_REQUEST_SIZE], line[PROBE_LINE_SIZE];
	enum probe_end end;
	int answer;

	*found = UNTESTED;
	if (proofs->num_devices > IMAGE_MAX_DEVICES ||
	    !image_proof_write(proofs, image, words, sizeof(words)))
		return true;
	end = proof_ask(proofs->platform, image_proof_of(image), words, line);
	if (end == PROBE_ANSWERED && sscanf(line, "tested %d", &answer) == 1)
		*found = (enum tested)answer;
	else
		log_debug("the self-test of images in a process of its own: %s", line);
	return !probe_blames_driver(end);
}
