/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/selftest/image_session.h"

#include "icd/layer.h"

static const char image_session_source_2d[] =
	"const sampler_t s = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_NONE | CLK_FILTER_NEAREST;\n"
	"__kernel void climport_selftest_image(__write_only image2d_t a, __read_only image2d_t b,\n"
	"	int x0, int y0, int x1, int y1, int x2, int y2, uint value)\n"
	"{\n"
	"	WRITE(a, (int2)(x1, y1), READ(b, s, (int2)(x0, y0)));\n"
	"	barrier(CLK_GLOBAL_MEM_FENCE);\n"
	"	WRITE(a, (int2)(x2, y2), READ(b, s, (int2)(x1, y1)));\n"
	"}\n"
	"__kernel void climport_selftest_images(__write_only image2d_t a, __write_only image2d_t "
	"b,\n"
	"	int x0, int y0, int x1, int y1, int x2, int y2, uint value)\n"
	"{\n"
	"	WRITE(a, (int2)(x1, y1), VALUE);\n"
	"	WRITE(b, (int2)(x2, y2), VALUE);\n"
	"}\n";

/* The same kernels for 1D images, whose pixels have the coordinate y 0. */
static const char image_session_source_1d[] =
	"__kernel void climport_selftest_image_1d(__write_only image1d_buffer_t a,\n"
	"	__read_only image1d_buffer_t b,\n"
	"	int x0, int y0, int x1, int y1, int x2, int y2, uint value)\n"
	"{\n"
	"	WRITE(a, x1, READ(b, x0));\n"
	"	barrier(CLK_GLOBAL_MEM_FENCE);\n"
	"	WRITE(a, x2, READ(b, x1));\n"
	"}\n"
	"__kernel void climport_selftest_images_1d(__write_only image1d_buffer_t a,\n"
	"	__write_only image1d_buffer_t b,\n"
	"	int x0, int y0, int x1, int y1, int x2, int y2, uint value)\n"
	"{\n"
	"	WRITE(a, x1, VALUE);\n"
	"	WRITE(b, x2, VALUE);\n"
	"}\n";

bool image_session_is_write_only(const struct image_session *s)
{
	return s->image->flags & CL_MEM_WRITE_ONLY;
}

static const char *image_session_build_options(const cl_image_format *format)
{
	switch (format->image_channel_data_type) {
	case CL_SIGNED_INT8:
	case CL_SIGNED_INT16:
	case CL_SIGNED_INT32:
		return "-DREAD=read_imagei -DWRITE=write_imagei -DVALUE=(int4)(value)";
	case CL_UNSIGNED_INT8:
	case CL_UNSIGNED_INT16:
	case CL_UNSIGNED_INT32:
		return "-DREAD=read_imageui -DWRITE=write_imageui -DVALUE=(uint4)(value)";
	default:
		return "-DREAD=read_imagef -DWRITE=write_imagef -DVALUE=(float4)(value/255.0f)";
	}
}

/* Kernels write neither sRGB nor depths.  The formats here have an equal layout. */
static cl_image_format image_session_writable_format(cl_image_format format)
{
	switch (format.image_channel_order) {
	case CL_sRGBA:
		format.image_channel_order = CL_RGBA;
		break;
	case CL_sBGRA:
		format.image_channel_order = CL_BGRA;
		break;
	case CL_DEPTH:
		format.image_channel_order = CL_R;
		break;
	}
	return format;
}

static void CL_CALLBACK image_session_unused(cl_mem mem, void *region)
{
	(void)mem;
	import_put(region);
}

/* The region is held until the driver has destroyed @root, the object over the memory. */
static cl_mem image_session_watch(struct image_session *s, cl_mem root, cl_int *err)
{
	if (!root)
		return NULL;
	import_hold(s->region);
	*err = next.clSetMemObjectDestructorCallback(root, image_session_unused, s->region);
	if (!*err)
		return root;
	import_put(s->region);
	next.clReleaseMemObject(root);
	return NULL;
}

static cl_mem image_session_create_part(struct image_session *s, cl_mem buffer, cl_mem_flags flags,
					cl_int *err)
{
	const cl_buffer_region part = { s->image->origin, s->region->size - s->image->origin };

	return created_or_null(
		next.clCreateSubBuffer(buffer, flags, CL_BUFFER_CREATE_TYPE_REGION, &part, err),
		err);
}

/* A buffer over the memory. */
static cl_mem image_session_create_root(struct image_session *s, cl_mem_flags flags, cl_int *err)
{
	cl_mem buffer;

	if (s->image->ops)
		return s->image->ops->create_buffer(s->base.context, flags, s->region, err);
	buffer = created_or_null(next.clCreateBuffer(s->base.context, flags | CL_MEM_USE_HOST_PTR,
						     s->region->size, s->region->addr, err),
				 err);
	return image_session_watch(s, buffer, err);
}

