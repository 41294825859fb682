/* SPDX-License-Identifier: Apache-2.0 */
/* Images, samplers, and objects of other interfaces, which are plain buffers in the stub. */
#include "internal.h"

#include <signal.h>

static const cl_image_format formats[] = {
	{ CL_R, CL_UNORM_INT8 },	{ CL_RG, CL_UNORM_INT8 },    { CL_RGBA, CL_UNORM_INT8 },
	{ CL_BGRA, CL_UNORM_INT8 },	{ CL_R, CL_UNSIGNED_INT8 },  { CL_RGBA, CL_UNSIGNED_INT8 },
	{ CL_R, CL_UNSIGNED_INT32 },	{ CL_R, CL_UNSIGNED_INT16 }, { CL_R, CL_UNORM_INT16 },
	{ CL_RGBA, CL_UNSIGNED_INT32 }, { CL_RGBA, CL_FLOAT },	     { CL_R, CL_FLOAT },
	{ CL_sRGBA, CL_UNORM_INT8 },
};
#define NUM_FORMATS (sizeof(formats) / sizeof(*formats))

/* Bytes of a pixel, or 0 for an unlisted format. */
static size_t format_size(const cl_image_format *f)
{
	size_t channels = f->image_channel_order == CL_R    ? 1
			  : f->image_channel_order == CL_RG ? 2
							    : 4;
	size_t i = 0;

	while (i < NUM_FORMATS && memcmp(f, &formats[i], sizeof(*f)))
		i++;
	if (i == NUM_FORMATS)
		return 0;
	switch (f->image_channel_data_type) {
	case CL_UNORM_INT8:
	case CL_UNSIGNED_INT8:
		return channels;
	case CL_UNORM_INT16:
	case CL_UNSIGNED_INT16:
		return 2 * channels;
	}
	return 4 * channels;
}

/* Sets the image's geometry.  Rows and slices are tightly packed if no pitch is given. */
static cl_int image_set_geometry(struct mem *image, const cl_image_format *format,
				 const cl_image_desc *desc)
{
	size_t rows = 1, least;

	image->element = format ? format_size(format) : 0;
	if (!image->element)
		return format ? CL_IMAGE_FORMAT_NOT_SUPPORTED : CL_INVALID_IMAGE_FORMAT_DESCRIPTOR;
	if (!desc || !desc->image_width || desc->num_mip_levels || desc->num_samples)
		return CL_INVALID_IMAGE_DESCRIPTOR;
	image->type = desc->image_type;
	image->format = *format;
	image->width = desc->image_width;
	switch (desc->image_type) {
	case CL_MEM_OBJECT_IMAGE3D:
		image->depth = desc->image_depth;
		/* fallthrough */
	case CL_MEM_OBJECT_IMAGE2D:
		rows = image->height = desc->image_height;
		/* fallthrough */
	case CL_MEM_OBJECT_IMAGE1D:
	case CL_MEM_OBJECT_IMAGE1D_BUFFER:
		break;
	default:
		return CL_INVALID_IMAGE_DESCRIPTOR;
	}
	if (!rows)
		return CL_INVALID_IMAGE_DESCRIPTOR;
	least = image->width * image->element;
	image->row_pitch = desc->image_row_pitch ? desc->image_row_pitch : least;
	image->slice_pitch = desc->image_slice_pitch ? desc->image_slice_pitch
						     : image->row_pitch * rows;
	if ((image->row_pitch < least && !stub_get(STUB_ANY_PITCH)) ||
	    image->row_pitch % image->element)
		return CL_INVALID_IMAGE_DESCRIPTOR;
	image->size = image->slice_pitch * (image->depth ? image->depth : 1);
	image->stride = image->row_pitch;
	return CL_SUCCESS;
}

/* An image of an image must have the parent's geometry, and the parent's format but for sRGB. */
static cl_int view_check(const struct mem *image, const struct mem *parent)
{
	const cl_channel_order order = image->format.image_channel_order,
			       seen = parent->format.image_channel_order;

	if (image->width != parent->width || image->height != parent->height ||
	    image->row_pitch != parent->row_pitch)
		return CL_INVALID_IMAGE_DESCRIPTOR;
	if (image->format.image_channel_data_type != parent->format.image_channel_data_type)
		return CL_INVALID_IMAGE_FORMAT_DESCRIPTOR;
	if (order != seen && !(order == CL_RGBA && seen == CL_sRGBA) &&
	    !(order == CL_sRGBA && seen == CL_RGBA))
		return CL_INVALID_IMAGE_FORMAT_DESCRIPTOR;
	return CL_SUCCESS;
}

