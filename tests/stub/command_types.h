/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions of cl_khr_command_buffer 0.9.4 and of its updates 0.9.1, as the stub has them.  Later versions, and the
 * headers of those, have other arguments under the same names.
 */
#ifndef TESTS_STUB_COMMAND_TYPES_H
#define TESTS_STUB_COMMAND_TYPES_H

#include "stub.h"

#include <CL/cl_ext.h>

#define COMMAND_TYPE(name, ...)                                                \
	typedef cl_int CL_API_CALL stub_type_##name(                           \
		cl_command_buffer_khr, cl_command_queue, __VA_ARGS__, cl_uint, \
		const cl_sync_point_khr *, cl_sync_point_khr *, cl_mutable_command_khr *);

COMMAND_TYPE(clCommandCopyBufferKHR, cl_mem, cl_mem, size_t, size_t, size_t)
COMMAND_TYPE(clCommandCopyBufferRectKHR, cl_mem, cl_mem, const size_t *, const size_t *,
	     const size_t *, size_t, size_t, size_t, size_t)
COMMAND_TYPE(clCommandCopyBufferToImageKHR, cl_mem, cl_mem, size_t, const size_t *, const size_t *)
COMMAND_TYPE(clCommandCopyImageKHR, cl_mem, cl_mem, const size_t *, const size_t *, const size_t *)
COMMAND_TYPE(clCommandCopyImageToBufferKHR, cl_mem, cl_mem, const size_t *, const size_t *, size_t)
COMMAND_TYPE(clCommandFillBufferKHR, cl_mem, const void *, size_t, size_t, size_t)
COMMAND_TYPE(clCommandFillImageKHR, cl_mem, const void *, const size_t *, const size_t *)
COMMAND_TYPE(clCommandNDRangeKernelKHR, const cl_properties *, cl_kernel, cl_uint, const size_t *,
	     const size_t *, const size_t *)

typedef cl_int CL_API_CALL stub_type_clCommandBarrierWithWaitListKHR(cl_command_buffer_khr,
								     cl_command_queue, cl_uint,
								     const cl_sync_point_khr *,
								     cl_sync_point_khr *,
								     cl_mutable_command_khr *);

struct stub_mutable_dispatch_config {
	cl_uint type; /* 1 */
	const void *next;
	cl_mutable_command_khr command;
	cl_uint num_args, num_svm_args, num_exec_infos, work_dim;
	const cl_mutable_dispatch_arg_khr *arg_list, *arg_svm_list;
	const void *exec_info_list;
	const size_t *global_work_offset, *global_work_size, *local_work_size;
};

struct stub_mutable_base_config {
	cl_uint type; /* 0 */
	const void *next;
	cl_uint num_mutable_dispatch;
	const struct stub_mutable_dispatch_config *mutable_dispatch_list;
};

typedef cl_int CL_API_CALL stub_type_clUpdateMutableCommandsKHR(
	cl_command_buffer_khr, const struct stub_mutable_base_config *);

#endif /* TESTS_STUB_COMMAND_TYPES_H */
