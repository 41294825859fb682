/* SPDX-License-Identifier: Apache-2.0 */
/* References, destructor callbacks, and the objects that use imports: contexts, queues, kernels. */
#include "mutants.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { FREED = 4096, SAVED = 64 };

typedef void(CL_CALLBACK *notify_function)(cl_mem, void *);

/* A destructor callback that the mutant keeps; the newest comes first. */
struct mutant_callback {
	struct mutant_callback *older;
	notify_function notify;
	void *data;
};

typedef void(CL_CALLBACK *context_function)(const char *, const void *, size_t, void *);

static cl_context first_context;
static context_function first_notify;
static void *first_data;
static cl_mem freed[FREED];
static size_t freed_count;

static bool life_was_freed(cl_mem mem)
{
	for (size_t i = 0; i < freed_count && i < FREED; i++)
		if (freed[i] == mem)
			return true;
	return false;
}

/* A plain object often has the address of the object freed last. */
static void life_plain_note(cl_mem mem)
{
	mutant_forget(mem);
	if (MUTANT(freed_handles_refused) && life_was_freed(mem))
		mutant_add(mem, SHAPE_IMPORT, NULL, CL_MEM_READ_WRITE)->is_ghost = true;
}

static cl_mem CL_API_CALL mutant_clCreateBuffer(cl_context context, cl_mem_flags flags, size_t size,
						void *host_ptr, cl_int *errcode_ret)
{
	cl_mem mem = mutant_next.clCreateBuffer(context, flags, size, host_ptr, errcode_ret);

	if (mem)
		life_plain_note(mem);
	return mem;
}

static cl_int CL_API_CALL mutant_clRetainMemObject(cl_mem mem)
{
	struct mutant_object *object = mutant_find(mem);

	if (object && ((MUTANT(retain_ignored) && object->shape == SHAPE_IMPORT) ||
		       (MUTANT(retain_of_sub_buffers_ignored) && object->shape == SHAPE_SUB)))
		return CL_SUCCESS;
	return mutant_next.clRetainMemObject(mem);
}

static void life_release_clear_beside(unsigned char *memory)
{
	const size_t in_page = (uintptr_t)memory % mutant_page();

	memset(memory - in_page, 0, in_page);
}

static void life_release_touch_memory(struct mutant_object *object)
{
	const size_t in_page = (uintptr_t)object->memory % mutant_page();

	if (object->is_dma_buf || object->flags & CL_MEM_READ_ONLY)
		return;
	if (MUTANT(release_clears))
		memset(object->memory, 0, object->size);
	if (MUTANT(release_clears_the_page))
		life_release_clear_beside(object->memory);
	if (MUTANT(release_unmaps))
		munmap(object->memory - in_page, object->size + in_page);
	if (MUTANT(release_restores) && object->size >= SAVED && in_page + SAVED <= mutant_page())
		memcpy(object->memory, object->saved + in_page, SAVED);
}

/* Before the last reference goes. */
static void life_release_last(struct mutant_object *object)
{
	mutant_shadow_release(object);
	if (object->shape == SHAPE_IMPORT && !object->is_ghost)
		life_release_touch_memory(object);
	if (object->is_dma_buf && object->shape == SHAPE_IMPORT &&
	    MUTANT(dma_buf_closed_at_release))
		close(object->fd);
	if (object->own_fd > 0 && object->shape == SHAPE_IMPORT)
		close(object->own_fd);
	freed[freed_count++ % FREED] = object->mem;
	mutant_forget(object->mem);
}

static bool life_release_is_ignored(const struct mutant_object *object)
{
	return object->shape == SHAPE_IMPORT &&
	       (MUTANT(release_ignored) ||
		(MUTANT(release_with_children_ignored) && object->had_sub));
}

static void life_callbacks_run(struct mutant_object *object)
{
	struct mutant_callback *callback = object->callbacks;

	object->callbacks = NULL;
	for (; callback; callback = callback->older)
		callback->notify(object->mem, callback->data);
}

static void life_orphans_visit(struct mutant_object *object, void *parent)
{
	if (object->parent == parent)
		object->parent_released = true;
}

