/* SPDX-License-Identifier: Apache-2.0 */
/* Host access to images, and copies from and to images: host_access.h. */
#include "icd/calls/host_access.h"
#include "icd/intercept.h"
#include "icd/layer.h"

cl_int CL_API_CALL layer_clEnqueueReadImage(cl_command_queue queue, cl_mem image, cl_bool blocking,
					    const size_t *origin, const size_t *region,
					    size_t row_pitch, size_t slice_pitch, void *ptr,
					    cl_uint num_wait, const cl_event *wait, cl_event *event)
{
	struct access a;
	cl_int err;

	access_none(&a, num_wait, wait, event);
	err = host_access_begin(&a, "clEnqueueReadImage", queue, image, NULL, ACCESS_BOTH,
				blocking);
	if (err)
		return err;
	err = next.clEnqueueReadImage(queue, image, access_blocking(&a, blocking), origin, region,
				      row_pitch, slice_pitch, ptr, a.num_wait, a.wait, a.event);
	return access_end(&a, err, blocking);
}

cl_int CL_API_CALL layer_clEnqueueWriteImage(cl_command_queue queue, cl_mem image, cl_bool blocking,
					     const size_t *origin, const size_t *region,
					     size_t row_pitch, size_t slice_pitch, const void *ptr,
					     cl_uint num_wait, const cl_event *wait,
					     cl_event *event)
{
	struct access a;
	cl_int err;

	access_none(&a, num_wait, wait, event);
	err = host_access_begin(&a, "clEnqueueWriteImage", queue, NULL, image, ACCESS_BOTH,
				blocking);
	if (err)
		return err;
	err = next.clEnqueueWriteImage(queue, image, access_blocking(&a, blocking), origin, region,
				       row_pitch, slice_pitch, ptr, a.num_wait, a.wait, a.event);
	return access_end(&a, err, blocking);
}

cl_int CL_API_CALL layer_clEnqueueCopyImage(cl_command_queue queue, cl_mem src, cl_mem dst,
					    const size_t *src_origin, const size_t *dst_origin,
					    const size_t *region, cl_uint num_wait,
					    const cl_event *wait, cl_event *event)
{
	struct access a;
	cl_int err;

	access_none(&a, num_wait, wait, event);
	err = host_access_begin(&a, "clEnqueueCopyImage", queue, src, dst, ACCESS_BOTH, CL_FALSE);
	if (err)
		return err;
	err = next.clEnqueueCopyImage(queue, src, dst, src_origin, dst_origin, region, a.num_wait,
				      a.wait, a.event);
	return access_end(&a, err, CL_FALSE);
}

cl_int CL_API_CALL layer_clEnqueueCopyImageToBuffer(cl_command_queue queue, cl_mem src, cl_mem dst,
						    const size_t *src_origin, const size_t *region,
						    size_t dst_offset, cl_uint num_wait,
						    const cl_event *wait, cl_event *event)
{
	struct access a;
	cl_int err;

	access_none(&a, num_wait, wait, event);
	err = host_access_begin(&a, "clEnqueueCopyImageToBuffer", queue, src, dst, ACCESS_BOTH,
				CL_FALSE);
	if (err)
		return err;
	err = next.clEnqueueCopyImageToBuffer(queue, src, dst, src_origin, region, dst_offset,
					      a.num_wait, a.wait, a.event);
	return access_end(&a, err, CL_FALSE);
}

cl_int CL_API_CALL layer_clEnqueueCopyBufferToImage(cl_command_queue queue, cl_mem src, cl_mem dst,
						    size_t src_offset, const size_t *dst_origin,
						    const size_t *region, cl_uint num_wait,
						    const cl_event *wait, cl_event *event)
{
	struct access a;
	cl_int err;

	access_none(&a, num_wait, wait, event);
	err = host_access_begin(&a, "clEnqueueCopyBufferToImage", queue, src, dst, ACCESS_BOTH,
				CL_FALSE);
	if (err)
		return err;
	err = next.clEnqueueCopyBufferToImage(queue, src, dst, src_offset, dst_origin, region,
					      a.num_wait, a.wait, a.event);
	return access_end(&a, err, CL_FALSE);
}

cl_int CL_API_CALL layer_clEnqueueFillImage(cl_command_queue queue, cl_mem image, const void *color,
					    const size_t *origin, const size_t *region,
					    cl_uint num_wait, const cl_event *wait, cl_event *event)
{
	struct access a;
	cl_int err;

	access_none(&a, num_wait, wait, event);
	err = host_access_begin(&a, "clEnqueueFillImage", queue, NULL, image, ACCESS_BOTH,
				CL_FALSE);
	if (err)
		return err;
	err = next.clEnqueueFillImage(queue, image, color, origin, region, a.num_wait, a.wait,
				      a.event);
	return access_end(&a, err, CL_FALSE);
}
