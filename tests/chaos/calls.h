/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions of the dispatch table for which the chaos layer stands in.  Files include the list
 * several times, each time with other meanings of:
 *
 *	STATUS(name, parameters, arguments)	returns the error
 *	CREATE(type, name, parameters, arguments)	returns an object, the error by errcode_ret
 *	ENQUEUE(name, parameters, arguments)	has queue, num_events, events and event
 *	MAP(name, parameters, arguments)	is an ENQUEUE and a CREATE
 *
 * Retain, release and clSetUserEventStatus are missing, since no caller could recover from a
 * failure.
 */
#define WAITS cl_uint num_events, const cl_event *events, cl_event *event
#define INFO(object, name) object, name, size_t size, void *result, size_t *size_ret
#define OF(object) (object, name, size, result, size_ret)

STATUS(clGetPlatformInfo, (INFO(cl_platform_id platform, cl_platform_info name)), OF(platform))
STATUS(clGetDeviceIDs,
       (cl_platform_id platform, cl_device_type type, cl_uint room, cl_device_id *devices,
	cl_uint *count),
       (platform, type, room, devices, count))
STATUS(clGetDeviceInfo, (INFO(cl_device_id device, cl_device_info name)), OF(device))
STATUS(clGetContextInfo, (INFO(cl_context context, cl_context_info name)), OF(context))
STATUS(clGetCommandQueueInfo, (INFO(cl_command_queue queue, cl_command_queue_info name)), OF(queue))
STATUS(clGetMemObjectInfo, (INFO(cl_mem mem, cl_mem_info name)), OF(mem))
STATUS(clGetImageInfo, (INFO(cl_mem mem, cl_image_info name)), OF(mem))
STATUS(clGetKernelInfo, (INFO(cl_kernel kernel, cl_kernel_info name)), OF(kernel))
STATUS(clGetEventInfo, (INFO(cl_event of, cl_event_info name)), OF(of))
STATUS(clGetEventProfilingInfo, (INFO(cl_event of, cl_profiling_info name)), OF(of))
STATUS(clGetProgramBuildInfo,
       (cl_program program, INFO(cl_device_id device, cl_program_build_info name)),
       (program, device, name, size, result, size_ret))
STATUS(clGetKernelWorkGroupInfo,
       (cl_kernel kernel, INFO(cl_device_id device, cl_kernel_work_group_info name)),
       (kernel, device, name, size, result, size_ret))
STATUS(clGetSupportedImageFormats,
       (cl_context context, cl_mem_flags flags, cl_mem_object_type type, cl_uint room,
	cl_image_format *formats, cl_uint *count),
       (context, flags, type, room, formats, count))

CREATE(cl_context, clCreateContext,
       (const cl_context_properties *properties, cl_uint count, const cl_device_id *devices,
	void(CL_CALLBACK *notify)(const char *, const void *, size_t, void *), void *data,
	cl_int *errcode_ret),
       (properties, count, devices, notify, data, errcode_ret))
CREATE(cl_context, clCreateContextFromType,
       (const cl_context_properties *properties, cl_device_type type,
	void(CL_CALLBACK *notify)(const char *, const void *, size_t, void *), void *data,
	cl_int *errcode_ret),
       (properties, type, notify, data, errcode_ret))
CREATE(cl_command_queue, clCreateCommandQueue,
       (cl_context context, cl_device_id device, cl_command_queue_properties properties,
	cl_int *errcode_ret),
       (context, device, properties, errcode_ret))
CREATE(cl_command_queue, clCreateCommandQueueWithProperties,
       (cl_context context, cl_device_id device, const cl_queue_properties *properties,
	cl_int *errcode_ret),
       (context, device, properties, errcode_ret))
CREATE(cl_mem, clCreateBuffer,
       (cl_context context, cl_mem_flags flags, size_t size, void *host, cl_int *errcode_ret),
       (context, flags, size, host, errcode_ret))
CREATE(cl_mem, clCreateSubBuffer,
       (cl_mem mem, cl_mem_flags flags, cl_buffer_create_type type, const void *info,
	cl_int *errcode_ret),
       (mem, flags, type, info, errcode_ret))
CREATE(cl_mem, clCreateImage,
       (cl_context context, cl_mem_flags flags, const cl_image_format *format,
	const cl_image_desc *desc, void *host, cl_int *errcode_ret),
       (context, flags, format, desc, host, errcode_ret))
