/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Maps and unmaps: host_access.h.
 *
 * Access begins with the map and ends with the unmap; in between the host has the memory.
 */
#include "icd/access/mapping.h"
#include "icd/calls/host_access.h"
#include "icd/calls/in_place.h"
#include "icd/calls/in_place_image.h"
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

	if (!bracket || !import_needs_end(bracket_region(bracket)))
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

static void *host_map_in_place(const struct memobj *obj, const struct in_place_call *call,
			       cl_int *errcode_ret)
{
	cl_int err;
	void *ptr = in_place_map(obj, call, &err);

	if (errcode_ret)
		*errcode_ret = err;
	return ptr;
}

static void *host_map_image_in_place(const struct memobj *image,
				     const struct in_place_image_call *call, cl_int *errcode_ret)
{
	cl_int err;
	void *ptr = in_place_image_map(image, call, &err);

	if (errcode_ret)
		*errcode_ret = err;
	return ptr;
}

/*
 * clEnqueueMapBuffer takes no image, and the driver finds the error.  A driver that takes the image maps the
 * stage, which does not have the program's bytes.
 */
static void *host_map_staged(cl_mem image, const struct in_place_call *c, cl_int *errcode_ret)
{
	cl_int err;
	void *ptr = next.clEnqueueMapBuffer(c->queue, image, CL_FALSE, c->flags, c->offset, c->size,
					    c->num_wait, c->wait, NULL, &err);

	if (!err && ptr)
		next.clEnqueueUnmapMemObject(c->queue, image, ptr, 0, NULL, NULL);
	return host_map_refuse(err ? err : CL_INVALID_MEM_OBJECT, errcode_ret);
}

static void *host_map_buffer_in_place(const struct memobj *obj, const struct in_place_call *call,
				      cl_int *errcode_ret)
{
	return obj->is_staged ? host_map_staged(obj->handle, call, errcode_ret)
			      : host_map_in_place(obj, call, errcode_ret);
}

static void *host_map_import(cl_mem buffer, const struct in_place_call *c, cl_int *errcode_ret)
{
	struct host_map m;
	struct access *a = &m.access;
	cl_int err;
	void *ptr;

	access_none(a, c->num_wait, c->wait, c->event);
	err = host_map_begin(&m, "clEnqueueMapBuffer", c->queue, buffer, c->flags, c->blocking);
	if (err)
		return host_map_refuse(err, errcode_ret);
	ptr = next.clEnqueueMapBuffer(c->queue, buffer, access_blocking(a, c->blocking), c->flags,
				      c->offset, c->size, a->num_wait, a->wait, a->event, &err);
	return host_map_end(&m, c->queue, buffer, ptr, err, c->blocking, errcode_ret);
}

void *CL_API_CALL layer_clEnqueueMapBuffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking,
					   cl_map_flags flags, size_t offset, size_t size,
					   cl_uint num_wait, const cl_event *wait, cl_event *event,
					   cl_int *errcode_ret)
{
	const struct in_place_call call = { queue, blocking, flags, offset,
					    size,  num_wait, wait,  event };
	struct memobj *obj = in_place_get(buffer);
	void *ptr = obj ? host_map_buffer_in_place(obj, &call, errcode_ret)
			: host_map_import(buffer, &call, errcode_ret);

	memobj_put(obj);
	return ptr;
}

static void *host_map_image_import(cl_mem image, const struct in_place_image_call *c,
				   cl_int *errcode_ret)
{
	struct host_map m;
	struct access *a = &m.access;
	cl_int err;
	void *ptr;

	access_none(a, c->num_wait, c->wait, c->event);
	err = host_map_begin(&m, "clEnqueueMapImage", c->queue, image, c->flags, c->blocking);
	if (err)
		return host_map_refuse(err, errcode_ret);
	ptr = next.clEnqueueMapImage(c->queue, image, access_blocking(a, c->blocking), c->flags,
				     c->origin, c->region, c->row_pitch, c->slice_pitch,
				     a->num_wait, a->wait, a->event, &err);
	return host_map_end(&m, c->queue, image, ptr, err, c->blocking, errcode_ret);
}

void *CL_API_CALL layer_clEnqueueMapImage(cl_command_queue queue, cl_mem image, cl_bool blocking,
					  cl_map_flags flags, const size_t *origin,
					  const size_t *region, size_t *row_pitch,
					  size_t *slice_pitch, cl_uint num_wait,
					  const cl_event *wait, cl_event *event,
					  cl_int *errcode_ret)
{
	const struct in_place_image_call call = { queue,     blocking,	  flags,    origin, region,
						  row_pitch, slice_pitch, num_wait, wait,   event };
	struct memobj *obj = in_place_get(image);
	void *ptr = obj && obj->is_staged ? host_map_image_in_place(obj, &call, errcode_ret)
					  : host_map_image_import(image, &call, errcode_ret);

	memobj_put(obj);
	return ptr;
}

static cl_int host_map_unmap(cl_command_queue queue, cl_mem mem, void *ptr, cl_uint num_wait,
			     const cl_event *wait, cl_event *event)
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

cl_int CL_API_CALL layer_clEnqueueUnmapMemObject(cl_command_queue queue, cl_mem mem, void *ptr,
						 cl_uint num_wait, const cl_event *wait,
						 cl_event *event)
{
	struct memobj *obj = in_place_get(mem);
	cl_int err = obj ? in_place_unmap(obj, queue, ptr, num_wait, wait, event)
			 : host_map_unmap(queue, mem, ptr, num_wait, wait, event);

	memobj_put(obj);
	return err;
}
