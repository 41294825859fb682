/* SPDX-License-Identifier: Apache-2.0 */
/*
 * "Prior to version 1.1.0, CL_INVALID_OPERATION when an imported memory object
 * has been passed to one of the following API functions": the sixteen below.
 *
 * A NULL queue goes to the driver, and an unknown one is asked of it first: it has the error for it.
 */
#include "icd/calls/host_access.h"

#include "icd/access/mapping.h"
#include "icd/config.h"
#include "icd/intercept.h"
#include "icd/layer.h"
#include "icd/objects/context.h"
#include "util/log.h"

static void host_access_report(const struct memobj *obj, const char *function, cl_int err)
{
	struct context *context = context_get(obj->context);

	context_notify(context, function, err);
	context_put(context);
}

static cl_int host_access_refuse(const struct memobj *obj, const char *function)
{
	log_error("imported memory cannot be passed to %s before version 1.1.0 of "
		  "cl_arm_import_memory "
		  "(CLIMPORT_VERSION=1.1.0)",
		  function);
	host_access_report(obj, function, CL_INVALID_OPERATION);
	return CL_INVALID_OPERATION;
}

static cl_int refuse_write(const struct memobj *obj, const char *function)
{
	log_error("%s would write to memory that is mapped read-only", function);
	host_access_report(obj, function, CL_INVALID_OPERATION);
	return CL_INVALID_OPERATION;
}

bool host_access_refuses(const char *function, cl_mem first, cl_mem second)
{
	struct memobj *obj;

	if (!memobj_live() || config_host_access())
		return false;
	obj = memobj_get(first);
	if (!obj)
		obj = memobj_get(second);
	if (!obj)
		return false;
	host_access_refuse(obj, function);
	memobj_put(obj);
	return true;
}

static cl_int host_access_check(struct access *a, const char *function, cl_command_queue queue,
				struct memobj *const *objs, unsigned int edges)
{
	struct memobj *written = objs[1];
	cl_context context;
	cl_int err;

	if (!objs[0] && !written)
		return CL_SUCCESS;
	err = next.clGetCommandQueueInfo(queue, CL_QUEUE_CONTEXT, sizeof(context), &context, NULL);
	if (err)
		return err;
	if (!config_host_access())
		return host_access_refuse(written ? written : objs[0], function);
	if (written && !(written->region->access & IMPORT_WRITE))
		return refuse_write(written, function);
	return access_begin(a, queue, objs, 2, edges | ACCESS_BY_HOST);
}

cl_int host_access_begin(struct access *a, const char *function, cl_command_queue queue,
			 cl_mem read, cl_mem written, unsigned int edges)
{
	struct memobj *objs[2] = { memobj_get(read), memobj_get(written) };
	cl_int err = host_access_check(a, function, queue, objs, edges);

	memobj_put(objs[0]);
	memobj_put(objs[1]);
	return err;
}

static bool event_has_failed(cl_event event)
{
	cl_int status;

	return event &&
	       !next.clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status),
				    &status, NULL) &&
	       status < 0;
}

/*
 * A command behind an event that has failed already never runs and never fails in some drivers
 * (PoCL 3.1), so a blocking one is refused here.  The list is not waited for: the driver has not
 * looked at the command's arguments yet.  Other errors are the driver's to find.
 */
static bool list_has_failed(cl_bool blocking, cl_uint num_wait, const cl_event *wait)
{
	for (cl_uint i = 0; blocking && wait && i < num_wait; i++)
		if (event_has_failed(wait[i]))
			return true;
	return false;
}

/* The common case, no import alive, costs one load. */
static inline cl_int host_access_begin_call(struct access *a, const char *function,
					    cl_command_queue queue, cl_mem read, cl_mem written,
					    cl_uint num_wait, const cl_event *wait, cl_event *event,
					    cl_bool blocking)
{
	queue_bracket_close(queue);
	access_none(a, num_wait, wait, event);
	if (!memobj_live() || !queue || !(memobj_is_import(read) || memobj_is_import(written)))
		return CL_SUCCESS;
	if (config_host_access() && list_has_failed(blocking, num_wait, wait))
		return CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
	return host_access_begin(a, function, queue, read, written, ACCESS_BOTH);
}