/* Checks whether a buffer may be seen as the image: as PoCL does, unless an option is set. */
static cl_int parent_check(const struct mem *image, const struct mem *parent)
{
	if (image->type == CL_MEM_OBJECT_IMAGE1D_BUFFER) {
		if (parent->type != CL_MEM_OBJECT_BUFFER)
			return CL_INVALID_IMAGE_DESCRIPTOR;
		return parent->parent && !stub_get(STUB_IMAGE1D_OF_PART) ? CL_INVALID_MEM_OBJECT
									 : CL_SUCCESS;
	}
	if (image->type != CL_MEM_OBJECT_IMAGE2D)
		return CL_INVALID_IMAGE_DESCRIPTOR;
	if (!stub_get(STUB_IMAGE2D_FROM_BUFFER))
		return CL_INVALID_OPERATION;
	if (parent->type == CL_MEM_OBJECT_IMAGE2D)
		return view_check(image, parent);
	return parent->type == CL_MEM_OBJECT_BUFFER ? CL_SUCCESS : CL_INVALID_IMAGE_DESCRIPTOR;
}

/* Checks an image's flags against its parent's, as the specification requires. */
static cl_int parent_flags_check(cl_mem_flags image, cl_mem_flags parent)
{
	const cl_mem_flags reads = CL_MEM_READ_WRITE | CL_MEM_READ_ONLY,
			   writes = CL_MEM_READ_WRITE | CL_MEM_WRITE_ONLY;

	if ((parent & CL_MEM_WRITE_ONLY && image & reads) ||
	    (parent & CL_MEM_READ_ONLY && image & writes) ||
	    (parent & (CL_MEM_HOST_WRITE_ONLY | CL_MEM_HOST_NO_ACCESS) &&
	     image & CL_MEM_HOST_READ_ONLY) ||
	    (parent & (CL_MEM_HOST_READ_ONLY | CL_MEM_HOST_NO_ACCESS) &&
	     image & CL_MEM_HOST_WRITE_ONLY))
		return CL_INVALID_VALUE;
	return image & HOST_PTR ? CL_INVALID_VALUE : CL_SUCCESS;
}

static cl_mem_flags stub_image_inherit_flags(cl_mem_flags image, cl_mem_flags parent)
{
	if (!(image & ACCESS))
		image |= parent & ACCESS;
	if (!(image & HOST_ACCESS))
		image |= parent & HOST_ACCESS;
	return image | (parent & CL_MEM_USE_HOST_PTR);
}

/* The first byte of an image that is made from a buffer, with the driver's bad habits. */
static unsigned char *image_find_data(struct mem *parent)
{
	const uintptr_t align = (uintptr_t)stub_get(STUB_IMAGES_ALIGN);
	unsigned char *data = stub_get(STUB_IMAGES_AT_ROOT) ? mem_root(parent)->data : parent->data;

	return data - (uintptr_t)data % align;
}

static cl_int image_from_parent(struct mem *image, struct context *context, cl_mem handle,
				const void *host_ptr)
{
	struct mem *parent = object_get(handle, STUB_MEM);
	cl_int err = parent ? parent_check(image, parent) : CL_INVALID_MEM_OBJECT;

	if (!err && parent->context != context)
		err = CL_INVALID_CONTEXT;
	if (!err && !stub_get(STUB_ANY_POINTER))
		err = host_ptr ? CL_INVALID_HOST_PTR
			       : parent_flags_check(image->flags, parent->flags);
	if (err)
		return err;
	if (image->size > parent->size)
		return CL_INVALID_IMAGE_DESCRIPTOR;
	object_retain(context);
	object_retain(parent);
	image->context = context;
	image->parent = parent;
	image->data = image_find_data(parent);
	if (stub_get(STUB_IMAGES_PACKED))
		image->stride = image->width * image->element;
	image->host_ptr = parent->host_ptr;
	image->flags = stub_image_inherit_flags(image->flags, parent->flags);
	return CL_SUCCESS;
}

