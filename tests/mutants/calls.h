/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The commands that the mutants change.  Files include the list several times, each time with other
 * meanings of ENQUEUE and MAP:
 *
 *	ENQUEUE(name, parameters, arguments, members of struct mutant_use...)
 *	MAP(name, parameters, arguments, members of struct mutant_use...)
 *
 * The members point to the parameters, so a mutant changes parameters through the members.  The
 * sixteen calls of the text come first.
 */
#define WAITS cl_uint num_events, const cl_event *events, cl_event *event

ENQUEUE(clEnqueueReadBuffer,
	(cl_command_queue queue, cl_mem mem, cl_bool blocking, size_t offset, size_t size, void *to,
	 WAITS),
	(queue, mem, blocking, offset, size, to, num_events, events, event), .from = &mem,
	.blocking = &blocking, .offset = { &offset }, .size = &size)
ENQUEUE(clEnqueueWriteBuffer,
	(cl_command_queue queue, cl_mem mem, cl_bool blocking, size_t offset, size_t size,
	 const void *from, WAITS),
	(queue, mem, blocking, offset, size, from, num_events, events, event), .to = &mem,
	.blocking = &blocking, .offset = { NULL, &offset }, .size = &size)
ENQUEUE(clEnqueueReadBufferRect,
	(cl_command_queue queue, cl_mem mem, cl_bool blocking, const size_t *origin,
	 const size_t *host_origin, const size_t *region, size_t pitch, size_t slice,
	 size_t host_pitch, size_t host_slice, void *to, WAITS),
	(queue, mem, blocking, origin, host_origin, region, pitch, slice, host_pitch, host_slice,
	 to, num_events, events, event),
	.from = &mem, .blocking = &blocking, .origin = { &origin, &host_origin },
	.pitch = { &pitch, &host_pitch })
ENQUEUE(clEnqueueWriteBufferRect,
	(cl_command_queue queue, cl_mem mem, cl_bool blocking, const size_t *origin,
	 const size_t *host_origin, const size_t *region, size_t pitch, size_t slice,
	 size_t host_pitch, size_t host_slice, const void *from, WAITS),
	(queue, mem, blocking, origin, host_origin, region, pitch, slice, host_pitch, host_slice,
	 from, num_events, events, event),
	.to = &mem, .blocking = &blocking, .origin = { &host_origin, &origin },
	.pitch = { &host_pitch, &pitch })
ENQUEUE(clEnqueueCopyBuffer,
	(cl_command_queue queue, cl_mem from, cl_mem to, size_t from_offset, size_t to_offset,
	 size_t size, WAITS),
	(queue, from, to, from_offset, to_offset, size, num_events, events, event), .from = &from,
	.to = &to, .offset = { &from_offset, &to_offset }, .size = &size)
ENQUEUE(clEnqueueCopyBufferRect,
	(cl_command_queue queue, cl_mem from, cl_mem to, const size_t *from_origin,
	 const size_t *to_origin, const size_t *region, size_t from_pitch, size_t from_slice,
	 size_t to_pitch, size_t to_slice, WAITS),
	(queue, from, to, from_origin, to_origin, region, from_pitch, from_slice, to_pitch,
	 to_slice, num_events, events, event),
	.from = &from, .to = &to, .origin = { &from_origin, &to_origin },
	.pitch = { &from_pitch, &to_pitch })
ENQUEUE(clEnqueueFillBuffer,
	(cl_command_queue queue, cl_mem mem, const void *pattern, size_t pattern_size,
	 size_t offset, size_t size, WAITS),
	(queue, mem, pattern, pattern_size, offset, size, num_events, events, event), .to = &mem,
	.offset = { NULL, &offset }, .size = &size, .unit = pattern_size)
ENQUEUE(clEnqueueReadImage,
	(cl_command_queue queue, cl_mem mem, cl_bool blocking, const size_t *origin,
	 const size_t *region, size_t pitch, size_t slice, void *to, WAITS),
	(queue, mem, blocking, origin, region, pitch, slice, to, num_events, events, event),
	.from = &mem, .blocking = &blocking, .origin = { &origin }, .pitch = { NULL, &pitch })
