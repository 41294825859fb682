/* SPDX-License-Identifier: Apache-2.0 */
#include "command_list.h"

struct khr_functions khr;

#define ADDRESS(f) ((__typeof__(&(f)))cl.clGetExtensionFunctionAddressForPlatform(fix.platform, #f))
#define FORM(f) ((stub_type_##f *)cl.clGetExtensionFunctionAddressForPlatform(fix.platform, #f))

void khr_get_functions(void)
{
	khr.create = ADDRESS(clCreateCommandBufferKHR);
	khr.finalize = ADDRESS(clFinalizeCommandBufferKHR);
	khr.release = ADDRESS(clReleaseCommandBufferKHR);
	khr.retain = ADDRESS(clRetainCommandBufferKHR);
	khr.remap = ADDRESS(clRemapCommandBufferKHR);
	khr.enqueue = ADDRESS(clEnqueueCommandBufferKHR);
	khr.kernel = FORM(clCommandNDRangeKernelKHR);
	khr.copy = FORM(clCommandCopyBufferKHR);
	khr.rect = FORM(clCommandCopyBufferRectKHR);
	khr.to_image = FORM(clCommandCopyBufferToImageKHR);
	khr.image = FORM(clCommandCopyImageKHR);
	khr.from_image = FORM(clCommandCopyImageToBufferKHR);
	khr.fill = FORM(clCommandFillBufferKHR);
	khr.fill_image = FORM(clCommandFillImageKHR);
	khr.update = FORM(clUpdateMutableCommandsKHR);
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
	const struct stub_mutable_dispatch_config chained = {
		.type = 1,
		.command = command,
		.num_args = 1,
		.arg_list = &arg,
	};
	const struct stub_mutable_base_config base = {
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