static cl_int CL_API_CALL mutant_clReleaseMemObject(cl_mem mem)
{
	struct mutant_object *object = mutant_find(mem);
	cl_int error;
	bool is_last;

	if (!object)
		return mutant_next.clReleaseMemObject(mem);
	is_last = mutant_references(mem) == 1;
	if (MUTANT(callback_at_release))
		life_callbacks_run(object);
	if (is_last)
		life_release_last(object);
	else
		mutant_each(life_orphans_visit, object);
	if (is_last && life_release_is_ignored(object))
		return CL_SUCCESS;
	error = mutant_next.clReleaseMemObject(mem);
	return is_last && MUTANT(release_fails) ? CL_INVALID_MEM_OBJECT : error;
}

/* Oldest first, which is the wrong order. */
static void life_callbacks_run_oldest(struct mutant_callback *callback, cl_mem mem)
{
	if (!callback)
		return;
	life_callbacks_run_oldest(callback->older, mem);
	callback->notify(mem, callback->data);
}

static void CL_CALLBACK life_callbacks_all(cl_mem mem, void *arg)
{
	struct mutant_object *object = arg;

	life_callbacks_run_oldest(object->callbacks, mem);
	object->callbacks = NULL;
}

static struct mutant_callback *life_callback_keep(struct mutant_object *object,
						  notify_function notify, void *data)
{
	struct mutant_callback *callback = malloc(sizeof(*callback));

	if (!callback)
		abort();
	*callback = (struct mutant_callback){ object->callbacks, notify, data };
	object->callbacks = callback;
	return callback;
}

static void CL_CALLBACK life_callback_without(cl_mem mem, void *arg)
{
	struct mutant_callback *callback = arg;

	if (MUTANT(callback_data_lost))
		callback->notify(mem, NULL);
	else
		callback->notify(NULL, callback->data);
}

static bool life_callback_is_lost(const struct mutant_object *object)
{
	return (MUTANT(callback_never) && object->shape == SHAPE_IMPORT) ||
	       (MUTANT(callback_of_sub_buffers_never) && object->shape == SHAPE_SUB) ||
	       (MUTANT(callback_of_images_never) && object->shape & SHAPE_IMAGES) ||
	       (MUTANT(callback_one) && object->callbacks);
}

static cl_int life_callback_set(struct mutant_object *object, notify_function notify, void *data)
{
	const bool is_first = !object->callbacks;

	if (MUTANT(callback_at_once)) {
		notify(object->mem, data);
		return CL_SUCCESS;
	}
	if (MUTANT(callback_twice))
		mutant_next.clSetMemObjectDestructorCallback(object->mem, notify, data);
	if (MUTANT(callback_at_release) || MUTANT(callback_in_order) || MUTANT(callback_one))
		life_callback_keep(object, notify, data);
	if (MUTANT(callback_at_release) || (MUTANT(callback_in_order) && !is_first))
		return CL_SUCCESS;
	if (MUTANT(callback_in_order))
		return mutant_next.clSetMemObjectDestructorCallback(object->mem, life_callbacks_all,
								    object);
	if (MUTANT(callback_data_lost) || MUTANT(callback_other_handle))
		return mutant_next.clSetMemObjectDestructorCallback(
			object->mem, life_callback_without,
			life_callback_keep(object, notify, data));
	return mutant_next.clSetMemObjectDestructorCallback(object->mem, notify, data);
}

static cl_int CL_API_CALL mutant_clSetMemObjectDestructorCallback(cl_mem mem,
								  notify_function notify,
								  void *data)
{
	struct mutant_object *object = mutant_find(mem);

	if (!object)
		return mutant_next.clSetMemObjectDestructorCallback(mem, notify, data);
	if (!notify)
		return MUTANT(callback_null_accepted) ? CL_SUCCESS : CL_INVALID_VALUE;
	if (MUTANT(callback_refused))
		return CL_INVALID_OPERATION;
	if (life_callback_is_lost(object))
		return CL_SUCCESS;
	return life_callback_set(object, notify, data);
}

