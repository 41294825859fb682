/* SPDX-License-Identifier: Apache-2.0 */
#include "guest_cl.h"

#include "harness.h"

#include <CL/cl_ext.h>
#include <stdint.h>

typedef cl_mem (*import_memory)(cl_context, cl_mem_flags, const cl_import_properties_arm *, void *,
				size_t, cl_int *);

enum { LOCAL_1D = 64, LOCAL_2D = 16 };

static const char *source =
	"__kernel void transform(__global const uchar *from, __global uchar *to)\n"
	"{\n"
	"	size_t i = get_global_id(0);\n"
	"	to[i] = from[i] ^ 0x5a;\n"
	"}\n"
	"__kernel void from_image(__read_only image2d_t from, __global uchar4 *to)\n"
	"{\n"
	"	int2 at = (int2)(get_global_id(0), get_global_id(1));\n"
	"	uint4 pixel = read_imageui(from, at);\n"
	"	to[at.y * get_global_size(0) + at.x] = convert_uchar4(pixel ^ 0x5a);\n"
	"}\n"
	"__kernel void to_image(__global const uchar4 *from, __write_only image2d_t to)\n"
	"{\n"
	"	int2 at = (int2)(get_global_id(0), get_global_id(1));\n"
	"	uchar4 pixel = from[at.y * get_global_size(0) + at.x];\n"
	"	write_imageui(to, at, convert_uint4(pixel ^ (uchar)0x5a));\n"
	"}\n";

typedef __typeof__(&clImportMemoryARM) import_memory_fn;

static struct guest_cl cl;
static import_memory_fn import;