CREATE(cl_program, clCreateProgramWithSource,
       (cl_context context, cl_uint count, const char **strings, const size_t *lengths,
	cl_int *errcode_ret),
       (context, count, strings, lengths, errcode_ret))
CREATE(cl_kernel, clCreateKernel, (cl_program program, const char *name, cl_int *errcode_ret),
       (program, name, errcode_ret))
CREATE(cl_kernel, clCloneKernel, (cl_kernel kernel, cl_int *errcode_ret), (kernel, errcode_ret))
CREATE(cl_event, clCreateUserEvent, (cl_context context, cl_int *errcode_ret),
       (context, errcode_ret))

STATUS(clBuildProgram,
       (cl_program program, cl_uint count, const cl_device_id *devices, const char *options,
	void(CL_CALLBACK *notify)(cl_program, void *), void *data),
       (program, count, devices, options, notify, data))
STATUS(clSetKernelArg, (cl_kernel kernel, cl_uint index, size_t size, const void *argument),
       (kernel, index, size, argument))
STATUS(clSetMemObjectDestructorCallback,
       (cl_mem mem, void(CL_CALLBACK *notify)(cl_mem, void *), void *data), (mem, notify, data))
STATUS(clSetContextDestructorCallback,
       (cl_context context, void(CL_CALLBACK *notify)(cl_context, void *), void *data),
       (context, notify, data))
STATUS(clWaitForEvents, (cl_uint count, const cl_event *list), (count, list))
STATUS(clFlush, (cl_command_queue queue), (queue))
STATUS(clFinish, (cl_command_queue queue), (queue))

ENQUEUE(clEnqueueNDRangeKernel,
	(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions, const size_t *offset,
	 const size_t *global, const size_t *local, WAITS),
	(queue, kernel, dimensions, offset, global, local, num_events, events, event))
ENQUEUE(clEnqueueNativeKernel,
	(cl_command_queue queue, void(CL_CALLBACK *function)(void *), void *args, size_t size,
	 cl_uint num_mems, const cl_mem *mems, const void **slots, WAITS),
	(queue, function, args, size, num_mems, mems, slots, num_events, events, event))
ENQUEUE(clEnqueueReadBuffer,
	(cl_command_queue queue, cl_mem mem, cl_bool blocking, size_t offset, size_t size, void *to,
	 WAITS),
	(queue, mem, blocking, offset, size, to, num_events, events, event))
ENQUEUE(clEnqueueWriteBuffer,
	(cl_command_queue queue, cl_mem mem, cl_bool blocking, size_t offset, size_t size,
	 const void *from, WAITS),
	(queue, mem, blocking, offset, size, from, num_events, events, event))
ENQUEUE(clEnqueueCopyBuffer,
	(cl_command_queue queue, cl_mem from, cl_mem to, size_t from_offset, size_t to_offset,
	 size_t size, WAITS),
	(queue, from, to, from_offset, to_offset, size, num_events, events, event))
ENQUEUE(clEnqueueFillBuffer,
	(cl_command_queue queue, cl_mem mem, const void *pattern, size_t pattern_size,
	 size_t offset, size_t size, WAITS),
	(queue, mem, pattern, pattern_size, offset, size, num_events, events, event))
ENQUEUE(clEnqueueReadImage,
	(cl_command_queue queue, cl_mem mem, cl_bool blocking, const size_t *origin,
	 const size_t *region, size_t row, size_t slice, void *to, WAITS),
	(queue, mem, blocking, origin, region, row, slice, to, num_events, events, event))
ENQUEUE(clEnqueueUnmapMemObject, (cl_command_queue queue, cl_mem mem, void *at, WAITS),
	(queue, mem, at, num_events, events, event))
ENQUEUE(clEnqueueMigrateMemObjects,
	(cl_command_queue queue, cl_uint count, const cl_mem *mems, cl_mem_migration_flags flags,
	 WAITS),
	(queue, count, mems, flags, num_events, events, event))
ENQUEUE(clEnqueueMarkerWithWaitList, (cl_command_queue queue, WAITS),
	(queue, num_events, events, event))
ENQUEUE(clEnqueueBarrierWithWaitList, (cl_command_queue queue, WAITS),
	(queue, num_events, events, event))
MAP(clEnqueueMapBuffer,
    (cl_command_queue queue, cl_mem mem, cl_bool blocking, cl_map_flags flags, size_t offset,
     size_t size, WAITS, cl_int *errcode_ret),
    (queue, mem, blocking, flags, offset, size, num_events, events, event, errcode_ret))

#undef WAITS
#undef INFO
#undef OF