static bool is_copied_image(const struct mem *image, const void *host_ptr)
{
	const size_t above = (size_t)stub_get(STUB_COPYING_IMAGES_ABOVE),
		     row = image->element * (size_t)stub_get(STUB_COPYING_IMAGES_ROWS);

	return stub_get(STUB_COPYING_IMAGES) || (above && image->height > above) ||
	       image->row_pitch % row ||
	       (stub_get(STUB_COPYING_IMAGES_TIGHT) &&
		image->row_pitch == image->width * image->element) ||
	       (uintptr_t)host_ptr % (size_t)stub_get(STUB_COPYING_IMAGES_ALIGN);
}

static cl_int stub_image_fill(struct mem *image, struct context *context, cl_mem_flags flags,
			      const cl_image_format *format, const cl_image_desc *desc,
			      void *host_ptr)
{
	cl_int err = image_set_geometry(image, format, desc);
	bool copying;

	if (!err && stub_get(STUB_NO_IMAGES))
		err = CL_INVALID_OPERATION;
	if (!err && !host_ptr && desc->image_slice_pitch)
		err = CL_INVALID_IMAGE_DESCRIPTOR;
	if (!err && !(desc->mem_object && flags & HOST_PTR && !host_ptr))
		err = mem_check_flags(flags, host_ptr);
	if (err)
		return err;
	image->flags = flags;
	if (desc->mem_object)
		return image_from_parent(image, context, desc->mem_object, host_ptr);
	if (image->type == CL_MEM_OBJECT_IMAGE1D_BUFFER)
		return CL_INVALID_IMAGE_DESCRIPTOR;
	copying = is_copied_image(image, host_ptr) || context_option(context, STUB_COPYING_MAP);
	mem_back(image, context, flags, host_ptr, copying);
	return CL_SUCCESS;
}

/* A driver that does not survive images of host memory. */
static void image_end(const struct mem *image)
{
	const long of = image->parent ? image->parent->parent ? 4 : 2 : 1;

	if (!image->host_ptr || !(stub_get(STUB_IMAGES_END_OF) & of))
		return;
	if (stub_get(STUB_IMAGES_END) == SIGABRT)
		abort(); /* also where the thread blocks the signal */
	if (stub_get(STUB_IMAGES_END))
		raise((int)stub_get(STUB_IMAGES_END));
}

static cl_mem stub_image_create(cl_context handle, cl_mem_flags flags,
				const cl_image_format *format, const cl_image_desc *desc,
				void *host_ptr, const cl_mem_properties *properties,
				cl_int *errcode_ret)
{
	struct context *context = object_get(handle, STUB_CONTEXT);
	struct mem *image;
	cl_int err;

	if (!context)
		return creation_failed(errcode_ret, CL_INVALID_CONTEXT);
	image = object_create(STUB_MEM);
	err = stub_image_fill(image, context, flags, format, desc, host_ptr);
	if (err) {
		object_destroy(image);
		return creation_failed(errcode_ret, err);
	}
	image_end(image);
	mem_keep_properties(image, properties);
	if (errcode_ret)
		*errcode_ret = CL_SUCCESS;
	return (cl_mem)image;
}

cl_mem CL_API_CALL stub_clCreateImage(cl_context handle, cl_mem_flags flags,
				      const cl_image_format *format, const cl_image_desc *desc,
				      void *host_ptr, cl_int *errcode_ret)
{
	cl_int err = CALL(clCreateImage, U(handle), U(flags), U(format), U(desc), U(host_ptr),
			  U(errcode_ret), U(desc ? desc->mem_object : NULL));

	if (err)
		return creation_failed(errcode_ret, err);
	return stub_image_create(handle, flags, format, desc, host_ptr, NULL, errcode_ret);
}

cl_mem CL_API_CALL stub_clCreateImageWithProperties(cl_context handle,
						    const cl_mem_properties *properties,
						    cl_mem_flags flags,
						    const cl_image_format *format,
						    const cl_image_desc *desc, void *host_ptr,
						    cl_int *errcode_ret)
{
	cl_int err = CALL(clCreateImageWithProperties, U(handle), U(properties), U(flags),
			  U(format), U(desc), U(host_ptr), U(errcode_ret));

	if (!err && properties && properties[0])
		err = CL_INVALID_PROPERTY;
	if (err)
		return creation_failed(errcode_ret, err);
	return stub_image_create(handle, flags, format, desc, host_ptr, properties, errcode_ret);
}

