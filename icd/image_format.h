/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes of image formats, from the tables of the OpenCL specification. */
#ifndef ICD_IMAGE_FORMAT_H
#define ICD_IMAGE_FORMAT_H

#include <stddef.h>

#include "icd/cl_compat.h"

/* Bytes of a pixel, a power of two; 0 for a format that is not in the tables. */
size_t image_format_element(const cl_image_format *format);

#endif /* ICD_IMAGE_FORMAT_H */
