/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Maps and unmaps, three of the sixteen: command.h.
 *
 * Access begins with the map and ends with the unmap; in between the host has the memory.  A map that is never
 * unmapped has no END, and the unmap of a map whose START failed has one: the kernel does not count them.
 */
#include "icd/calls/command.h"
#include "icd/intercept.h"

/* A map that the driver is to enqueue. */
struct map {
	struct access access;
	cl_bool waits, blocking;
};

/* On failure nothing is mapped, and *@errcode_ret is set. */
static bool map_begin(struct map *m, const char *function, cl_command_queue queue, cl_mem mem,
		      cl_map_flags flags, cl_int *errcode_ret)
{
	const bool writes = flags & (CL_MAP_WRITE | CL_MAP_WRITE_INVALIDATE_REGION);
	cl_int err = command_begin_host(&m->access, function, queue, mem, writes ? mem : NULL,
					ACCESS_BEGIN, &m->blocking);

	if (err && errcode_ret)
		*errcode_ret = err;
	return !err;
}

/* If access fails after the driver's map, the driver takes the pointer back. */
static void *map_end(struct map *m, cl_command_queue queue, cl_mem mem, void *ptr, cl_int err,
		     cl_int *errcode_ret)
{
	const bool is_mapped = !err && ptr;

	err = access_end(&m->access, err, m->waits);
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
	struct map m = { .waits = blocking, .blocking = blocking };
	struct access *a = &m.access;
	cl_int err = CL_SUCCESS;
	void *ptr;

	access_none(a, num_wait, wait, event);
	if (!map_begin(&m, "clEnqueueMapBuffer", queue, buffer, flags, errcode_ret))
		return NULL;
	ptr = next.clEnqueueMapBuffer(queue, buffer, m.blocking, flags, offset, size, a->num_wait,
				      a->wait, a->event, &err);
	return map_end(&m, queue, buffer, ptr, err, errcode_ret);
}

void *CL_API_CALL layer_clEnqueueMapImage(cl_command_queue queue, cl_mem image, cl_bool blocking,
					  cl_map_flags flags, const size_t *origin,
					  const size_t *region, size_t *row_pitch,
					  size_t *slice_pitch, cl_uint num_wait,
					  const cl_event *wait, cl_event *event,
					  cl_int *errcode_ret)
{
	struct map m = { .waits = blocking, .blocking = blocking };
	struct access *a = &m.access;
	cl_int err = CL_SUCCESS;
	void *ptr;

	access_none(a, num_wait, wait, event);
	if (!map_begin(&m, "clEnqueueMapImage", queue, image, flags, errcode_ret))
		return NULL;
	ptr = next.clEnqueueMapImage(queue, image, m.blocking, flags, origin, region, row_pitch,
				     slice_pitch, a->num_wait, a->wait, a->event, &err);
	return map_end(&m, queue, image, ptr, err, errcode_ret);
}

cl_int CL_API_CALL layer_clEnqueueUnmapMemObject(cl_command_queue queue, cl_mem mem, void *ptr,
						 cl_uint num_wait, const cl_event *wait,
						 cl_event *event)
{
	struct access a;
	cl_int err;

	access_none(&a, num_wait, wait, event);
	err = command_begin_host(&a, "clEnqueueUnmapMemObject", queue, mem, NULL, ACCESS_END, NULL);
	if (err)
		return err;
	err = next.clEnqueueUnmapMemObject(queue, mem, ptr, a.num_wait, a.wait, a.event);
	return access_end(&a, err, CL_FALSE);
}