cl_mem CL_API_CALL stub_clCreateImage2D(cl_context handle, cl_mem_flags flags,
					const cl_image_format *format, size_t width, size_t height,
					size_t pitch, void *host_ptr, cl_int *errcode_ret)
{
	cl_image_desc desc = { .image_type = CL_MEM_OBJECT_IMAGE2D,
			       .image_width = width,
			       .image_height = height,
			       .image_row_pitch = pitch };
	cl_int err = CALL(clCreateImage2D, U(handle), U(flags), U(format), U(width), U(height),
			  U(pitch), U(host_ptr));

	if (err)
		return creation_failed(errcode_ret, err);
	return stub_image_create(handle, flags, format, &desc, host_ptr, NULL, errcode_ret);
}

cl_mem CL_API_CALL stub_clCreateImage3D(cl_context handle, cl_mem_flags flags,
					const cl_image_format *format, size_t width, size_t height,
					size_t depth, size_t row_pitch, size_t slice_pitch,
					void *host_ptr, cl_int *errcode_ret)
{
	cl_image_desc desc = { .image_type = CL_MEM_OBJECT_IMAGE3D,
			       .image_width = width,
			       .image_height = height,
			       .image_depth = depth,
			       .image_row_pitch = row_pitch,
			       .image_slice_pitch = slice_pitch };
	cl_int err = CALL(clCreateImage3D, U(handle), U(flags), U(format), U(width), U(height),
			  U(depth), U(row_pitch), U(slice_pitch), U(host_ptr));

	if (err)
		return creation_failed(errcode_ret, err);
	return stub_image_create(handle, flags, format, &desc, host_ptr, NULL, errcode_ret);
}

cl_int CL_API_CALL stub_clGetSupportedImageFormats(cl_context handle, cl_mem_flags flags,
						   cl_mem_object_type type, cl_uint num,
						   cl_image_format *out, cl_uint *num_ret)
{
	cl_int err = CALL(clGetSupportedImageFormats, U(handle), U(flags), U(type), U(num), U(out),
			  U(num_ret));

	if (err)
		return err;
	if (!object_get(handle, STUB_CONTEXT))
		return CL_INVALID_CONTEXT;
	for (cl_uint i = 0; out && i < num && i < NUM_FORMATS; i++)
		out[i] = formats[i];
	if (num_ret)
		*num_ret = NUM_FORMATS;
	return CL_SUCCESS;
}

cl_int CL_API_CALL stub_clGetImageInfo(cl_mem handle, cl_image_info name, size_t room, void *out,
				       size_t *size_ret)
{
	struct mem *image = object_get(handle, STUB_MEM);
	cl_int err = CALL(clGetImageInfo, U(handle), U(name), U(room), U(out), U(size_ret));
	size_t zero = 0;

	if (err)
		return err;
	if (!image || !mem_is_image(image))
		return CL_INVALID_MEM_OBJECT;
	switch (name) {
	case CL_IMAGE_FORMAT:
		return info_put(&image->format, sizeof(image->format), room, out, size_ret);
	case CL_IMAGE_ELEMENT_SIZE:
		return info_put(&image->element, sizeof(size_t), room, out, size_ret);
	case CL_IMAGE_ROW_PITCH:
		return info_put(&image->row_pitch, sizeof(size_t), room, out, size_ret);
	case CL_IMAGE_SLICE_PITCH:
		return info_put(image->depth ? &image->slice_pitch : &zero, sizeof(size_t), room,
				out, size_ret);
	case CL_IMAGE_WIDTH:
		return info_put(&image->width, sizeof(size_t), room, out, size_ret);
	case CL_IMAGE_HEIGHT:
		return info_put(&image->height, sizeof(size_t), room, out, size_ret);
	case CL_IMAGE_DEPTH:
		return info_put(&image->depth, sizeof(size_t), room, out, size_ret);
	case CL_IMAGE_ARRAY_SIZE:
		return info_put(&zero, sizeof(size_t), room, out, size_ret);
	case CL_IMAGE_BUFFER:
		return info_put(&image->parent, sizeof(void *), room, out, size_ret);
	case CL_IMAGE_NUM_MIP_LEVELS:
	case CL_IMAGE_NUM_SAMPLES:
		return info_put(&zero, sizeof(cl_uint), room, out, size_ret);
	}
	return CL_INVALID_VALUE;
}