cl_int CL_API_CALL layer_clEnqueueReadBuffer(cl_command_queue queue, cl_mem buffer,
					     cl_bool blocking, size_t offset, size_t size,
					     void *ptr, cl_uint num_wait, const cl_event *wait,
					     cl_event *event)
{
	struct access a;
	cl_int err = host_access_begin_call(&a, "clEnqueueReadBuffer", queue, buffer, NULL,
					    num_wait, wait, event, blocking);

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
	cl_int err = host_access_begin_call(&a, "clEnqueueWriteBuffer", queue, NULL, buffer,
					    num_wait, wait, event, blocking);

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
	cl_int err = host_access_begin_call(&a, "clEnqueueReadBufferRect", queue, buffer, NULL,
					    num_wait, wait, event, blocking);

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
	cl_int err = host_access_begin_call(&a, "clEnqueueWriteBufferRect", queue, NULL, buffer,
					    num_wait, wait, event, blocking);

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
	cl_int err = host_access_begin_call(&a, "clEnqueueCopyBuffer", queue, src, dst, num_wait,
					    wait, event, CL_FALSE);

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
	cl_int err = host_access_begin_call(&a, "clEnqueueCopyBufferRect", queue, src, dst,
					    num_wait, wait, event, CL_FALSE);

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
	cl_int err = host_access_begin_call(&a, "clEnqueueFillBuffer", queue, NULL, buffer,
					    num_wait, wait, event, CL_FALSE);

	if (err)
		return err;
	err = next.clEnqueueFillBuffer(queue, buffer, pattern, pattern_size, offset, size,
				       a.num_wait, a.wait, a.event);
	return access_end(&a, err, CL_FALSE);
}

cl_int CL_API_CALL layer_clEnqueueReadImage(cl_command_queue queue, cl_mem image, cl_bool blocking,
					    const size_t *origin, const size_t *region,
					    size_t row_pitch, size_t slice_pitch, void *ptr,
					    cl_uint num_wait, const cl_event *wait, cl_event *event)
{
	struct access a;
	cl_int err = host_access_begin_call(&a, "clEnqueueReadImage", queue, image, NULL, num_wait,
					    wait, event, blocking);

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
	cl_int err = host_access_begin_call(&a, "clEnqueueWriteImage", queue, NULL, image, num_wait,
					    wait, event, blocking);

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
	cl_int err = host_access_begin_call(&a, "clEnqueueCopyImage", queue, src, dst, num_wait,
					    wait, event, CL_FALSE);

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
	cl_int err = host_access_begin_call(&a, "clEnqueueCopyImageToBuffer", queue, src, dst,
					    num_wait, wait, event, CL_FALSE);

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
	cl_int err = host_access_begin_call(&a, "clEnqueueCopyBufferToImage", queue, src, dst,
					    num_wait, wait, event, CL_FALSE);

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
	cl_int err = host_access_begin_call(&a, "clEnqueueFillImage", queue, NULL, image, num_wait,
					    wait, event, CL_FALSE);

	if (err)
		return err;
	err = next.clEnqueueFillImage(queue, image, color, origin, region, a.num_wait, a.wait,
				      a.event);
	return access_end(&a, err, CL_FALSE);
}

/* Access begins with the map and ends with the unmap; in between the host has it. */
static inline cl_int begin_map(struct access *a, const char *function, cl_command_queue queue,
			       cl_mem mem, cl_map_flags flags, cl_uint num_wait,
			       const cl_event *wait, cl_event *event, cl_bool blocking)
{
	bool writes = flags & (CL_MAP_WRITE | CL_MAP_WRITE_INVALIDATE_REGION);

	queue_bracket_close(queue);
	access_none(a, num_wait, wait, event);
	if (!memobj_live() || !queue || !memobj_is_import(mem))
		return CL_SUCCESS;
	if (config_host_access() && list_has_failed(blocking, num_wait, wait))
		return CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
	return host_access_begin(a, function, queue, mem, writes ? mem : NULL, ACCESS_BEGIN);
}

