/* SPDX-License-Identifier: Apache-2.0 */
#include "command_buffer.h"

#include <stdlib.h>
#include <string.h>

#include "access.h"
#include "import/lock.h"
#include "import/log.h"
#include "kernel.h"
#include "layer.h"
#include "table.h"

/* Lives as long as the application has references, which it counts itself. */
struct command_buffer {
	struct command_target target;
	cl_command_queue queue; /* the first one it was made for */
	unsigned int handles;
	size_t count;
	struct memobj **imports; /* bracketed ones that recorded commands use, held */
};

LOCK_DEFINE(command_lock, LOCK_LAST);
static struct table buffers = TABLE_INIT; /* cl_command_buffer_khr -> struct command_buffer */

static bool buffer_add(cl_command_buffer_khr handle, const struct command_target *target,
		       cl_command_queue queue)
{
	struct command_buffer *b = malloc(sizeof(*b));
	bool added;

	if (!b)
		return false;
	*b = (struct command_buffer){ .target = *target, .queue = queue, .handles = 1 };
	lock_acquire(&command_lock);
	added = table_set(&buffers, handle, b);
	lock_release(&command_lock);
	if (!added)
		free(b);
	return added;
}

struct command_target command_target_of(cl_command_buffer_khr handle)
{
	struct command_target target = { NULL, false, false };
	const struct command_buffer *b;

	lock_acquire(&command_lock);
	b = table_get(&buffers, handle);
	if (b)
		target = b->target;
	lock_release(&command_lock);
	return target;
}

static const struct command_functions *command_functions_of(cl_command_buffer_khr handle)
{
	return command_target_of(handle).functions;
}

static cl_command_buffer_khr buffer_refuse(cl_int err, cl_int *errcode_ret)
{
	if (errcode_ret)
		*errcode_ret = err;
	return NULL;
}

/* What a driver's creating call gave, an object that is not yet one of the application. */
static cl_command_buffer_khr buffer_keep(cl_command_buffer_khr handle, cl_int err,
					 const struct command_target *target,
					 cl_command_queue queue, cl_int *errcode_ret)
{
	cl_int(CL_API_CALL * release)(cl_command_buffer_khr) = target->functions->release;

	if (is_created(handle, err) && !buffer_add(handle, target, queue)) {
		release(handle);
		return buffer_refuse(CL_OUT_OF_HOST_MEMORY, errcode_ret);
	}
	if (errcode_ret)
		*errcode_ret = err;
	return handle;
}

static cl_command_buffer_khr CL_API_CALL create(cl_uint num_queues, const cl_command_queue *queues,
						const cl_command_buffer_properties_khr *properties,
						cl_int *errcode_ret)
{
	cl_command_buffer_khr(CL_API_CALL * driver)(cl_uint, const cl_command_queue *,
						    const cl_command_buffer_properties_khr *,
						    cl_int *);
	cl_command_buffer_khr handle;
	struct command_target target;
	cl_int err;

	if (!num_queues || !queues)
		return buffer_refuse(CL_INVALID_VALUE, errcode_ret);
	err = command_target_find(queues[0], &target);
	if (!err && !target.functions->create)
		err = CL_INVALID_OPERATION;
	if (err)
		return buffer_refuse(err, errcode_ret);
	driver = target.functions->create;
	handle = driver(num_queues, queues, properties, &err);
	return buffer_keep(handle, err, &target, queues[0], errcode_ret);
}

static cl_command_buffer_khr CL_API_CALL remap(cl_command_buffer_khr buffer, cl_bool automatic,
					       cl_uint num_queues, const cl_command_queue *queues,
					       cl_uint num_handles,
					       const cl_mutable_command_khr *handles,
					       cl_mutable_command_khr *handles_ret,
					       cl_int *errcode_ret)
{
	struct command_target target = command_target_of(buffer);
	cl_command_queue first = num_queues && queues ? queues[0] : NULL;
	cl_command_buffer_khr(CL_API_CALL * driver)(
		cl_command_buffer_khr, cl_bool, cl_uint, const cl_command_queue *, cl_uint,
		const cl_mutable_command_khr *, cl_mutable_command_khr *, cl_int *);
	cl_command_buffer_khr handle;
	cl_int err = CL_SUCCESS;

	if (!target.functions || !target.functions->remap)
		return buffer_refuse(CL_INVALID_COMMAND_BUFFER_KHR, errcode_ret);
	driver = target.functions->remap;
	handle = driver(buffer, automatic, num_queues, queues, num_handles, handles, handles_ret,
			&err);
	if (first && is_created(handle, err))
		command_target_find(first, &target); /* the other device's */
	return buffer_keep(handle, err, &target, first, errcode_ret);
}

static cl_int CL_API_CALL retain(cl_command_buffer_khr handle)
{
	cl_int(CL_API_CALL * driver)(cl_command_buffer_khr) = NULL;
	struct command_buffer *b;

	lock_acquire(&command_lock);
	b = table_get(&buffers, handle);
	if (b) {
		b->handles++;
		driver = b->target.functions->retain;
	}
	lock_release(&command_lock);
	return driver ? driver(handle) : CL_INVALID_COMMAND_BUFFER_KHR;
}

/* Before the driver's object can go, as in memobj.c. */
static struct command_buffer *buffer_drop(cl_command_buffer_khr handle, void **driver)
{
	struct command_buffer *b, *gone = NULL;

	lock_acquire(&command_lock);
	b = table_get(&buffers, handle);
	if (b)
		*driver = b->target.functions->release;
	if (b && !--b->handles)
		gone = table_remove(&buffers, handle);
	lock_release(&command_lock);
	return gone;
}

