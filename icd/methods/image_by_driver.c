/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/methods/image_by_driver.h"

#include <stdio.h>
#include <stdlib.h>

#include "icd/error.h"
#include "icd/layer.h"
#include "util/cl_names.h"
#include "util/log.h"

#define IMAGE_FORMATS_SIZE 128 /* of a sentence of LOG_MESSAGE_SIZE */

/* All formats of such images, the caller's to free; NULL: the driver tells none. */
static cl_image_format *image_formats(cl_context context, cl_mem_flags flags,
				      cl_mem_object_type type, cl_uint *count)
{
	cl_image_format *formats = NULL;

	*count = 0;
	if (!next.clGetSupportedImageFormats(context, flags, type, 0, NULL, count) && *count)
		formats = calloc(*count, sizeof(*formats));
	if (!formats ||
	    !next.clGetSupportedImageFormats(context, flags, type, *count, formats, NULL))
		return formats;
	free(formats);
	return NULL;
}

/* " with CL_UNORM_INT8 are CL_R, CL_RGBA": formats with the channel type; "": there are none. */
static void image_formats_describe(const cl_image_format *formats, cl_uint count,
				   cl_channel_type type, char text[IMAGE_FORMATS_SIZE])
{
	size_t used = 0;

	text[0] = '\0';
	for (cl_uint i = 0; i < count && used < IMAGE_FORMATS_SIZE; i++)
		if (formats[i].image_channel_data_type == type)
			used += (size_t)snprintf(
				text + used, IMAGE_FORMATS_SIZE - used, "%s%s", used ? ", " : "",
				cl_channel_order_name(formats[i].image_channel_order));
}

static bool image_formats_have(const cl_image_format *formats, cl_uint count,
			       const cl_image_format *format)
{
	for (cl_uint i = 0; i < count; i++)
		if (formats[i].image_channel_order == format->image_channel_order &&
		    formats[i].image_channel_data_type == format->image_channel_data_type)
			return true;
	return false;
}

/* The driver has @formats, and not the request's. */
static void image_refuse_format(const cl_image_format *format, const cl_image_format *formats,
				cl_uint count, cl_int err)
{
	const char *type = cl_channel_type_name(format->image_channel_data_type);
	char instead[IMAGE_FORMATS_SIZE];

	image_formats_describe(formats, count, format->image_channel_data_type, instead);
	log_error("the driver has no images of %s/%s (%s); it has %s with %s",
		  cl_channel_order_name(format->image_channel_order), type, cl_error_name(err),
		  *instead ? instead : "none", type);
}

/* Only now is the driver asked, as not every driver says with its error that the format is the fault (PoCL 3.1). */
static void image_refused(const struct image_request *r, cl_mem_flags flags, cl_int err)
{
	cl_uint count = 0;
	cl_image_format *formats =
		r->format ? image_formats(r->context, flags & ~(cl_mem_flags)CL_MEM_USE_HOST_PTR,
					  r->desc->image_type, &count)
			  : NULL;

	if (formats && !image_formats_have(formats, count, r->format))
		image_refuse_format(r->format, formats, count, err);
	else
		error_of_driver(r->function, err);
	free(formats);
}

cl_mem image_by_driver(const struct image_request *r, cl_mem_flags flags, const cl_image_desc *desc,
		       void *host_ptr, cl_int *err)
{
	cl_mem image =
		r->with_properties && next.clCreateImageWithProperties
			? next.clCreateImageWithProperties(r->context, r->properties, flags,
							   r->format, desc, host_ptr, err)
			: next.clCreateImage(r->context, flags, r->format, desc, host_ptr, err);

	if (!is_created(image, *err))
		image_refused(r, flags, *err);
	return image;
}
