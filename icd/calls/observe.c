/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls by which an application can observe that commands of a queue are complete, or can give
 * memory to other users: the queue's open bracket is closed first, then the driver is called.
 */
#include "icd/access/queue_bracket.h"
#include "icd/intercept.h"
#include "icd/layer.h"

cl_int CL_API_CALL layer_clFinish(cl_command_queue queue)
{
	queue_bracket_close(queue);
	return next.clFinish(queue);
}

cl_int CL_API_CALL layer_clEnqueueMarker(cl_command_queue queue, cl_event *event)
{
	queue_bracket_close(queue);
	return next.clEnqueueMarker(queue, event);
}

cl_int CL_API_CALL layer_clEnqueueBarrier(cl_command_queue queue)
{
	queue_bracket_close(queue);
	return next.clEnqueueBarrier(queue);
}

cl_int CL_API_CALL layer_clEnqueueWaitForEvents(cl_command_queue queue, cl_uint num_wait,
						const cl_event *wait)
{
	queue_bracket_close(queue);
	return next.clEnqueueWaitForEvents(queue, num_wait, wait);
}

cl_int CL_API_CALL layer_clEnqueueMarkerWithWaitList(cl_command_queue queue, cl_uint num_wait,
						     const cl_event *wait, cl_event *event)
{
	queue_bracket_close(queue);
	return next.clEnqueueMarkerWithWaitList(queue, num_wait, wait, event);
}

cl_int CL_API_CALL layer_clEnqueueBarrierWithWaitList(cl_command_queue queue, cl_uint num_wait,
						      const cl_event *wait, cl_event *event)
{
	queue_bracket_close(queue);
	return next.clEnqueueBarrierWithWaitList(queue, num_wait, wait, event);
}

cl_int CL_API_CALL layer_clEnqueueMigrateMemObjects(cl_command_queue queue, cl_uint count,
						    const cl_mem *mems,
						    cl_mem_migration_flags flags, cl_uint num_wait,
						    const cl_event *wait, cl_event *event)
{
	queue_bracket_close(queue);
	return next.clEnqueueMigrateMemObjects(queue, count, mems, flags, num_wait, wait, event);
}

cl_int CL_API_CALL layer_clEnqueueAcquireGLObjects(cl_command_queue queue, cl_uint count,
						   const cl_mem *mems, cl_uint num_wait,
						   const cl_event *wait, cl_event *event)
{
	queue_bracket_close(queue);
	return next.clEnqueueAcquireGLObjects(queue, count, mems, num_wait, wait, event);
}

cl_int CL_API_CALL layer_clEnqueueReleaseGLObjects(cl_command_queue queue, cl_uint count,
						   const cl_mem *mems, cl_uint num_wait,
						   const cl_event *wait, cl_event *event)
{
	queue_bracket_close(queue);
	return next.clEnqueueReleaseGLObjects(queue, count, mems, num_wait, wait, event);
}

cl_int CL_API_CALL layer_clEnqueueAcquireEGLObjectsKHR(cl_command_queue queue, cl_uint count,
						       const cl_mem *mems, cl_uint num_wait,
						       const cl_event *wait, cl_event *event)
{
	queue_bracket_close(queue);
	return next.clEnqueueAcquireEGLObjectsKHR(queue, count, mems, num_wait, wait, event);
}

cl_int CL_API_CALL layer_clEnqueueReleaseEGLObjectsKHR(cl_command_queue queue, cl_uint count,
						       const cl_mem *mems, cl_uint num_wait,
						       const cl_event *wait, cl_event *event)
{
	queue_bracket_close(queue);
	return next.clEnqueueReleaseEGLObjectsKHR(queue, count, mems, num_wait, wait, event);
}

cl_int CL_API_CALL layer_clEnqueueSVMFree(
	cl_command_queue queue, cl_uint count, void *pointers[],
	void(CL_CALLBACK *free_function)(cl_command_queue, cl_uint, void *[], void *),
	void *user_data, cl_uint num_wait, const cl_event *wait, cl_event *event)
{
	queue_bracket_close(queue);
	return next.clEnqueueSVMFree(queue, count, pointers, free_function, user_data, num_wait,
				     wait, event);
}

cl_int CL_API_CALL layer_clEnqueueSVMMemcpy(cl_command_queue queue, cl_bool blocking, void *to,
					    const void *from, size_t size, cl_uint num_wait,
					    const cl_event *wait, cl_event *event)
{
	queue_bracket_close(queue);
	return next.clEnqueueSVMMemcpy(queue, blocking, to, from, size, num_wait, wait, event);
}

cl_int CL_API_CALL layer_clEnqueueSVMMemFill(cl_command_queue queue, void *memory,
					     const void *pattern, size_t pattern_size, size_t size,
					     cl_uint num_wait, const cl_event *wait,
					     cl_event *event)
{
	queue_bracket_close(queue);
	return next.clEnqueueSVMMemFill(queue, memory, pattern, pattern_size, size, num_wait, wait,
					event);
}

cl_int CL_API_CALL layer_clEnqueueSVMMap(cl_command_queue queue, cl_bool blocking,
					 cl_map_flags flags, void *memory, size_t size,
					 cl_uint num_wait, const cl_event *wait, cl_event *event)
{
	queue_bracket_close(queue);
	return next.clEnqueueSVMMap(queue, blocking, flags, memory, size, num_wait, wait, event);
}

cl_int CL_API_CALL layer_clEnqueueSVMUnmap(cl_command_queue queue, void *memory, cl_uint num_wait,
					   const cl_event *wait, cl_event *event)
{
	queue_bracket_close(queue);
	return next.clEnqueueSVMUnmap(queue, memory, num_wait, wait, event);
}

cl_int CL_API_CALL layer_clEnqueueSVMMigrateMem(cl_command_queue queue, cl_uint count,
						const void **pointers, const size_t *sizes,
						cl_mem_migration_flags flags, cl_uint num_wait,
						const cl_event *wait, cl_event *event)
{
	queue_bracket_close(queue);
	return next.clEnqueueSVMMigrateMem(queue, count, pointers, sizes, flags, num_wait, wait,
					   event);
}

cl_int CL_API_CALL layer_clSetCommandQueueProperty(cl_command_queue queue,
						   cl_command_queue_properties properties,
						   cl_bool enable, cl_command_queue_properties *old)
{
	queue_bracket_forbid(); /* a queue that was in order may not stay so */
	return next.clSetCommandQueueProperty(queue, properties, enable, old);
}

cl_int CL_API_CALL layer_clReleaseCommandQueue(cl_command_queue queue)
{
	queue_bracket_forget(queue);
	return next.clReleaseCommandQueue(queue);
}

/*
 * Callbacks that come when the commands that use an object are complete.  The driver decides when,
 * and the application makes no call before which a bracket could be closed.
 */
cl_int CL_API_CALL layer_clSetMemObjectDestructorCallback(cl_mem mem,
							  void(CL_CALLBACK *notify)(cl_mem, void *),
							  void *user_data)
{
	queue_bracket_forbid();
	return next.clSetMemObjectDestructorCallback(mem, notify, user_data);
}

cl_int CL_API_CALL layer_clSetProgramReleaseCallback(cl_program program,
						     void(CL_CALLBACK *notify)(cl_program, void *),
						     void *user_data)
{
	queue_bracket_forbid();
	return next.clSetProgramReleaseCallback(program, notify, user_data);
}
