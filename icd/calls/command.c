/* SPDX-License-Identifier: Apache-2.0 */
/* The wrappers of the commands that table.h lists, and what they have in common. */
#include "icd/calls/command.h"

#include "icd/config.h"
#include "icd/intercept.h"
#include "icd/objects/context.h"
#include "icd/objects/kernel_args.h"
#include "util/log.h"

/* Tells the context's callback that @function is refused, for the reason in the log: CL_INVALID_OPERATION. */
static cl_int command_refuse(const struct memobj *obj, const char *function)
{
	context_notify(obj->context, function, CL_INVALID_OPERATION);
	return CL_INVALID_OPERATION;
}

/* What is read, and what is written; one is an import.  The sixteen are forbidden to imports by clImportMemoryARM alone. */
static cl_int command_check_objects(const struct memobj *read, const struct memobj *written,
				    const char *function)
{
	const bool is_arm = (read && !read->external) || (written && !written->external);

	if (is_arm && !config.host_access) {
		log_error("imported memory cannot be passed to %s before version 1.1.0 of "
			  "cl_arm_import_memory (CLIMPORT_VERSION=1.1.0)",
			  function);
		return command_refuse(written ? written : read, function);
	}
	if (!written || written->region->access & IMPORT_WRITE)
		return CL_SUCCESS;
	log_error("%s would write to memory that is mapped read-only", function);
	return command_refuse(written, function);
}

cl_int command_refuse_recorded(const struct memobj *obj, const char *function)
{
	log_error("a command buffer cannot use memory that is synchronized around each command; "
		  "enqueue the command%s",
		  import_needs_bracket(obj->region)
			  ? ", or import the dma-buf with "
			    "CL_IMPORT_DMA_BUF_DATA_CONSISTENCY_WITH_HOST_ARM CL_FALSE"
			  : "");
	return command_refuse(obj, function);
}

cl_int command_check_recorded(const char *function, cl_mem read, cl_mem written)
{
	struct memobj *objs[] = { memobj_get(read), memobj_get(written) };
	cl_int err = objs[0] || objs[1] ? command_check_objects(objs[0], objs[1], function)
					: CL_SUCCESS;

	for (int i = 0; i < 2 && !err; i++)
		if (objs[i] && !memobj_is_recordable(objs[i]))
			err = command_refuse_recorded(objs[i], function);
	memobj_put(objs[0]);
	memobj_put(objs[1]);
	return err;
}

/*
 * In some drivers (PoCL 3.1) a command behind an event that has failed already never runs and
 * never fails.  So the layer refuses a command that blocks behind such an event.  The layer does
 * not wait for the list, because the driver has not looked at the command's arguments yet, and
 * leaves other errors to the driver.
 */
bool command_list_failed(cl_uint num_wait, const cl_event *wait)
{
	for (cl_uint i = 0; wait && i < num_wait; i++)
		if (wait[i] && bracket_event_status(wait[i]) < 0)
			return true;
	return false;
}

/* @objs: what is read, and what is written.  The driver has the error for an unknown queue. */
static cl_int command_check(const struct access *a, const char *function, cl_command_queue queue,
			    struct memobj *const *objs, bool blocks)
{
	cl_context context;
	cl_int err;

	if (blocks && config.host_access && command_list_failed(a->num_wait, a->wait))
		return CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
	err = next.clGetCommandQueueInfo(queue, CL_QUEUE_CONTEXT, sizeof(context), &context, NULL);
	return err ? err : command_check_objects(objs[0], objs[1], function);
}

cl_int command_begin_host(struct access *a, const char *function, cl_command_queue queue,
			  cl_mem read, cl_mem written, unsigned int edges, cl_bool *blocking)
{
	struct memobj *objs[2];
	cl_int err = CL_SUCCESS;

	queue_bracket_close(queue);
	if (!queue || !memobj_live())
		return CL_SUCCESS;
	objs[0] = memobj_get(read);
	objs[1] = memobj_get(written);
	if (objs[0] || objs[1]) {
		err = command_check(a, function, queue, objs, blocking && *blocking);
		if (!err) {
			memobj_list_add(&a->imports, read);
			memobj_list_add(&a->imports, written);
			err = access_begin(a, queue, edges | ACCESS_BY_HOST);
		}
		/* The driver might never wake up if the bracket fails: access_end() waits. */
		if (blocking && a->imports.count)
			*blocking = CL_FALSE;
	}
	memobj_put(objs[0]);
	memobj_put(objs[1]);
	return err;
}

cl_int command_begin_kernel(struct access *a, cl_command_queue queue, cl_kernel kernel)
{
	kernel_args_imports(kernel, &a->imports);
	return access_begin(a, queue, ACCESS_BOTH | ACCESS_JOIN);
}

/*
 * The way of a command: layer_clEnqueueNDRangeKernel() and the others are made here.  command_begin_kernel() ->
 * access_begin(): the open bracket of the queue, or one of its own -> the driver -> access_end().  START comes in
 * bracket_on_ready(), END in bracket_on_done().  The driver gets the wait list and the event of the access in place of the
 * application's.  @is_ours: whether an import can be concerned at all.
 */
#define COMMAND(name, parameters, arguments, blocks, is_ours, begin) \
	static APART cl_int command_##name parameters                \
	{                                                            \
		const cl_bool waits = blocks;                        \
		struct access a;                                     \
		cl_int err;                                          \
                                                                     \
		access_none(&a, num_wait, wait, event);              \
		err = begin;                                         \
		if (err)                                             \
			return err;                                  \
		num_wait = a.num_wait;                               \
		wait = a.wait;                                       \
		event = a.event;                                     \
		return access_end(&a, next.name arguments, waits);   \
	}                                                            \
                                                                     \
	cl_int CL_API_CALL layer_##name parameters                   \
	{                                                            \
		if ((is_ours) || queue_bracket_any())                \
			return command_##name arguments;             \
		return next.name arguments;                          \
	}

#define MOVES(name, read, written, parameters, arguments)             \
	COMMAND(name, parameters, arguments, blocking, memobj_live(), \
		command_begin_host(&a, #name, queue, read, written, ACCESS_BOTH, &blocking))

#define COPIES(name, read, written, parameters, arguments)            \
	COMMAND(name, parameters, arguments, CL_FALSE, memobj_live(), \
		command_begin_host(&a, #name, queue, read, written, ACCESS_BOTH, NULL))

#define RUNS(name, parameters, arguments)                                 \
	COMMAND(name, parameters, arguments, CL_FALSE, kernel_args_any(), \
		command_begin_kernel(&a, queue, kernel))

/* The queue's open bracket is closed before the driver is called. */
#define SHOWS(name, parameters, arguments)         \
	cl_int CL_API_CALL layer_##name parameters \
	{                                          \
		queue_bracket_close(queue);        \
		return next.name arguments;        \
	}

#include "icd/table.h"

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
