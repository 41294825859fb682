/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every call that the layer intercepts, a row each.  To intercept a call is to add its row.
 *
 * An includer says what a kind of row means to it, by a macro, or means the same by all: CALL(name).
 * The functions of the first five kinds are made of their rows, in calls/command.c and calls/map.c.
 *
 *	MOVES(name, read, written, parameters, arguments)
 *	COPIES(name, read, written, parameters, arguments)
 *		one of the sixteen commands by which the host, or a copy, accesses memory objects.
 *		@read, @written: the parameter that is such an object, or NULL.  MOVES may block.
 *	MAPS(name, mem, parameters, arguments)
 *		two more of the sixteen: maps @mem
 *	RUNS(name, parameters, arguments)
 *		enqueues a kernel, which uses the memory objects that are its arguments
 *	SHOWS(name, parameters, arguments)
 *		lets the application observe that commands of the queue are complete, or gives
 *		memory to other users
 *	CALLS(name)
 *		layer_NAME() is written by hand, in the file that the comment above names
 *	RECORDS(name, count, mems)
 *		records one of the sixteen into a command buffer, calls/command_copy.c.  @count words
 *		are its parameters (words.h), the list of properties included.  @mems of these
 *		are memory objects: they follow the list.
 *	EXTENDS(type, name, parameters)
 *		a function of an extension, found by address, with a layer_NAME() written by hand
 */
#ifdef CALL
#define MOVES(name, read, written, parameters, arguments) CALL(name)
#define COPIES(name, read, written, parameters, arguments) CALL(name)
#define MAPS(name, mem, parameters, arguments) CALL(name)
#define RUNS(name, parameters, arguments) CALL(name)
#define SHOWS(name, parameters, arguments) CALL(name)
#define CALLS(name) CALL(name)
#endif
#ifdef EXTENSION
#define RECORDS(name, count, mems) EXTENSION(cl_int, name, (WORDS_##count))
#define EXTENDS(type, name, parameters) EXTENSION(type, name, parameters)
#endif
/* What an includer does not define is left out. */
#ifndef MOVES
#define MOVES(name, read, written, parameters, arguments)
#define COPIES(name, read, written, parameters, arguments)
#define RUNS(name, parameters, arguments)
#define SHOWS(name, parameters, arguments)
#endif
#ifndef MAPS
#define MAPS(name, mem, parameters, arguments)
#endif
#ifndef CALLS
#define CALLS(name)
#endif
#ifndef RECORDS
#define RECORDS(name, count, mems)
#endif
#ifndef EXTENDS
#define EXTENDS(type, name, parameters)
#endif
#define EVENTS cl_uint num_wait, const cl_event *wait, cl_event *event

MOVES(clEnqueueReadBuffer, buffer, NULL,
      (cl_command_queue queue, cl_mem buffer, cl_bool blocking, size_t offset, size_t size,
       void *ptr, EVENTS),
      (queue, buffer, blocking, offset, size, ptr, num_wait, wait, event))
MOVES(clEnqueueWriteBuffer, NULL, buffer,
      (cl_command_queue queue, cl_mem buffer, cl_bool blocking, size_t offset, size_t size,
       const void *ptr, EVENTS),
      (queue, buffer, blocking, offset, size, ptr, num_wait, wait, event))
MOVES(clEnqueueReadBufferRect, buffer, NULL,
      (cl_command_queue queue, cl_mem buffer, cl_bool blocking, const size_t *buffer_at,
       const size_t *host_at, const size_t *region, size_t buffer_row, size_t buffer_slice,
       size_t row, size_t slice, void *ptr, EVENTS),
      (queue, buffer, blocking, buffer_at, host_at, region, buffer_row, buffer_slice, row, slice,
       ptr, num_wait, wait, event))
MOVES(clEnqueueWriteBufferRect, NULL, buffer,
      (cl_command_queue queue, cl_mem buffer, cl_bool blocking, const size_t *buffer_at,
       const size_t *host_at, const size_t *region, size_t buffer_row, size_t buffer_slice,
       size_t row, size_t slice, const void *ptr, EVENTS),
      (queue, buffer, blocking, buffer_at, host_at, region, buffer_row, buffer_slice, row, slice,
       ptr, num_wait, wait, event))