static void guest_cl_open_session(void)
{
	cl_int err;

	EXPECT_EQ(clGetPlatformIDs(1, &cl.platform, NULL), CL_SUCCESS);
	EXPECT_EQ(clGetDeviceIDs(cl.platform, CL_DEVICE_TYPE_ALL, 1, &cl.device, NULL), CL_SUCCESS);
	cl.context = clCreateContext(NULL, 1, &cl.device, NULL, NULL, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	cl.queue = clCreateCommandQueueWithProperties(cl.context, cl.device, NULL, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	cl.program = clCreateProgramWithSource(cl.context, 1, &source, NULL, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	EXPECT_EQ(clBuildProgram(cl.program, 1, &cl.device, "-cl-std=CL1.2", NULL, NULL),
		  CL_SUCCESS);
	import = (import_memory_fn)(uintptr_t)clGetExtensionFunctionAddressForPlatform(
		cl.platform, "clImportMemoryARM");
	if (!import)
		printf("# no clImportMemoryARM: is OPENCL_LAYERS set?\n");
	EXPECT(import);
}

static void guest_cl_need_session(void)
{
	if (!import)
		guest_cl_open_session();
}

const struct guest_cl *guest_cl_session(void)
{
	guest_cl_need_session();
	return &cl;
}

static const cl_import_properties_arm consistent[] = {
	CL_IMPORT_TYPE_ARM,
	CL_IMPORT_TYPE_DMA_BUF_ARM,
	0,
};
static const cl_import_properties_arm inconsistent[] = {
	CL_IMPORT_TYPE_ARM,
	CL_IMPORT_TYPE_DMA_BUF_ARM,
	CL_IMPORT_DMA_BUF_DATA_CONSISTENCY_WITH_HOST_ARM,
	CL_FALSE,
	0,
};

static cl_mem guest_cl_import_with(int fd, size_t size, cl_mem_flags flags,
				   const cl_import_properties_arm *properties, cl_int *err)
{
	guest_cl_need_session();
	return import(cl.context, flags, properties, &fd, size, err);
}

cl_mem guest_cl_import(int fd, size_t size, cl_mem_flags flags)
{
	cl_int err;
	cl_mem mem = guest_cl_import_with(fd, size, flags, consistent, &err);

	EXPECT_EQ(err, CL_SUCCESS);
	EXPECT(mem);
	return mem;
}

cl_mem guest_cl_import_inconsistent(int fd, size_t size, cl_mem_flags flags)
{
	cl_int err;
	cl_mem mem = guest_cl_import_with(fd, size, flags, inconsistent, &err);

	EXPECT_EQ(err, CL_SUCCESS);
	return mem;
}

cl_int guest_cl_import_error(int fd, size_t size, cl_mem_flags flags)
{
	cl_int err;

	EXPECT(!guest_cl_import_with(fd, size, flags, consistent, &err));
	return err;
}

cl_mem guest_cl_external(int fd, size_t size, cl_mem_flags flags)
{
	const cl_mem_properties dma_buf[] = { CL_EXTERNAL_MEMORY_HANDLE_DMA_BUF_KHR,
					      (cl_mem_properties)fd, 0 };
	cl_int err;
	cl_mem mem;

	guest_cl_need_session();
	mem = clCreateBufferWithProperties(cl.context, dma_buf, flags, size, NULL, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	return mem;
}

static void guest_cl_edge(const char *name, cl_mem mem)
{
	clEnqueueAcquireExternalMemObjectsKHR_fn edge =
		(clEnqueueAcquireExternalMemObjectsKHR_fn)clGetExtensionFunctionAddressForPlatform(
			cl.platform, name);

	EXPECT(edge);
	EXPECT_EQ(edge(cl.queue, 1, &mem, 0, NULL, NULL), CL_SUCCESS);
}

void guest_cl_acquire(cl_mem mem)
{
	guest_cl_edge("clEnqueueAcquireExternalMemObjectsKHR", mem);
}

void guest_cl_release(cl_mem mem)
{
	guest_cl_edge("clEnqueueReleaseExternalMemObjectsKHR", mem);
	EXPECT_EQ(clFinish(cl.queue), CL_SUCCESS);
}

cl_mem guest_cl_native(size_t size, const void *bytes)
{
	cl_int err;
	cl_mem mem;

	guest_cl_need_session();
	mem = clCreateBuffer(cl.context, bytes ? CL_MEM_COPY_HOST_PTR : 0, size,
			     (void *)(uintptr_t)bytes, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	return mem;
}

void guest_cl_native_read(cl_mem native, void *bytes, size_t size)
{
	EXPECT_EQ(clEnqueueReadBuffer(cl.queue, native, CL_TRUE, 0, size, bytes, 0, NULL, NULL),
		  CL_SUCCESS);
}

static cl_event guest_cl_start(const char *name, cl_mem from, cl_mem to, cl_uint dimensions,
			       const size_t *global, const size_t *local)
{
	cl_event event;
	cl_int err;
	cl_kernel kernel = clCreateKernel(cl.program, name, &err);

	EXPECT_EQ(err, CL_SUCCESS);
	EXPECT_EQ(clSetKernelArg(kernel, 0, sizeof(from), &from), CL_SUCCESS);
	EXPECT_EQ(clSetKernelArg(kernel, 1, sizeof(to), &to), CL_SUCCESS);
	EXPECT_EQ(clEnqueueNDRangeKernel(cl.queue, kernel, dimensions, NULL, global, local, 0, NULL,
					 &event),
		  CL_SUCCESS);
	EXPECT_EQ(clReleaseKernel(kernel), CL_SUCCESS);
	EXPECT_EQ(clFlush(cl.queue), CL_SUCCESS);
	return event;
}

static void guest_cl_run(const char *name, cl_mem from, cl_mem to, cl_uint dimensions,
			 const size_t *global, const size_t *local)
{
	guest_cl_transform_end(guest_cl_start(name, from, to, dimensions, global, local));
}

void guest_cl_transform(cl_mem from, cl_mem to, size_t size)
{
	guest_cl_transform_end(guest_cl_transform_begin(from, to, size));
}

cl_event guest_cl_transform_begin(cl_mem from, cl_mem to, size_t size)
{
	const size_t local = LOCAL_1D;

	return guest_cl_start("transform", from, to, 1, &size, &local);
}

int guest_cl_is_complete(cl_event event)
{
	cl_int status;

	EXPECT_EQ(clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status,
				 NULL),
		  CL_SUCCESS);
	return status == CL_COMPLETE;
}

void guest_cl_transform_end(cl_event event)
{
	EXPECT_EQ(clWaitForEvents(1, &event), CL_SUCCESS);
	EXPECT_EQ(clReleaseEvent(event), CL_SUCCESS);
	EXPECT_EQ(clFinish(cl.queue), CL_SUCCESS);
}

static void guest_cl_run_2d(const char *name, cl_mem from, cl_mem to, size_t width, size_t height)
{
	const size_t global[] = { width, height }, local[] = { LOCAL_2D, 1 };

	guest_cl_run(name, from, to, 2, global, local);
}

void guest_cl_transform_from_image(cl_mem image, cl_mem to, size_t width, size_t height)
{
	guest_cl_run_2d("from_image", image, to, width, height);
}

void guest_cl_transform_to_image(cl_mem from, cl_mem image, size_t width, size_t height)
{
	guest_cl_run_2d("to_image", from, image, width, height);
}

cl_mem guest_cl_image(cl_mem buffer, cl_mem_flags flags, size_t width, size_t height, size_t pitch)
{
	const cl_image_format format = { CL_RGBA, CL_UNSIGNED_INT8 };
	const cl_image_desc desc = {
		.image_type = CL_MEM_OBJECT_IMAGE2D,
		.image_width = width,
		.image_height = height,
		.image_row_pitch = pitch,
		.mem_object = buffer,
	};
	cl_int err;
	cl_mem image = clCreateImage(cl.context, flags, &format, &desc, NULL, &err);

	EXPECT_EQ(err, CL_SUCCESS);
	return image;
}

cl_mem guest_cl_sub_buffer(cl_mem buffer, cl_mem_flags flags, size_t origin, size_t size)
{
	const cl_buffer_region region = { origin, size };
	cl_int err;
	cl_mem mem = clCreateSubBuffer(buffer, flags, CL_BUFFER_CREATE_TYPE_REGION, &region, &err);

	EXPECT_EQ(err, CL_SUCCESS);
	return mem;
}

cl_mem_flags guest_cl_flags(cl_mem mem)
{
	cl_mem_flags flags = 0;

	EXPECT_EQ(clGetMemObjectInfo(mem, CL_MEM_FLAGS, sizeof(flags), &flags, NULL), CL_SUCCESS);
	return flags;
}
