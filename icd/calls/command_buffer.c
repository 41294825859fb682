/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/calls/command_buffer.h"

#include <stdlib.h>
#include <string.h>

#include "icd/access/access.h"
#include "icd/layer.h"
#include "icd/objects/kernel.h"
#include "icd/objects/table.h"
#include "util/lock.h"
#include "util/log.h"

/* Lives as long as the application has references, which it counts itself. */
struct command_buffer {
	struct command_target target;
	cl_command_queue queue; /* the first one it was made for */
	unsigned int handles;
	size_t count;
	struct command_use *uses; /* of recorded commands */
	unsigned long stamp;	  /* of the last that were added */
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

static cl_command_buffer_khr CL_API_CALL
command_buffer_create(cl_uint num_queues, const cl_command_queue *queues,
		      const cl_command_buffer_properties_khr *properties, cl_int *errcode_ret)
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

/* Takes the uses of @from over to its copy @to, which nobody else knows yet. */
static cl_int buffer_copy_uses(cl_command_buffer_khr from, cl_command_buffer_khr to,
			       const struct command_renames *renames)
{
	struct command_buffer *source, *copy;
	cl_int err = CL_SUCCESS;

	lock_acquire(&command_lock);
	source = table_get(&buffers, from);
	copy = table_get(&buffers, to);
	if (source && copy) {
		err = command_uses_copy(source->uses, renames, &copy->uses);
		copy->count = source->count;
		copy->stamp = source->stamp;
	}
	lock_release(&command_lock);
	return err;
}

static cl_int CL_API_CALL command_buffer_release(cl_command_buffer_khr handle);

static cl_command_buffer_khr CL_API_CALL command_buffer_remap(
	cl_command_buffer_khr buffer, cl_bool automatic, cl_uint num_queues,
	const cl_command_queue *queues, cl_uint num_handles, const cl_mutable_command_khr *handles,
	cl_mutable_command_khr *handles_ret, cl_int *errcode_ret)
{
	struct command_target target = command_target_of(buffer);
	cl_command_queue first = num_queues && queues ? queues[0] : NULL;
	cl_command_buffer_khr(CL_API_CALL * driver)(
		cl_command_buffer_khr, cl_bool, cl_uint, const cl_command_queue *, cl_uint,
		const cl_mutable_command_khr *, cl_mutable_command_khr *, cl_int *);
	const struct command_renames renames = { handles && handles_ret ? num_handles : 0, handles,
						 handles_ret };
	cl_command_buffer_khr handle;
	cl_int err = CL_SUCCESS;

	if (!target.functions || !target.functions->remap)
		return buffer_refuse(CL_INVALID_COMMAND_BUFFER_KHR, errcode_ret);
	driver = target.functions->remap;
	handle = driver(buffer, automatic, num_queues, queues, num_handles, handles, handles_ret,
			&err);
	if (first && is_created(handle, err))
		command_target_find(first, &target); /* the other device's */
	handle = buffer_keep(handle, err, &target, first, errcode_ret);
	if (!is_created(handle, err) || !buffer_copy_uses(buffer, handle, &renames))
		return handle;
	command_buffer_release(handle);
	return buffer_refuse(CL_OUT_OF_HOST_MEMORY, errcode_ret);
}

static cl_int CL_API_CALL command_buffer_retain(cl_command_buffer_khr handle)
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

static cl_int CL_API_CALL command_buffer_release(cl_command_buffer_khr handle)
{
	cl_int(CL_API_CALL * driver)(cl_command_buffer_khr) = NULL;
	struct command_buffer *gone = buffer_drop(handle, (void **)&driver);
	cl_int err = driver ? driver(handle) : CL_INVALID_COMMAND_BUFFER_KHR;

	if (gone) {
		command_uses_free(gone->uses);
		free(gone);
	}
	return err;
}

/* Puts them before those that it has. */
static void buffer_prepend(struct command_buffer *b, struct command_use *uses)
	REQUIRES(command_lock)
{
	struct command_use **end = &uses;

	for (; *end; end = &(*end)->next) {
		(*end)->stamp = b->stamp;
		b->count++;
	}
	*end = b->uses;
	b->uses = uses;
}

unsigned long command_buffer_add(cl_command_buffer_khr handle, struct command_use *uses)
{
	struct command_buffer *b;
	unsigned long stamp = 0;

	lock_acquire(&command_lock);
	b = table_get(&buffers, handle);
	if (b) {
		stamp = ++b->stamp;
		buffer_prepend(b, uses);
	}
	lock_release(&command_lock);
	if (!b)
		command_uses_free(uses);
	return stamp;
}

void command_buffer_remove(cl_command_buffer_khr handle,
			   bool (*is_gone)(const struct command_use *use, const void *data),
			   const void *data)
{
	struct command_use *gone = NULL, *use, **at;
	struct command_buffer *b;

	lock_acquire(&command_lock);
	b = table_get(&buffers, handle);
	at = b ? &b->uses : &gone;
	while ((use = *at)) {
		if (!is_gone(use, data)) {
			at = &use->next;
			continue;
		}
		*at = use->next;
		b->count--;
		use->next = gone;
		gone = use;
	}
	lock_release(&command_lock);
	command_uses_free(gone);
}

cl_int command_buffer_recorded(cl_command_buffer_khr handle, struct command_use *uses, cl_int err)
{
	if (err)
		command_uses_free(uses);
	else if (uses)
		command_buffer_add(handle, uses);
	return err;
}

static cl_int kernel_uses(cl_kernel kernel, struct command_use **uses)
{
	struct kernel_imports imports;
	cl_int err = kernel_imports_get(kernel, &imports);

	for (size_t i = 0; i < imports.count && !err; i++)
		err = command_uses_add(uses, imports.objs[i], NULL, imports.indices[i]);
	kernel_imports_put(&imports);
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
	struct command_use *uses = NULL;
	cl_int err;

	if (!driver)
		return CL_INVALID_COMMAND_BUFFER_KHR;
	err = kernel_uses(kernel, &uses);
	if (!err)
		err = driver(buffer, queue, properties, kernel, work_dim, offset, global, local,
			     num_sync_points, sync_points, sync_point, mutable_handle);
	for (struct command_use *u = uses; u && !err && mutable_handle; u = u->next)
		u->command = *mutable_handle;
	return command_buffer_recorded(buffer, uses, err);
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
	for (const struct command_use *u = b && reserved ? b->uses : NULL; u; u = u->next)
		imports->objs[imports->count++] = memobj_hold(u->import);
	if (b && !*queue)
		*queue = b->queue;
	lock_release(&command_lock);
	if (reserved)
		return CL_SUCCESS;
	log_error("no memory to list the dma-bufs of a command buffer");
	return CL_OUT_OF_HOST_MEMORY;
}

static cl_int CL_API_CALL command_buffer_enqueue(cl_uint num_queues, cl_command_queue *queues,
						 cl_command_buffer_khr buffer, cl_uint num_wait,
						 const cl_event *wait, cl_event *event)
{
	cl_command_queue queue = num_queues && queues ? queues[0] : NULL;
	const struct command_functions *functions = command_functions_of(buffer);
	__typeof__(&command_buffer_enqueue) driver = functions ? functions->enqueue : NULL;
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
		{ "clCreateCommandBufferKHR", (void *)command_buffer_create },
		{ "clRetainCommandBufferKHR", (void *)command_buffer_retain },
		{ "clReleaseCommandBufferKHR", (void *)command_buffer_release },
		{ "clEnqueueCommandBufferKHR", (void *)command_buffer_enqueue },
		{ "clRemapCommandBufferKHR", (void *)command_buffer_remap },
		{ "clCommandNDRangeKernelKHR", (void *)ndrange_kernel },
	};
	void *function;

	for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
		if (!strcmp(ours[i].name, name))
			return ours[i].function;
	function = command_copy_function(name);
	return function ? function : command_update_function(name);
}
