/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Maps and unmaps: host_access.h.
 *
 * Access begins with the map and ends with the unmap; in between the host has the memory.  A map that is never
 * unmapped has no END, and the unmap of a map whose START failed has one: the kernel does not count them.
 */
#include "icd/calls/host_access.h"
#include "icd/intercept.h"
#include "icd/layer.h"

static cl_int host_map_begin(struct access *a, const char *function, cl_command_queue queue,
			     cl_mem mem, cl_map_flags flags, cl_bool blocking)
{
	const bool writes = flags & (CL_MAP_WRITE | CL_MAP_WRITE_INVALIDATE_REGION);

	return host_access_begin(a, function, queue, mem, writes ? mem : NULL, ACCESS_BEGIN,
				 blocking);
}

static void *host_map_refuse(cl_int err, cl_int *errcode_ret)
{
	if (errcode_ret)
		*errcode_ret = err;
	return NULL;
}

/* If access fails after the driver's map, the driver takes the pointer back. */
static void *host_map_end(struct access *a, cl_command_queue queue, cl_mem mem, void *ptr,
			  cl_int err, cl_bool blocking, cl_int *errcode_ret)
{
	const bool is_mapped = !err && ptr;

	err = access_end(a, err, blocking);
	if (err && is_mapped)
		next.clEnqueueUnmapMemObject(queue, mem, ptr, 0, NULL, NULL);
	if (errcode_ret)
		*errcode_ret = err;
	return err ? NULL : ptr;
}

void *CL_API_CALL layer_clEnqueueMapBuffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking,
					   cl_map_flags flags, size_t offset, size_t size,
					   cl_uint num_wait, const cl_event *wait, cl_event *event,
					   cl_int *errcode_ret)
{
	struct access a;
	cl_int err;
	void *ptr;

	access_none(&a, num_wait, wait, event);
	err = host_map_begin(&a, "clEnqueueMapBuffer", queue, buffer, flags, blocking);
	if (err)
		return host_map_refuse(err, errcode_ret);
	ptr = next.clEnqueueMapBuffer(queue, buffer, access_blocking(&a, blocking), flags, offset,
				      size, a.num_wait, a.wait, a.event, &err);
	return host_map_end(&a, queue, buffer, ptr, err, blocking, errcode_ret);
}

void *CL_API_CALL layer_clEnqueueMapImage(cl_command_queue queue, cl_mem image, cl_bool blocking,
					  cl_map_flags flags, const size_t *origin,
					  const size_t *region, size_t *row_pitch,
					  size_t *slice_pitch, cl_uint num_wait,
					  const cl_event *wait, cl_event *event,
					  cl_int *errcode_ret)
{
	struct access a;
	cl_int err;
	void *ptr;

	access_none(&a, num_wait, wait, event);
	err = host_map_begin(&a, "clEnqueueMapImage", queue, image, flags, blocking);
	if (err)
		return host_map_refuse(err, errcode_ret);
	ptr = next.clEnqueueMapImage(queue, image, access_blocking(&a, blocking), flags, origin,
				     region, row_pitch, slice_pitch, a.num_wait, a.wait, a.event,
				     &err);
	return host_map_end(&a, queue, image, ptr, err, blocking, errcode_ret);
}

cl_int CL_API_CALL layer_clEnqueueUnmapMemObject(cl_command_queue queue, cl_mem mem, void *ptr,
						 cl_uint num_wait, const cl_event *wait,
						 cl_event *event)
{
	struct access a;
	cl_int err;

	access_none(&a, num_wait, wait, event);
	err = host_access_begin(&a, "clEnqueueUnmapMemObject", queue, mem, NULL, ACCESS_END,
				CL_FALSE);
	if (err)
		return err;
	err = next.clEnqueueUnmapMemObject(queue, mem, ptr, a.num_wait, a.wait, a.event);
	return access_end(&a, err, CL_FALSE);
}