/* The buffer, or the sub-buffer, that an image is made from.  @root: set to a reference. */
static cl_mem image_session_create_parent(struct image_session *s, cl_mem_flags flags, cl_mem *root,
					  cl_int *err)
{
	cl_mem buffer = image_session_create_root(s, flags, err), part;

	if (!buffer)
		return NULL;
	next.clRetainMemObject(buffer);
	*root = buffer;
	if (s->image->from == IMAGE_OF_BUFFER)
		return buffer;
	part = image_session_create_part(s, buffer, flags, err);
	next.clReleaseMemObject(buffer);
	return part;
}

static cl_image_desc image_session_describe(const struct selftest_image *image)
{
	const bool is_2d = image->type == CL_MEM_OBJECT_IMAGE2D;
	const cl_image_desc desc = {
		.image_type = image->type,
		.image_width = image->width,
		.image_height = is_2d ? image->height : 0,
		.image_row_pitch = is_2d ? image->pitch : 0,
	};

	return desc;
}

static cl_mem image_session_create(struct image_session *s, cl_mem_flags flags, cl_mem *root,
				   cl_int *err)
{
	const cl_image_format format = image_session_writable_format(s->image->format);
	cl_image_desc desc = image_session_describe(s->image);
	cl_mem image;

	if (s->image->from == IMAGE_OF_MEMORY) {
		image = next.clCreateImage(s->base.context, flags | CL_MEM_USE_HOST_PTR, &format,
					   &desc, s->region->addr, err);
		return image_session_watch(s, created_or_null(image, err), err);
	}
	desc.mem_object = image_session_create_parent(s, flags, root, err);
	if (!desc.mem_object)
		return NULL;
	image = created_or_null(
		next.clCreateImage(s->base.context, flags, &format, &desc, NULL, err), err);
	next.clReleaseMemObject(desc.mem_object);
	return image;
}

static const char *image_session_kernel(const struct image_session *s)
{
	static const char *const names[][2] = {
		{ "climport_selftest_image_1d", "climport_selftest_images_1d" },
		{ "climport_selftest_image", "climport_selftest_images" },
	};

	return names[s->image->type == CL_MEM_OBJECT_IMAGE2D][image_session_is_write_only(s)];
}

static cl_int image_session_build(struct image_session *s)
{
	const char *const source = s->image->type == CL_MEM_OBJECT_IMAGE2D
					   ? image_session_source_2d
					   : image_session_source_1d;
	cl_int err = session_build_source(&s->base, source,
					  image_session_build_options(&s->image->format));

	if (!err)
		s->kernel = created_or_null(
			next.clCreateKernel(s->base.program, image_session_kernel(s), &err), &err);
	return err;
}

cl_int image_session_begin(struct image_session *s, const cl_device_id *devices,
			   cl_uint num_devices)
{
	cl_mem_flags a = s->image->flags, b = a;
	cl_int err = session_create_context(&s->base, devices, num_devices);

	if (a & CL_MEM_READ_ONLY)
		a = (a & ~(cl_mem_flags)CL_MEM_READ_ONLY) | CL_MEM_READ_WRITE;
	if (!err)
		err = image_session_build(s);
	if (!err)
		s->a = image_session_create(s, a, &s->roots[0], &err);
	if (!err)
		s->b = image_session_create(s, b, &s->roots[1], &err);
	return err;
}

void image_session_end(struct image_session *s)
{
	if (s->b)
		next.clReleaseMemObject(s->b);
	if (s->a)
		next.clReleaseMemObject(s->a);
	for (size_t i = 0; i < 2; i++)
		if (s->roots[i])
			next.clReleaseMemObject(s->roots[i]);
	if (s->kernel)
		next.clReleaseKernel(s->kernel);
	session_end(&s->base);
}

static cl_int image_session_enqueue_edge(struct image_session *s, bool begins)
{
	return s->image->ops ? s->image->ops->edge(s->base.queue, begins, s->roots) : CL_SUCCESS;
}

cl_int image_session_launch(struct image_session *s, const cl_int at[IMAGE_PIXELS][2],
			    cl_uint value)
{
	const size_t one = 1;
	cl_int err = next.clSetKernelArg(s->kernel, 0, sizeof(s->a), &s->a);

	if (!err)
		err = next.clSetKernelArg(s->kernel, 1, sizeof(s->b), &s->b);
	for (cl_uint i = 0; i < 2 * IMAGE_PIXELS && !err; i++)
		err = next.clSetKernelArg(s->kernel, 2 + i, sizeof(cl_int), &at[i / 2][i % 2]);
	if (!err)
		err = next.clSetKernelArg(s->kernel, 2 + 2 * IMAGE_PIXELS, sizeof(value), &value);
	if (!err)
		err = image_session_enqueue_edge(s, true);
	if (!err)
		err = next.clEnqueueNDRangeKernel(s->base.queue, s->kernel, 1, NULL, &one, &one, 0,
						  NULL, NULL);
	if (!err)
		err = image_session_enqueue_edge(s, false);
	return err ? err : next.clFinish(s->base.queue);
}