MOVES(clEnqueueReadImage, image, NULL,
      (cl_command_queue queue, cl_mem image, cl_bool blocking, const size_t *origin,
       const size_t *region, size_t row, size_t slice, void *ptr, EVENTS),
      (queue, image, blocking, origin, region, row, slice, ptr, num_wait, wait, event))
MOVES(clEnqueueWriteImage, NULL, image,
      (cl_command_queue queue, cl_mem image, cl_bool blocking, const size_t *origin,
       const size_t *region, size_t row, size_t slice, const void *ptr, EVENTS),
      (queue, image, blocking, origin, region, row, slice, ptr, num_wait, wait, event))

COPIES(clEnqueueCopyBuffer, src, dst,
       (cl_command_queue queue, cl_mem src, cl_mem dst, size_t src_offset, size_t dst_offset,
	size_t size, EVENTS),
       (queue, src, dst, src_offset, dst_offset, size, num_wait, wait, event))
COPIES(clEnqueueCopyBufferRect, src, dst,
       (cl_command_queue queue, cl_mem src, cl_mem dst, const size_t *src_at, const size_t *dst_at,
	const size_t *region, size_t src_row, size_t src_slice, size_t dst_row, size_t dst_slice,
	EVENTS),
       (queue, src, dst, src_at, dst_at, region, src_row, src_slice, dst_row, dst_slice, num_wait,
	wait, event))
COPIES(clEnqueueCopyImage, src, dst,
       (cl_command_queue queue, cl_mem src, cl_mem dst, const size_t *src_at, const size_t *dst_at,
	const size_t *region, EVENTS),
       (queue, src, dst, src_at, dst_at, region, num_wait, wait, event))
COPIES(clEnqueueCopyImageToBuffer, src, dst,
       (cl_command_queue queue, cl_mem src, cl_mem dst, const size_t *src_at, const size_t *region,
	size_t dst_offset, EVENTS),
       (queue, src, dst, src_at, region, dst_offset, num_wait, wait, event))
COPIES(clEnqueueCopyBufferToImage, src, dst,
       (cl_command_queue queue, cl_mem src, cl_mem dst, size_t src_offset, const size_t *dst_at,
	const size_t *region, EVENTS),
       (queue, src, dst, src_offset, dst_at, region, num_wait, wait, event))
COPIES(clEnqueueFillBuffer, NULL, buffer,
       (cl_command_queue queue, cl_mem buffer, const void *pattern, size_t pattern_size,
	size_t offset, size_t size, EVENTS),
       (queue, buffer, pattern, pattern_size, offset, size, num_wait, wait, event))
COPIES(clEnqueueFillImage, NULL, image,
       (cl_command_queue queue, cl_mem image, const void *color, const size_t *origin,
	const size_t *region, EVENTS),
       (queue, image, color, origin, region, num_wait, wait, event))

MAPS(clEnqueueMapBuffer, buffer,
     (cl_command_queue queue, cl_mem buffer, cl_bool blocking, cl_map_flags flags, size_t offset,
      size_t size, EVENTS, cl_int *errcode_ret),
     (queue, buffer, blocking, flags, offset, size, num_wait, wait, event, errcode_ret))
MAPS(clEnqueueMapImage, image,
     (cl_command_queue queue, cl_mem image, cl_bool blocking, cl_map_flags flags,
      const size_t *origin, const size_t *region, size_t *row_pitch, size_t *slice_pitch, EVENTS,
      cl_int *errcode_ret),
     (queue, image, blocking, flags, origin, region, row_pitch, slice_pitch, num_wait, wait, event,
      errcode_ret))

RUNS(clEnqueueNDRangeKernel,
     (cl_command_queue queue, cl_kernel kernel, cl_uint work_dim, const size_t *offset,
      const size_t *global, const size_t *local, EVENTS),
     (queue, kernel, work_dim, offset, global, local, num_wait, wait, event))