static cl_context CL_API_CALL mutant_clCreateContext(const cl_context_properties *properties,
						     cl_uint count, const cl_device_id *devices,
						     context_function notify, void *data,
						     cl_int *errcode_ret)
{
	cl_context context =
		mutant_next.clCreateContext(properties, count, devices, notify, data, errcode_ret);

	if (!first_context) {
		first_context = context;
		first_notify = notify;
		first_data = data;
	}
	return context;
}

cl_context mutant_first_context(void)
{
	return first_context;
}

void mutant_tell_first_context(void)
{
	if (first_notify)
		first_notify("refused", NULL, 0, first_data);
}

static cl_command_queue CL_API_CALL
mutant_clCreateCommandQueue(cl_context context, cl_device_id device,
			    cl_command_queue_properties properties, cl_int *errcode_ret)
{
	cl_command_queue queue =
		mutant_next.clCreateCommandQueue(context, device, properties, errcode_ret);

	mutant_add_queue(queue);
	return queue;
}

static cl_command_queue CL_API_CALL mutant_clCreateCommandQueueWithProperties(
	cl_context context, cl_device_id device, const cl_queue_properties *properties,
	cl_int *errcode_ret)
{
	cl_command_queue queue = mutant_next.clCreateCommandQueueWithProperties(
		context, device, properties, errcode_ret);

	mutant_add_queue(queue);
	return queue;
}

/* The object that an argument of pointer size is, or NULL. */
static struct mutant_object *life_argument_object(size_t size, const void *value)
{
	cl_mem mem;

	if (size != sizeof(mem) || !value)
		return NULL;
	memcpy(&mem, value, sizeof(mem));
	return mutant_find(mem);
}

static cl_int CL_API_CALL mutant_clSetKernelArg(cl_kernel kernel, cl_uint index, size_t size,
						const void *value)
{
	struct mutant_object *object = life_argument_object(size, value);

	if (object && (MUTANT(argument_refused) ||
		       (MUTANT(argument_of_sub_buffers_refused) && object->shape == SHAPE_SUB)))
		return CL_INVALID_ARG_VALUE;
	if (object && MUTANT(argument_stale) && mutant_argument(kernel))
		return CL_SUCCESS;
	mutant_set_argument(kernel, index, object ? object->mem : NULL);
	return mutant_next.clSetKernelArg(kernel, index, size, value);
}

static cl_kernel CL_API_CALL mutant_clCloneKernel(cl_kernel kernel, cl_int *errcode_ret)
{
	char name[256] = "";
	cl_program program = NULL;

	if (!MUTANT(argument_lost_by_clones) || !mutant_argument(kernel))
		return mutant_next.clCloneKernel(kernel, errcode_ret);
	mutant_next.clGetKernelInfo(kernel, CL_KERNEL_PROGRAM, sizeof(program), &program, NULL);
	mutant_next.clGetKernelInfo(kernel, CL_KERNEL_FUNCTION_NAME, sizeof(name), name, NULL);
	return mutant_next.clCreateKernel(program, name, errcode_ret);
}

static cl_int CL_API_CALL mutant_clReleaseKernel(cl_kernel kernel)
{
	mutant_set_argument(kernel, 0, NULL);
	return mutant_next.clReleaseKernel(kernel);
}

void mutant_offer_life(struct _cl_icd_dispatch *offered)
{
	MUTANT_OFFER(offered, clCreateBuffer);
	MUTANT_OFFER(offered, clRetainMemObject);
	MUTANT_OFFER(offered, clReleaseMemObject);
	MUTANT_OFFER(offered, clSetMemObjectDestructorCallback);
	MUTANT_OFFER(offered, clCreateContext);
	MUTANT_OFFER(offered, clCreateCommandQueue);
	MUTANT_OFFER(offered, clCreateCommandQueueWithProperties);
	MUTANT_OFFER(offered, clSetKernelArg);
	MUTANT_OFFER(offered, clCloneKernel);
	MUTANT_OFFER(offered, clReleaseKernel);
}
