/* SPDX-License-Identifier: Apache-2.0 */
/* Host access to buffers, and copies between them: host_access.h. */
#include "icd/calls/host_access.h"
#include "icd/intercept.h"
#include "icd/layer.h"

cl_int CL_API_CALL layer_clEnqueueReadBuffer(cl_command_queue queue, cl_mem buffer,
					     cl_bool blocking, size_t offset, size_t size,
					     void *ptr, cl_uint num_wait, const cl_event *wait,
					     cl_event *event)
{
	struct access a;
	cl_int err;

	access_none(&a, num_wait, wait, event);
	err = host_access_begin(&a, "clEnqueueReadBuffer", queue, buffer, NULL, ACCESS_BOTH,
				blocking);
	if (err)
		return err;
	err = next.clEnqueueReadBuffer(queue, buffer, access_blocking(&a, blocking), offset, size,
				       ptr, a.num_wait, a.wait, a.event);
	return access_end(&a, err, blocking);
}

cl_int CL_API_CALL layer_clEnqueueWriteBuffer(cl_command_queue queue, cl_mem buffer,
					      cl_bool blocking, size_t offset, size_t size,
					      const void *ptr, cl_uint num_wait,
					      const cl_event *wait, cl_event *event)
{
	struct access a;
	cl_int err;

	access_none(&a, num_wait, wait, event);
	err = host_access_begin(&a, "clEnqueueWriteBuffer", queue, NULL, buffer, ACCESS_BOTH,
				blocking);
	if (err)
		return err;
	err = next.clEnqueueWriteBuffer(queue, buffer, access_blocking(&a, blocking), offset, size,
					ptr, a.num_wait, a.wait, a.event);
	return access_end(&a, err, blocking);
}

cl_int CL_API_CALL layer_clEnqueueReadBufferRect(cl_command_queue queue, cl_mem buffer,
						 cl_bool blocking, const size_t *buffer_origin,
						 const size_t *host_origin, const size_t *region,
						 size_t buffer_row_pitch, size_t buffer_slice_pitch,
						 size_t host_row_pitch, size_t host_slice_pitch,
						 void *ptr, cl_uint num_wait, const cl_event *wait,
						 cl_event *event)
{
	struct access a;
	cl_int err;

	access_none(&a, num_wait, wait, event);
	err = host_access_begin(&a, "clEnqueueReadBufferRect", queue, buffer, NULL, ACCESS_BOTH,
				blocking);
	if (err)
		return err;
	err = next.clEnqueueReadBufferRect(queue, buffer, access_blocking(&a, blocking),
					   buffer_origin, host_origin, region, buffer_row_pitch,
					   buffer_slice_pitch, host_row_pitch, host_slice_pitch,
					   ptr, a.num_wait, a.wait, a.event);
	return access_end(&a, err, blocking);
}

cl_int CL_API_CALL layer_clEnqueueWriteBufferRect(
	cl_command_queue queue, cl_mem buffer, cl_bool blocking, const size_t *buffer_origin,
	const size_t *host_origin, const size_t *region, size_t buffer_row_pitch,
	size_t buffer_slice_pitch, size_t host_row_pitch, size_t host_slice_pitch, const void *ptr,
	cl_uint num_wait, const cl_event *wait, cl_event *event)
{
	struct access a;
	cl_int err;

	access_none(&a, num_wait, wait, event);
	err = host_access_begin(&a, "clEnqueueWriteBufferRect", queue, NULL, buffer, ACCESS_BOTH,
				blocking);
	if (err)
		return err;
	err = next.clEnqueueWriteBufferRect(queue, buffer, access_blocking(&a, blocking),
					    buffer_origin, host_origin, region, buffer_row_pitch,
					    buffer_slice_pitch, host_row_pitch, host_slice_pitch,
					    ptr, a.num_wait, a.wait, a.event);
	return access_end(&a, err, blocking);
}

cl_int CL_API_CALL layer_clEnqueueCopyBuffer(cl_command_queue queue, cl_mem src, cl_mem dst,
					     size_t src_offset, size_t dst_offset, size_t size,
					     cl_uint num_wait, const cl_event *wait,
					     cl_event *event)
{
	struct access a;
	cl_int err;

	access_none(&a, num_wait, wait, event);
	err = host_access_begin(&a, "clEnqueueCopyBuffer", queue, src, dst, ACCESS_BOTH, CL_FALSE);
	if (err)
		return err;
	err = next.clEnqueueCopyBuffer(queue, src, dst, src_offset, dst_offset, size, a.num_wait,
				       a.wait, a.event);
	return access_end(&a, err, CL_FALSE);
}

cl_int CL_API_CALL layer_clEnqueueCopyBufferRect(cl_command_queue queue, cl_mem src, cl_mem dst,
						 const size_t *src_origin, const size_t *dst_origin,
						 const size_t *region, size_t src_row_pitch,
						 size_t src_slice_pitch, size_t dst_row_pitch,
						 size_t dst_slice_pitch, cl_uint num_wait,
						 const cl_event *wait, cl_event *event)
{
	struct access a;
	cl_int err;

	access_none(&a, num_wait, wait, event);
	err = host_access_begin(&a, "clEnqueueCopyBufferRect", queue, src, dst, ACCESS_BOTH,
				CL_FALSE);
	if (err)
		return err;
	err = next.clEnqueueCopyBufferRect(queue, src, dst, src_origin, dst_origin, region,
					   src_row_pitch, src_slice_pitch, dst_row_pitch,
					   dst_slice_pitch, a.num_wait, a.wait, a.event);
	return access_end(&a, err, CL_FALSE);
}

cl_int CL_API_CALL layer_clEnqueueFillBuffer(cl_command_queue queue, cl_mem buffer,
					     const void *pattern, size_t pattern_size,
					     size_t offset, size_t size, cl_uint num_wait,
					     const cl_event *wait, cl_event *event)
{
	struct access a;
	cl_int err;

	access_none(&a, num_wait, wait, event);
	err = host_access_begin(&a, "clEnqueueFillBuffer", queue, NULL, buffer, ACCESS_BOTH,
				CL_FALSE);
	if (err)
		return err;
	err = next.clEnqueueFillBuffer(queue, buffer, pattern, pattern_size, offset, size,
				       a.num_wait, a.wait, a.event);
	return access_end(&a, err, CL_FALSE);
}