RUNS(clEnqueueTask, (cl_command_queue queue, cl_kernel kernel, EVENTS),
     (queue, kernel, num_wait, wait, event))

SHOWS(clFinish, (cl_command_queue queue), (queue))
SHOWS(clEnqueueMarker, (cl_command_queue queue, cl_event *event), (queue, event))
SHOWS(clEnqueueBarrier, (cl_command_queue queue), (queue))
SHOWS(clEnqueueWaitForEvents, (cl_command_queue queue, cl_uint num_wait, const cl_event *wait),
      (queue, num_wait, wait))
SHOWS(clEnqueueMarkerWithWaitList, (cl_command_queue queue, EVENTS), (queue, num_wait, wait, event))
SHOWS(clEnqueueBarrierWithWaitList, (cl_command_queue queue, EVENTS),
      (queue, num_wait, wait, event))
SHOWS(clEnqueueMigrateMemObjects,
      (cl_command_queue queue, cl_uint count, const cl_mem *mems, cl_mem_migration_flags flags,
       EVENTS),
      (queue, count, mems, flags, num_wait, wait, event))
SHOWS(clEnqueueAcquireGLObjects,
      (cl_command_queue queue, cl_uint count, const cl_mem *mems, EVENTS),
      (queue, count, mems, num_wait, wait, event))
SHOWS(clEnqueueReleaseGLObjects,
      (cl_command_queue queue, cl_uint count, const cl_mem *mems, EVENTS),
      (queue, count, mems, num_wait, wait, event))
SHOWS(clEnqueueAcquireEGLObjectsKHR,
      (cl_command_queue queue, cl_uint count, const cl_mem *mems, EVENTS),
      (queue, count, mems, num_wait, wait, event))
SHOWS(clEnqueueReleaseEGLObjectsKHR,
      (cl_command_queue queue, cl_uint count, const cl_mem *mems, EVENTS),
      (queue, count, mems, num_wait, wait, event))
SHOWS(clEnqueueSVMFree,
      (cl_command_queue queue, cl_uint count, void *pointers[],
       void(CL_CALLBACK *release)(cl_command_queue, cl_uint, void *[], void *), void *user_data,
       EVENTS),
      (queue, count, pointers, release, user_data, num_wait, wait, event))
SHOWS(clEnqueueSVMMemcpy,
      (cl_command_queue queue, cl_bool blocking, void *to, const void *from, size_t size, EVENTS),
      (queue, blocking, to, from, size, num_wait, wait, event))
SHOWS(clEnqueueSVMMemFill,
      (cl_command_queue queue, void *memory, const void *pattern, size_t pattern_size, size_t size,
       EVENTS),
      (queue, memory, pattern, pattern_size, size, num_wait, wait, event))
SHOWS(clEnqueueSVMMap,
      (cl_command_queue queue, cl_bool blocking, cl_map_flags flags, void *memory, size_t size,
       EVENTS),
      (queue, blocking, flags, memory, size, num_wait, wait, event))
SHOWS(clEnqueueSVMUnmap, (cl_command_queue queue, void *memory, EVENTS),
      (queue, memory, num_wait, wait, event))
SHOWS(clEnqueueSVMMigrateMem,
      (cl_command_queue queue, cl_uint count, const void **pointers, const size_t *sizes,
       cl_mem_migration_flags flags, EVENTS),
      (queue, count, pointers, sizes, flags, num_wait, wait, event))

