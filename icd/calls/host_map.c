/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Maps and unmaps: host_access.h.
 *
 * Access begins with the map and ends with the unmap; in between the host has the memory.
 */
#include "icd/access/mapping.h"
#include "icd/calls/host_access.h"
#include "icd/intercept.h"
#include "icd/layer.h"

/* A map that the driver is to enqueue. */
struct host_map {
	struct access access;
	struct mapping *mapping; /* NULL: no unmap has to end access */
};

static cl_int host_map_record(struct host_map *m)
{
	struct bracket *bracket = m->access.bracket;

	if (!bracket)
		return CL_SUCCESS;
	m->mapping = mapping_create(bracket);
	return m->mapping ? CL_SUCCESS : CL_OUT_OF_HOST_MEMORY;
}

static cl_int host_map_begin(struct host_map *m, const char *function, cl_command_queue queue,
			     cl_mem mem, cl_map_flags flags, cl_bool blocking)
{
	bool writes = flags & (CL_MAP_WRITE | CL_MAP_WRITE_INVALIDATE_REGION);
	cl_int err = host_access_begin(&m->access, function, queue, mem, writes ? mem : NULL,
				       ACCESS_BEGIN, blocking);

	m->mapping = NULL;
	if (err)
		return err;
	err = host_map_record(m);
	return err ? access_end(&m->access, err, CL_FALSE) : CL_SUCCESS;
}

static void *host_map_refuse(cl_int err, cl_int *errcode_ret)
{
	if (errcode_ret)
		*errcode_ret = err;
	return NULL;
}

/*
 * If access fails behind the driver's map, the application gets no pointer: the driver takes the pointer back.
 * Without a pointer no unmap ends access, also if the driver reports success.
 */
static void *host_map_end(struct host_map *m, cl_command_queue queue, cl_mem mem, void *ptr,
			  cl_int err, cl_bool blocking, cl_int *errcode_ret)
{
	const bool is_mapped = !err && ptr;

	err = access_end(&m->access, err, blocking);
	if (err && is_mapped)
		next.clEnqueueUnmapMemObject(queue, mem, ptr, 0, NULL, NULL);
	if (err)
		ptr = NULL;
	if (m->mapping && !ptr)
		mapping_cancel(m->mapping);
	else if (m->mapping)
		mapping_add(m->mapping, ptr);
	if (errcode_ret)
		*errcode_ret = err;
	return ptr;
}

void *CL_API_CALL layer_clEnqueueMapBuffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking,
					   cl_map_flags flags, size_t offset, size_t size,
					   cl_uint num_wait, const cl_event *wait, cl_event *event,
					   cl_int *errcode_ret)
{
	struct host_map m;
	struct access *a = &m.access;
	cl_int err;
	void *ptr;

	access_none(a, num_wait, wait, event);
	err = host_map_begin(&m, "clEnqueueMapBuffer", queue, buffer, flags, blocking);
	if (err)
		return host_map_refuse(err, errcode_ret);
	ptr = next.clEnqueueMapBuffer(queue, buffer, access_blocking(a, blocking), flags, offset,
				      size, a->num_wait, a->wait, a->event, &err);
	return host_map_end(&m, queue, buffer, ptr, err, blocking, errcode_ret);
}

void *CL_API_CALL layer_clEnqueueMapImage(cl_command_queue queue, cl_mem image, cl_bool blocking,
					  cl_map_flags flags, const size_t *origin,
					  const size_t *region, size_t *row_pitch,
					  size_t *slice_pitch, cl_uint num_wait,
					  const cl_event *wait, cl_event *event,
					  cl_int *errcode_ret)
{
	struct host_map m;
	struct access *a = &m.access;
	cl_int err;
	void *ptr;

	access_none(a, num_wait, wait, event);
	err = host_map_begin(&m, "clEnqueueMapImage", queue, image, flags, blocking);
	if (err)
		return host_map_refuse(err, errcode_ret);
	ptr = next.clEnqueueMapImage(queue, image, access_blocking(a, blocking), flags, origin,
				     region, row_pitch, slice_pitch, a->num_wait, a->wait, a->event,
				     &err);
	return host_map_end(&m, queue, image, ptr, err, blocking, errcode_ret);
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
	if (!err && a.bracket)
		mapping_unmap(ptr, a.bracket);
	return access_end(&a, err, CL_FALSE);
}
