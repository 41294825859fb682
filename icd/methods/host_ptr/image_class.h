/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Classes of images: by kind of memory, the object that the image is made from, flags, format, the
 * magnitudes of width, height and pitch, and the alignments of the memory's address and of the
 * image's origin.  A proof for an image holds for smaller images of the class; if an image is
 * copied, larger images of the class are taken to be copied.
 */
#ifndef ICD_METHODS_HOST_PTR_IMAGE_CLASS_H
#define ICD_METHODS_HOST_PTR_IMAGE_CLASS_H

#include "icd/methods/host_ptr/class.h"
#include "icd/selftest/selftest.h"

/* The place of an image in memory. */
struct image_place {
	enum selftest_image_from from;
	const unsigned char *addr; /* the memory of the image's root object, or the image's own */
	size_t origin;		   /* of the image: bytes from @addr */
	const struct selftest_image_ops *ops; /* of the method; NULL: host pointers */
};

/**
 * image_class_prove - is an image of @format and @desc zero copy?
 *
 * A class without a result is tested, in a probe process (CLIMPORT_PROBE=here: in this process).  Returns CL_SUCCESS
 * or an error, logged; CL_OUT_OF_RESOURCES: nothing is known now, and a second later an image asks again.
 */
cl_int image_class_prove(struct zero_copy *proofs, unsigned int kinds, cl_mem_flags flags,
			 const cl_image_format *format, const cl_image_desc *desc,
			 const struct image_place *place);

/**
 * image_class_allow - does the driver survive such an image?
 *
 * For the time before the driver makes the image: as image_class_prove(), but the driver itself says what it refuses,
 * and an image that needs no proof is allowed unless the driver is known to crash.  With CLIMPORT_PROBE=here nothing
 * is tested before.
 */
cl_int image_class_allow(struct zero_copy *proofs, unsigned int kinds, cl_mem_flags flags,
			 const cl_image_format *format, const cl_image_desc *desc,
			 const struct image_place *place);

/* Frees the records of classes. */
void image_class_free(struct zero_copy *proofs);

#endif /* ICD_METHODS_HOST_PTR_IMAGE_CLASS_H */