/* icd/entry/address.c */
CALLS(clGetExtensionFunctionAddress)
CALLS(clGetExtensionFunctionAddressForPlatform)
/* calls/info.c */
CALLS(clGetPlatformIDs)
CALLS(clGetPlatformInfo)
CALLS(clGetDeviceInfo)
/* calls/context.c */
CALLS(clCreateContext)
CALLS(clCreateContextFromType)
CALLS(clRetainContext)
CALLS(clReleaseContext)
/* calls/mem_object.c */
CALLS(clRetainMemObject)
CALLS(clReleaseMemObject)
CALLS(clGetMemObjectInfo)
CALLS(clGetImageInfo)
/* calls/derive.c */
CALLS(clCreateSubBuffer)
CALLS(clCreateImage)
/* calls/external_memory.c */
CALLS(clCreateBufferWithProperties)
CALLS(clCreateImageWithProperties)
/* calls/map.c: the last of the sixteen */
CALLS(clEnqueueUnmapMemObject)
/* calls/kernel.c */
CALLS(clCreateKernel)
CALLS(clCreateKernelsInProgram)
CALLS(clCloneKernel)
CALLS(clReleaseKernel)
CALLS(clSetKernelArg)
CALLS(clSetKernelArgSVMPointer)
CALLS(clEnqueueNativeKernel)
/* calls/event.c */
CALLS(clRetainEvent)
CALLS(clReleaseEvent)
CALLS(clGetEventInfo)
CALLS(clGetEventProfilingInfo)
CALLS(clSetEventCallback)
/* calls/command.c */
CALLS(clSetCommandQueueProperty)
CALLS(clReleaseCommandQueue)
CALLS(clSetMemObjectDestructorCallback)
CALLS(clSetProgramReleaseCallback)

RECORDS(clCommandCopyBufferKHR, 12, 2)
RECORDS(clCommandCopyBufferRectKHR, 16, 2)
RECORDS(clCommandCopyBufferToImageKHR, 12, 2)
RECORDS(clCommandCopyImageKHR, 12, 2)
RECORDS(clCommandCopyImageToBufferKHR, 12, 2)
RECORDS(clCommandFillBufferKHR, 12, 1)
RECORDS(clCommandFillImageKHR, 12, 1) /* has a parameter less */
/* calls/command_buffer.c */
EXTENDS(cl_command_buffer_khr, clCreateCommandBufferKHR,
	(cl_uint num_queues, const cl_command_queue *queues,
	 const cl_command_buffer_properties_khr *properties, cl_int *errcode_ret))
EXTENDS(cl_command_buffer_khr, clRemapCommandBufferKHR,
	(cl_command_buffer_khr buffer, cl_bool automatic, cl_uint num_queues,
	 const cl_command_queue *queues, cl_uint num_handles, const cl_mutable_command_khr *handles,
	 cl_mutable_command_khr *handles_ret, cl_int *errcode_ret))
EXTENDS(cl_int, clRetainCommandBufferKHR, (cl_command_buffer_khr buffer))
EXTENDS(cl_int, clReleaseCommandBufferKHR, (cl_command_buffer_khr buffer))
EXTENDS(cl_int, clEnqueueCommandBufferKHR,
	(cl_uint num_queues, cl_command_queue *queues, cl_command_buffer_khr buffer, EVENTS))
EXTENDS(cl_int, clCommandNDRangeKernelKHR,
	(cl_command_buffer_khr buffer, cl_command_queue queue, const cl_properties *properties,
	 cl_kernel kernel, cl_uint work_dim, const size_t *offset, const size_t *global,
	 const size_t *local, cl_uint num_sync_points, const cl_sync_point_khr *sync_points,
	 cl_sync_point_khr *sync_point, cl_mutable_command_khr *mutable_handle))
/* calls/command_update.c */
EXTENDS(cl_int, clUpdateMutableCommandsKHR, (WORDS_4))
/* calls/kernel.c: of cl_intel_concurrent_dispatch */
EXTENDS(cl_int, clEnqueueNDCountKernelINTEL,
	(cl_command_queue queue, cl_kernel kernel, cl_uint work_dim, const size_t *offset,
	 const size_t *count, const size_t *local, EVENTS))
/* calls/external.c */
EXTENDS(cl_int, clEnqueueAcquireExternalMemObjectsKHR,
	(cl_command_queue queue, cl_uint count, const cl_mem *mems, EVENTS))
EXTENDS(cl_int, clEnqueueReleaseExternalMemObjectsKHR,
	(cl_command_queue queue, cl_uint count, const cl_mem *mems, EVENTS))

#undef CALL
#undef EXTENSION
#undef MOVES
#undef COPIES
#undef MAPS
#undef RUNS
#undef SHOWS
#undef CALLS
#undef RECORDS
#undef EXTENDS
#undef EVENTS
