/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The self-test of images in a probe process: a driver may crash or hang when an image is made, or when
 * a kernel uses the image (Mesa's zink aborts).
 */
#ifndef ICD_METHODS_HOST_PTR_IMAGE_PROOF_H
#define ICD_METHODS_HOST_PTR_IMAGE_PROOF_H

#include "icd/methods/host_ptr/class.h"
#include "icd/probe/proof.h"
#include "icd/selftest/selftest.h"

/* Of images over host pointers. */
extern const struct proof image_proof;

#define IMAGE_PROOF_PATIENCE_MS 65000 /* more than a probe process has */

/**
 * image_proof_ask - have an image of a context tested in a probe process
 * @found: set to the result, if a probe answers; UNTESTED if no probe can say anything
 *
 * False: the driver crashed or hung the probe, which is logged as a decision.
 */
bool image_proof_ask(const struct zero_copy *proofs, const struct selftest_image *image,
		     enum tested *found);

#define IMAGE_PROOF_KEY_SIZE (PROBE_REQUEST_SIZE + 64) /* bytes */

/* The text by which threads know that they ask for the same proof.  False: no room. */
bool image_proof_key(const struct zero_copy *proofs, const struct selftest_image *image,
		     char key[IMAGE_PROOF_KEY_SIZE]);

/* For struct proof's run, of images of @ops. */
bool image_proof_run(const struct selftest_image_ops *ops, cl_platform_id platform,
		     const char *words, char *answer, size_t size);

/* The self-test in this process.  @is_cpu: all devices are. */
enum tested image_proof_test(const cl_device_id *devices, cl_uint num_devices, bool is_cpu,
			     const struct selftest_image *image);

#endif /* ICD_METHODS_HOST_PTR_IMAGE_PROOF_H */
