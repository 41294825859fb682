/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Classes of 2D images: by kind of memory, flags, format, the magnitudes of width, height and
 * pitch, and the alignment of the address.  A proof for an image holds for smaller images of the
 * class; if an image is copied, larger images of the class are taken to be copied.
 */
#ifndef ICD_METHODS_HOST_PTR_IMAGE_CLASS_H
#define ICD_METHODS_HOST_PTR_IMAGE_CLASS_H

#include "icd/methods/host_ptr/class.h"

/**
 * image_class_prove - is an image of @format and @desc over memory at @addr zero copy?
 *
 * As buffer_class_prove().  Returns CL_SUCCESS or an error, logged.
 */
cl_int image_class_prove(struct zero_copy *proofs, unsigned int kinds, cl_mem_flags flags,
			 const cl_image_format *format, const cl_image_desc *desc,
			 const void *addr);

/* Frees zero_copy.images. */
void image_class_free(struct publish_list *images);

#endif /* ICD_METHODS_HOST_PTR_IMAGE_CLASS_H */
