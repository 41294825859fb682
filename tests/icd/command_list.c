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

cl_int list_update(cl_command_buffer_khr list, cl_mutable_command_khr command, const cl_mem *mem)
{
	const cl_mutable_dispatch_arg_khr arg = { 0, sizeof(*mem), mem };
	const cl_mutable_dispatch_config_khr chained = {
		.type = CL_STRUCTURE_TYPE_MUTABLE_DISPATCH_CONFIG_KHR,
		.command = command,
		.num_args = 1,
		.arg_list = &arg,
	};
	const cl_mutable_base_config_khr base = {
		.type = CL_STRUCTURE_TYPE_MUTABLE_BASE_CONFIG_KHR,
		.num_mutable_dispatch = 1,
		.mutable_dispatch_list = &chained,
	};
	const void *config = &chained.command; /* from here on, both forms have an equal layout */
	const cl_uint type = 0;
	cl_int (*update_arrays)(cl_command_buffer_khr, cl_uint, const cl_uint *, const void **) =
		(void *)khr.update;

	if (stub_get(STUB_COMMAND_ARRAYS))
		return update_arrays(list, 1, &type, &config);
	return khr.update(list, &base);
}