static cl_int CL_API_CALL release(cl_command_buffer_khr handle)
{
	cl_int(CL_API_CALL * driver)(cl_command_buffer_khr) = NULL;
	struct command_buffer *gone = buffer_drop(handle, (void **)&driver);
	cl_int err = driver ? driver(handle) : CL_INVALID_COMMAND_BUFFER_KHR;

	if (gone) {
		for (size_t i = 0; i < gone->count; i++)
			memobj_put(gone->imports[i]);
		free(gone->imports);
		free(gone);
	}
	return err;
}

/* Holds those of @objs that need a bracket. */
static bool remember(cl_command_buffer_khr handle, struct memobj *const *objs, size_t count)
{
	struct command_buffer *b;
	struct memobj **imports = NULL;

	lock_acquire(&command_lock);
	b = table_get(&buffers, handle);
	if (b)
		imports = realloc(b->imports, (b->count + count) * sizeof(*imports));
	if (imports)
		b->imports = imports;
	for (size_t i = 0; imports && i < count; i++)
		if (objs[i] && objs[i]->bracket)
			imports[b->count++] = memobj_hold(objs[i]);
	lock_release(&command_lock);
	return imports;
}

static cl_int use(cl_command_buffer_khr handle, struct memobj *const *objs, size_t count)
{
	bool any = false;

	for (size_t i = 0; i < count; i++)
		any |= objs[i] && objs[i]->bracket;
	if (!any || remember(handle, objs, count))
		return CL_SUCCESS;
	log_error("no memory to remember the dma-bufs of a command buffer");
	return CL_OUT_OF_HOST_MEMORY;
}

cl_int command_buffer_use(cl_command_buffer_khr handle, cl_mem first, cl_mem second)
{
	struct memobj *objs[2] = { memobj_get(first), memobj_get(second) };
	cl_int err = use(handle, objs, 2);

	memobj_put(objs[0]);
	memobj_put(objs[1]);
	return err;
}

/* Arguments are taken when the command is recorded. */
static cl_int CL_API_CALL ndrange_kernel(
	cl_command_buffer_khr buffer, cl_command_queue queue, const cl_properties *properties,
	cl_kernel kernel, cl_uint work_dim, const size_t *offset, const size_t *global,
	const size_t *local, cl_uint num_sync_points, const cl_sync_point_khr *sync_points,
	cl_sync_point_khr *sync_point, cl_mutable_command_khr *mutable_handle)
{
	const struct command_functions *functions = command_functions_of(buffer);
	__typeof__(&ndrange_kernel) driver = functions ? functions->ndrange_kernel : NULL;
	struct kernel_imports imports;
	cl_int err;

	if (!driver)
		return CL_INVALID_COMMAND_BUFFER_KHR;
	err = kernel_imports_get(kernel, &imports);
	if (!err)
		err = use(buffer, imports.objs, imports.count);
	kernel_imports_put(&imports);
	if (err)
		return err;
	return driver(buffer, queue, properties, kernel, work_dim, offset, global, local,
		      num_sync_points, sync_points, sync_point, mutable_handle);
}

/* The imports that @handle uses, and the queue it was made for where @queue names none. */
static cl_int buffer_imports(cl_command_buffer_khr handle, struct kernel_imports *imports,
			     cl_command_queue *queue)
{
	const struct command_buffer *b;
	bool reserved;

	lock_acquire(&command_lock);
	b = table_get(&buffers, handle);
	reserved = kernel_imports_reserve(imports, b ? b->count : 0);
	for (size_t i = 0; b && reserved && i < b->count; i++)
		imports->objs[imports->count++] = memobj_hold(b->imports[i]);
	if (b && !*queue)
		*queue = b->queue;
	lock_release(&command_lock);
	if (reserved)
		return CL_SUCCESS;
	log_error("no memory to list the dma-bufs of a command buffer");
	return CL_OUT_OF_HOST_MEMORY;
}

static cl_int CL_API_CALL enqueue(cl_uint num_queues, cl_command_queue *queues,
				  cl_command_buffer_khr buffer, cl_uint num_wait,
				  const cl_event *wait, cl_event *event)
{
	cl_command_queue queue = num_queues && queues ? queues[0] : NULL;
	const struct command_functions *functions = command_functions_of(buffer);
	__typeof__(&enqueue) driver = functions ? functions->enqueue : NULL;
	struct kernel_imports imports;
	struct access a;
	cl_int err;

	if (!driver)
		return CL_INVALID_COMMAND_BUFFER_KHR;
	queue_bracket_close_all(); /* it may use several queues */
	access_none(&a, num_wait, wait, event);
	err = buffer_imports(buffer, &imports, &queue);
	if (!err)
		err = access_begin(&a, queue, imports.objs, imports.count, ACCESS_BOTH);
	kernel_imports_put(&imports);
	if (err)
		return err;
	err = driver(num_queues, queues, buffer, a.num_wait, a.wait, a.event);
	return access_end(&a, err, CL_FALSE);
}

void *command_buffer_function(const char *name)
{
	static const struct {
		const char *name;
		void *function;
	} ours[] = {
		{ "clCreateCommandBufferKHR", (void *)create },
		{ "clRetainCommandBufferKHR", (void *)retain },
		{ "clReleaseCommandBufferKHR", (void *)release },
		{ "clEnqueueCommandBufferKHR", (void *)enqueue },
		{ "clRemapCommandBufferKHR", (void *)remap },
		{ "clCommandNDRangeKernelKHR", (void *)ndrange_kernel },
	};
	void *function;

	for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
		if (!strcmp(ours[i].name, name))
			return ours[i].function;
	function = command_copy_function(name);
	return function ? function : command_update_function(name);
}