static void *refuse_map(cl_int err, cl_int *errcode_ret)
{
	if (errcode_ret)
		*errcode_ret = err;
	return NULL;
}

/* The record of a map that needs an unmap's END. */
static cl_int record_map(const struct access *a, const void *ptr, struct mapping **mapping)
{
	*mapping = NULL;
	if (!a->bracket || !import_needs_end(bracket_region(a->bracket)))
		return CL_SUCCESS;
	*mapping = mapping_create(a->bracket, ptr);
	return *mapping ? CL_SUCCESS : CL_OUT_OF_HOST_MEMORY;
}

/* A pointer to what could not be mapped is not given out: the driver takes it back. */
static void *end_map(struct access *a, cl_command_queue queue, cl_mem mem, void *ptr, cl_int err,
		     cl_bool blocking, cl_int *errcode_ret)
{
	struct mapping *mapping = NULL;

	if (!err)
		err = record_map(a, ptr, &mapping);
	err = access_end(a, err, blocking);
	if (err && ptr) {
		next.clEnqueueUnmapMemObject(queue, mem, ptr, 0, NULL, NULL);
		ptr = NULL;
	}
	if (mapping && err)
		mapping_cancel(mapping);
	else if (mapping)
		mapping_add(mapping);
	if (errcode_ret)
		*errcode_ret = err;
	return ptr;
}

void *CL_API_CALL layer_clEnqueueMapBuffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking,
					   cl_map_flags flags, size_t offset, size_t size,
					   cl_uint num_wait, const cl_event *wait, cl_event *event,
					   cl_int *errcode_ret)
{
	struct access a;
	cl_int err = begin_map(&a, "clEnqueueMapBuffer", queue, buffer, flags, num_wait, wait,
			       event, blocking);
	void *ptr;

	if (err)
		return refuse_map(err, errcode_ret);
	ptr = next.clEnqueueMapBuffer(queue, buffer, access_blocking(&a, blocking), flags, offset,
				      size, a.num_wait, a.wait, a.event, &err);
	return end_map(&a, queue, buffer, ptr, err, blocking, errcode_ret);
}

void *CL_API_CALL layer_clEnqueueMapImage(cl_command_queue queue, cl_mem image, cl_bool blocking,
					  cl_map_flags flags, const size_t *origin,
					  const size_t *region, size_t *row_pitch,
					  size_t *slice_pitch, cl_uint num_wait,
					  const cl_event *wait, cl_event *event,
					  cl_int *errcode_ret)
{
	struct access a;
	cl_int err = begin_map(&a, "clEnqueueMapImage", queue, image, flags, num_wait, wait, event,
			       blocking);
	void *ptr;

	if (err)
		return refuse_map(err, errcode_ret);
	ptr = next.clEnqueueMapImage(queue, image, access_blocking(&a, blocking), flags, origin,
				     region, row_pitch, slice_pitch, a.num_wait, a.wait, a.event,
				     &err);
	return end_map(&a, queue, image, ptr, err, blocking, errcode_ret);
}

cl_int CL_API_CALL layer_clEnqueueUnmapMemObject(cl_command_queue queue, cl_mem mem, void *ptr,
						 cl_uint num_wait, const cl_event *wait,
						 cl_event *event)
{
	struct access a;
	cl_int err = CL_SUCCESS;

	queue_bracket_close(queue);
	access_none(&a, num_wait, wait, event);
	if (memobj_live() && queue && memobj_is_import(mem))
		err = host_access_begin(&a, "clEnqueueUnmapMemObject", queue, mem, NULL,
					ACCESS_END);
	if (err)
		return err;
	err = next.clEnqueueUnmapMemObject(queue, mem, ptr, a.num_wait, a.wait, a.event);
	if (!err && a.bracket)
		mapping_unmap(ptr, a.bracket);
	return access_end(&a, err, CL_FALSE);
}