ENQUEUE(clEnqueueWriteImage,
	(cl_command_queue queue, cl_mem mem, cl_bool blocking, const size_t *origin,
	 const size_t *region, size_t pitch, size_t slice, const void *from, WAITS),
	(queue, mem, blocking, origin, region, pitch, slice, from, num_events, events, event),
	.to = &mem, .blocking = &blocking, .origin = { NULL, &origin }, .pitch = { &pitch })
ENQUEUE(clEnqueueCopyImage,
	(cl_command_queue queue, cl_mem from, cl_mem to, const size_t *from_origin,
	 const size_t *to_origin, const size_t *region, WAITS),
	(queue, from, to, from_origin, to_origin, region, num_events, events, event), .from = &from,
	.to = &to, .origin = { &from_origin, &to_origin })
ENQUEUE(clEnqueueCopyImageToBuffer,
	(cl_command_queue queue, cl_mem from, cl_mem to, const size_t *from_origin,
	 const size_t *region, size_t to_offset, WAITS),
	(queue, from, to, from_origin, region, to_offset, num_events, events, event), .from = &from,
	.to = &to, .origin = { &from_origin }, .offset = { NULL, &to_offset })
ENQUEUE(clEnqueueCopyBufferToImage,
	(cl_command_queue queue, cl_mem from, cl_mem to, size_t from_offset,
	 const size_t *to_origin, const size_t *region, WAITS),
	(queue, from, to, from_offset, to_origin, region, num_events, events, event), .from = &from,
	.to = &to, .origin = { NULL, &to_origin }, .offset = { &from_offset })
ENQUEUE(clEnqueueFillImage,
	(cl_command_queue queue, cl_mem mem, const void *color, const size_t *origin,
	 const size_t *region, WAITS),
	(queue, mem, color, origin, region, num_events, events, event), .to = &mem,
	.origin = { NULL, &origin })
ENQUEUE(clEnqueueUnmapMemObject, (cl_command_queue queue, cl_mem mem, void *mapped, WAITS),
	(queue, mem, mapped, num_events, events, event), .to = &mem)
MAP(clEnqueueMapBuffer,
    (cl_command_queue queue, cl_mem mem, cl_bool blocking, cl_map_flags flags, size_t offset,
     size_t size, WAITS, cl_int *errcode_ret),
    (queue, mem, blocking, flags, offset, size, num_events, events, event, errcode_ret),
    .from = &mem, .blocking = &blocking, .offset = { &offset }, .map = flags)
MAP(clEnqueueMapImage,
    (cl_command_queue queue, cl_mem mem, cl_bool blocking, cl_map_flags flags, const size_t *origin,
     const size_t *region, size_t *pitch, size_t *slice, WAITS, cl_int *errcode_ret),
    (queue, mem, blocking, flags, origin, region, pitch, slice, num_events, events, event,
     errcode_ret),
    .from = &mem, .blocking = &blocking, .origin = { &origin }, .map = flags)
ENQUEUE(clEnqueueNDRangeKernel,
	(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions, const size_t *offset,
	 const size_t *global, const size_t *local, WAITS),
	(queue, kernel, dimensions, offset, global, local, num_events, events, event),
	.from = (cl_mem[]){ mutant_argument(kernel) })
ENQUEUE(clEnqueueTask, (cl_command_queue queue, cl_kernel kernel, WAITS),
	(queue, kernel, num_events, events, event), .from = (cl_mem[]){ mutant_argument(kernel) })
ENQUEUE(clEnqueueNativeKernel,
	(cl_command_queue queue, void(CL_CALLBACK *function)(void *), void *args, size_t size,
	 cl_uint num_mems, const cl_mem *mems, const void **slots, WAITS),
	(queue, function, args, size, num_mems, mems, slots, num_events, events, event),
	.from = (cl_mem[]){ num_mems && mems ? mems[0] : NULL })
ENQUEUE(clEnqueueMigrateMemObjects,
	(cl_command_queue queue, cl_uint num_mems, const cl_mem *mems, cl_mem_migration_flags flags,
	 WAITS),
	(queue, num_mems, mems, flags, num_events, events, event),
	.from = (cl_mem[]){ num_mems && mems ? mems[0] : NULL })

#undef WAITS
