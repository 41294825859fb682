/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of cl_khr_command_buffer, for tests of command buffers. */
#ifndef TESTS_ICD_COMMAND_LIST_H
#define TESTS_ICD_COMMAND_LIST_H

#include "access.h"
#include "command_types.h"

/* The extension's functions, as an application gets their addresses. */
extern struct khr_functions {
	__typeof__(&clCreateCommandBufferKHR) create;
	__typeof__(&clFinalizeCommandBufferKHR) finalize;
	__typeof__(&clReleaseCommandBufferKHR) release;
	__typeof__(&clRetainCommandBufferKHR) retain;
	__typeof__(&clRemapCommandBufferKHR) remap;
	__typeof__(&clEnqueueCommandBufferKHR) enqueue;
	stub_type_clCommandNDRangeKernelKHR *kernel;
	stub_type_clCommandCopyBufferKHR *copy;
	stub_type_clCommandCopyBufferRectKHR *rect;
	stub_type_clCommandCopyBufferToImageKHR *to_image;
	stub_type_clCommandCopyImageKHR *image;
	stub_type_clCommandCopyImageToBufferKHR *from_image;
	stub_type_clCommandFillBufferKHR *fill;
	stub_type_clCommandFillImageKHR *fill_image;
	stub_type_clUpdateMutableCommandsKHR *update;
} khr;

/* Sets khr; call after fixture_open(). */
void khr_get_functions(void);

/* A command buffer for fix.queue. */
cl_command_buffer_khr list_create(void);

/* Replaces argument 0 of a recorded kernel, by the form of update that the driver has. */
cl_int list_update(cl_command_buffer_khr list, cl_mutable_command_khr command, const cl_mem *mem);

#endif
