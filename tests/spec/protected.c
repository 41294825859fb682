/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that is protected by TrustZone Media Protection, of the heap on the command line. */
#include "dma_buf.h"
#include "kernels.h"

static const cl_import_properties_arm type_protected[] = {
	CL_IMPORT_TYPE_ARM, CL_IMPORT_TYPE_DMA_BUF_ARM, CL_IMPORT_TYPE_PROTECTED_ARM, CL_TRUE, 0
};

static cl_mem import_protected(cl_mem_flags flags)
{
	int fd = dma_buf_get_protected(spec.page);

	return spec_import(flags, type_protected, &fd, spec.page);
}

TEST(protected_heap, "R12-08 Valid values for CL_IMPORT_TYPE_PROTECTED_ARM are: CL_TRUE - the "
		     "memory is imported as protected memory.")
{
	import_protected(CL_MEM_READ_WRITE | CL_MEM_HOST_NO_ACCESS);
}

/* The error of an import; the memory must not stay imported. */
static cl_int protected_refused(cl_mem_flags flags)
{
	int fd = dma_buf_get_protected(spec.page);

	return spec_import_error(flags, type_protected, &fd, spec.page);
}

TEST(protected_heap_with_host_write,
     "R12-09 When CL_IMPORT_TYPE_PROTECTED_ARM is set to CL_TRUE, the "
     "following restrictions apply: CL_MEM_HOST_NO_ACCESS is the only accepted host access flag, "
     "all others are rejected.")
{
	protected_refused(CL_MEM_READ_WRITE | CL_MEM_HOST_WRITE_ONLY);
}

TEST(protected_heap_with_host_read,
     "R12-21 CL_INVALID_OPERATION if a host memory flag other than "
     "CL_MEM_HOST_NO_ACCESS is used when CL_IMPORT_TYPE_PROTECTED_ARM is set to CL_TRUE.")
{
	EXPECT_EQ(protected_refused(CL_MEM_READ_WRITE | CL_MEM_HOST_READ_ONLY),
		  CL_INVALID_OPERATION);
}

TEST(protected_heap_without_host_flags,
     "R12-10 If host access flags are omitted, then this is assumed.")
{
	cl_mem mem = import_protected(CL_MEM_READ_WRITE);
	unsigned char bytes[4];

	EXPECT_EQ(clEnqueueReadBuffer(spec.queue, mem, CL_TRUE, 0, sizeof(bytes), bytes, 0, NULL,
				      NULL),
		  CL_INVALID_OPERATION);
	EXPECT_EQ(clEnqueueWriteBuffer(spec.queue, mem, CL_TRUE, 0, sizeof(bytes), bytes, 0, NULL,
				       NULL),
		  CL_INVALID_OPERATION);
}

static void protected_release_queue(void *queue)
{
	clReleaseCommandQueue(queue);
}

static cl_int protected_enqueue_on(cl_command_queue_properties properties)
{
	const size_t one = 1;
	const cl_uint numbers[] = { 4, 1, 1 };
	cl_mem mem = import_protected(CL_MEM_READ_WRITE);
	cl_kernel add = kernels_create("add");
	cl_int error = 1;
	cl_command_queue queue =
		clCreateCommandQueue(spec.context, spec.device, properties, &error);

	EXPECT_EQ(error, CL_SUCCESS);
	spec_undo_later(protected_release_queue, queue);
	EXPECT_EQ(clSetKernelArg(add, 0, sizeof(mem), &mem), CL_SUCCESS);
	for (cl_uint i = 0; i < 3; i++)
		EXPECT_EQ(clSetKernelArg(add, i + 1, sizeof(numbers[i]), &numbers[i]), CL_SUCCESS);
	error = clEnqueueNDRangeKernel(queue, add, 1, NULL, &one, &one, 0, NULL, NULL);
	EXPECT_EQ(clFinish(queue), CL_SUCCESS);
	return error;
}

TEST(protected_in_a_kernel, "R12-28 If the property's value is set to CL_TRUE, then the memory is "
			    "imported as protected memory.")
{
	EXPECT_EQ(protected_enqueue_on(0), CL_SUCCESS);
}

TEST(protected_on_a_queue_with_profiling,
     "R12-22 CL_INVALID_OPERATION if a command that makes use of a protected memory object is "
     "enqueued to a command queue that has CL_QUEUE_PROFILING_ENABLE set.")
{
	EXPECT_EQ(protected_enqueue_on(CL_QUEUE_PROFILING_ENABLE), CL_INVALID_OPERATION);
}
