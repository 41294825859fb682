/* SPDX-License-Identifier: Apache-2.0 */
#include "command_list.h"

struct khr_functions khr;

#define ADDRESS(f) ((__typeof__(&(f)))cl.clGetExtensionFunctionAddressForPlatform(fix.platform, #f))

void khr_get_functions(void)
{
	khr.create = ADDRESS(clCreateCommandBufferKHR);
	khr.finalize = ADDRESS(clFinalizeCommandBufferKHR);
	khr.release = ADDRESS(clReleaseCommandBufferKHR);
	khr.retain = ADDRESS(clRetainCommandBufferKHR);
	khr.remap = ADDRESS(clRemapCommandBufferKHR);
	khr.enqueue = ADDRESS(clEnqueueCommandBufferKHR);
	khr.kernel = ADDRESS(clCommandNDRangeKernelKHR);
	khr.copy = ADDRESS(clCommandCopyBufferKHR);
	khr.rect = ADDRESS(clCommandCopyBufferRectKHR);
	khr.to_image = ADDRESS(clCommandCopyBufferToImageKHR);
	khr.image = ADDRESS(clCommandCopyImageKHR);
	khr.from_image = ADDRESS(clCommandCopyImageToBufferKHR);
	khr.fill = ADDRESS(clCommandFillBufferKHR);
	khr.fill_image = ADDRESS(clCommandFillImageKHR);
	khr.update = ADDRESS(clUpdateMutableCommandsKHR);
}

cl_command_buffer_khr list_create(void)
{
	cl_int err = 1;
	cl_command_buffer_khr list = khr.create(1, &fix.queue, NULL, &err);

	EXPECT_EQ(err, CL_SUCCESS);
	return list;
}
