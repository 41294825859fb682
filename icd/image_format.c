/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/image_format.h"

#include <stdbool.h>

/* Bytes of a pixel of packed channels, or of one channel; 0 if the type is not known. */
static size_t image_format_channel(cl_channel_type type, bool *is_packed)
{
	*is_packed = false;
	switch (type) {
	case CL_SNORM_INT8:
	case CL_UNORM_INT8:
	case CL_SIGNED_INT8:
	case CL_UNSIGNED_INT8:
		return 1;
	case CL_SNORM_INT16:
	case CL_UNORM_INT16:
	case CL_SIGNED_INT16:
	case CL_UNSIGNED_INT16:
	case CL_HALF_FLOAT:
		return 2;
	case CL_SIGNED_INT32:
	case CL_UNSIGNED_INT32:
	case CL_FLOAT:
		return 4;
	case CL_UNORM_SHORT_565:
	case CL_UNORM_SHORT_555:
		*is_packed = true;
		return 2;
	case CL_UNORM_INT_101010:
	case CL_UNORM_INT_101010_2:
		*is_packed = true;
		return 4;
	}
	return 0;
}

/* Orders with padding (CL_RGx) are left out: drivers do not agree on their size. */
static size_t image_format_channels(cl_channel_order order)
{
	switch (order) {
	case CL_R:
	case CL_A:
	case CL_INTENSITY:
	case CL_LUMINANCE:
	case CL_DEPTH:
		return 1;
	case CL_RG:
	case CL_RA:
		return 2;
	case CL_RGBA:
	case CL_BGRA:
	case CL_ARGB:
	case CL_ABGR:
	case CL_sRGBA:
	case CL_sBGRA:
		return 4;
	}
	return 0;
}

size_t image_format_element(const cl_image_format *format)
{
	bool is_packed;
	size_t size = image_format_channel(format->image_channel_data_type, &is_packed);

	return is_packed ? size : size * image_format_channels(format->image_channel_order);
}
