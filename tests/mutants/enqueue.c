/* SPDX-License-Identifier: Apache-2.0 */
/* Commands that go wrong: the rows USE of rows.h. */
#include "mutants.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The sixteen calls, then other commands. */
enum call {
#define ENQUEUE(name, parameters, arguments, ...) CALL_##name,
#define MAP(name, parameters, arguments, ...) CALL_##name,
#include "calls.h"
#undef ENQUEUE
#undef MAP
	CALL_NONE,
	CALL_SIXTEEN,
};

/* One use of an object by a command: pointers to the parameters of the call, or NULL. */
struct mutant_use {
	enum call call;
	cl_command_queue queue;
	cl_mem *from, *to;
	cl_bool *blocking;
	size_t *offset[2]; /* of the source, of the destination */
	const size_t **origin[2];
	size_t *pitch[2];
	size_t *size, unit;
	cl_map_flags map;
	cl_uint *num_events;
	const cl_event **events;
	cl_event **event, *asked; /* the application's variable */
	cl_event own;
	struct mutant_object *object; /* the first of source and destination that is an object */
	int action;
};

enum when {
	ALWAYS,
	BLOCKING,
	NOT_BLOCKING_CALL,
	WITH_WAIT_LIST,
	WITH_EVENT,
	WITHOUT_EVENT,
	WITH_OFFSET,
	WITH_ONE_BYTE,
	ON_SUB_BUFFER,
	ON_IMAGE,
	ON_IMAGE_1D,
	ON_IMAGE_OF_SUB_BUFFER,
	ON_IMAGE_BY_PROPERTIES,
	ON_SECOND_QUEUE,
	ON_OUT_OF_ORDER,
	ON_PROFILING,
	ON_READ_ONLY,
	ON_WRITE_ONLY,
	ON_HOST_FLAGS,
	ON_USE_HOST_PTR,
	ON_RETAINED,
	ON_ORPHAN,
	ON_SECOND_IMPORT,
	ON_UNALIGNED,
	ON_LARGE,
	ON_OTHER_THREAD,
	ON_DMA_BUF,
	ON_PLAIN,
	IN_SECOND_CONTEXT,
	AFTER_A_KERNEL,
	BETWEEN_IMPORTS,
	FROM_IMPORT_TO_PLAIN,
	FROM_PLAIN_TO_IMPORT,
	MAPS,
	MAP_READS,
	MAP_INVALIDATES,
};

/* An action below 0 is the error that the call returns instead. */
enum action {
	UNCHANGED,
	WORKS, /* the driver executes the call, without climport's layer */
	WORKS_AND_FAILS,
	SKIPPED, /* a marker stands for the command */
	NO_WAIT_LIST,
	NO_OFFSET_FROM,
	NO_OFFSET_TO,
	NO_PITCH_FROM,
	NO_PITCH_TO,
	SHORT,
	DOES_NOT_BLOCK,
	NO_EVENT,
	EVENT_ON_ERROR,
	POINTER_ON_ERROR,
	NO_CODE,
	AS_PARENT,
};

static const struct row {
	enum mutant mutant;
	enum call call;
	enum when when;
	int action;
} uses[] = {
#define SIXTEEN SIXTEEN
#define CALL_SIXTEEN CALL_SIXTEEN
#define USE(name, version, where, says, call, when, action) \
	{ MUTANT_##name, CALL_##call, when, action },
#define IMPORT(name, version, where, says, when, outcome)
#define COPY(name, version, where, says, when, how)
#define QUERY(name, version, where, says, shapes, param, answer)
#define OTHER(name, version, where, says)
#include "rows.h"
#undef USE
#undef IMPORT
#undef COPY
#undef QUERY
#undef OTHER
};

static const struct row *use_row(void)
{
	for (size_t i = 0; i < sizeof(uses) / sizeof(uses[0]); i++)
		if (uses[i].mutant == mutant)
			return &uses[i];
	return NULL;
}

static bool use_call_is_of_sixteen(enum call call)
{
	return call <= CALL_clEnqueueMapImage;
}

static bool use_has_offset(const struct mutant_use *use)
{
	for (int i = 0; i < 2; i++) {
		if (use->offset[i] && *use->offset[i])
			return true;
		if (use->origin[i] && *use->origin[i] &&
		    ((*use->origin[i])[0] || (*use->origin[i])[1]))
			return true;
	}
	return false;
}

static bool use_queue_has(cl_command_queue queue, cl_command_queue_properties property)
{
	cl_command_queue_properties all = 0;

	mutant_next.clGetCommandQueueInfo(queue, CL_QUEUE_PROPERTIES, sizeof(all), &all, NULL);
	return all & property;
}

/* Objects inherit the flags of the import. */
static bool use_object_has(struct mutant_object *object, cl_mem_flags flags)
{
	return (object->flags | mutant_root(object)->flags) & flags;
}

static bool use_object_is_orphan(const struct mutant_object *object)
{
	for (; object; object = object->parent)
		if (object->parent_released ||
		    (object->parent && !mutant_find(object->parent->mem)))
			return true;
	return false;
}

static bool use_second_context(cl_context context)
{
	static cl_context first;

	if (!first)
		first = context;
	return context != first;
}

static bool use_is_between(const struct mutant_use *use, bool from, bool to)
{
	return use->from && use->to && !!mutant_find(*use->from) == from &&
	       !!mutant_find(*use->to) == to;
}

static bool use_of_call_is(enum when when, const struct mutant_use *use)
{
	switch (when) {
	case BLOCKING:
		return use->blocking && *use->blocking;
	case NOT_BLOCKING_CALL:
		return use->blocking && !*use->blocking;
	case WITH_WAIT_LIST:
		return *use->num_events;
	case WITH_EVENT:
		return *use->event;
	case WITHOUT_EVENT:
		return !*use->event;
	case WITH_OFFSET:
		return use_has_offset(use);
	case WITH_ONE_BYTE:
		return use->size && *use->size == 1;
	case MAPS:
		return use->map;
	case MAP_READS:
		return use->map == CL_MAP_READ;
	case MAP_INVALIDATES:
		return use->map & CL_MAP_WRITE_INVALIDATE_REGION;
	case ON_SECOND_QUEUE:
		return mutant_queue_number(use->queue) > 1;
	case ON_OUT_OF_ORDER:
		return use_queue_has(use->queue, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
	case ON_PROFILING:
		return use_queue_has(use->queue, CL_QUEUE_PROFILING_ENABLE);
	case ON_OTHER_THREAD:
		return !mutant_is_main_thread();
	case BETWEEN_IMPORTS:
		return use_is_between(use, true, true);
	case FROM_IMPORT_TO_PLAIN:
		return use_is_between(use, true, false);
	case FROM_PLAIN_TO_IMPORT:
		return use_is_between(use, false, true);
	default:
		return when == ALWAYS;
	}
}

static bool use_of_object_is(enum when when, struct mutant_object *object)
{
	switch (when) {
	case ON_SUB_BUFFER:
		return object->shape == SHAPE_SUB;
	case ON_IMAGE:
		return object->shape & SHAPE_IMAGES;
	case ON_IMAGE_1D:
		return object->shape == SHAPE_IMAGE_1D;
	case ON_IMAGE_OF_SUB_BUFFER:
		return object->shape & SHAPE_IMAGES && object->parent &&
		       object->parent->shape == SHAPE_SUB;
	case ON_IMAGE_BY_PROPERTIES:
		return object->by_properties;
	case ON_READ_ONLY:
		return use_object_has(object, CL_MEM_READ_ONLY);
	case ON_WRITE_ONLY:
		return use_object_has(object, CL_MEM_WRITE_ONLY);
	case ON_HOST_FLAGS:
		return use_object_has(object, CL_MEM_HOST_WRITE_ONLY | CL_MEM_HOST_READ_ONLY |
						      CL_MEM_HOST_NO_ACCESS);
	case ON_USE_HOST_PTR:
		return use_object_has(object, CL_MEM_USE_HOST_PTR);
	case ON_RETAINED:
		return object->shape == SHAPE_IMPORT && mutant_references(object->mem) > 1;
	case ON_ORPHAN:
		return use_object_is_orphan(object);
	case ON_SECOND_IMPORT:
		return mutant_root(object)->number > 1;
	case ON_UNALIGNED:
		return (uintptr_t)mutant_root(object)->memory % mutant_page();
	case ON_LARGE:
		return mutant_root(object)->size >= 65536;
	case ON_DMA_BUF:
		return mutant_root(object)->is_dma_buf;
	case IN_SECOND_CONTEXT:
		return use_second_context(mutant_root(object)->context);
	case AFTER_A_KERNEL:
		return object->used_by_kernel;
	default:
		return false;
	}
}

static bool use_is(const struct row *row, const struct mutant_use *use)
{
	if (row->call == CALL_SIXTEEN ? !use_call_is_of_sixteen(use->call) : row->call != use->call)
		return false;
	if (row->when == ON_PLAIN)
		return !use->object && mutant_count_live();
	if (!use->object)
		return false;
	return use_of_call_is(row->when, use) || use_of_object_is(row->when, use->object);
}

static const size_t zeros[3];

static void use_drop_offset(struct mutant_use *use, int side)
{
	if (use->offset[side])
		*use->offset[side] = 0;
	if (use->origin[side])
		*use->origin[side] = zeros;
}

static void use_take_parent(struct mutant_use *use)
{
	cl_mem *mem = use->from && mutant_find(*use->from) ? use->from : use->to;

	if (use->object->parent)
		*mem = use->object->parent->mem;
}

static void use_change(struct mutant_use *use)
{
	switch (use->action) {
	case NO_WAIT_LIST:
		*use->num_events = 0;
		*use->events = NULL;
		break;
	case NO_OFFSET_FROM:
	case NO_OFFSET_TO:
		use_drop_offset(use, use->action == NO_OFFSET_TO);
		break;
	case NO_PITCH_FROM:
	case NO_PITCH_TO:
		*use->pitch[use->action == NO_PITCH_TO] = 0;
		break;
	case SHORT:
		*use->size -= use->unit ? use->unit : 1;
		break;
	case DOES_NOT_BLOCK:
		*use->blocking = CL_FALSE;
		break;
	case AS_PARENT:
		use_take_parent(use);
		break;
	case NO_EVENT:
	case WORKS_AND_FAILS:
		*use->event = NULL;
		break;
	}
}

static bool use_is_kernel(const struct mutant_use *use)
{
	return use->call == CALL_clEnqueueNDRangeKernel || use->call == CALL_clEnqueueTask;
}

/* An object is dead memory for kernels: what a driver does that unmaps too early. */
static void use_end_access(struct mutant_use *use)
{
	if (MUTANT(release_under_images) && use->object->shape & SHAPE_IMAGES &&
	    use_object_is_orphan(use->object))
		use->action = CL_MEM_OBJECT_ALLOCATION_FAILURE;
	if (MUTANT(release_too_early) && use_object_is_orphan(use->object))
		use->action = SKIPPED;
}

static void use_keep(struct mutant_use *use)
{
	struct mutant_object *root = mutant_root(use->object);

	if (MUTANT(kernel_keeps_import) && !root->used_by_kernel)
		mutant_next.clRetainMemObject(root->mem);
	root->used_by_kernel = use->object->used_by_kernel = true;
}

/* The state of descriptors matters to the driver at each kernel. */
static void use_look_at_descriptor(struct mutant_use *use)
{
	struct mutant_object *root = mutant_root(use->object);

	if (!root->is_dma_buf)
		return;
	if (MUTANT(dma_buf_not_duplicated) && lseek(root->fd, 0, SEEK_CUR) < 0)
		use->action = CL_OUT_OF_RESOURCES;
	if (MUTANT(dma_buf_read_again) && *root->fd_at != root->fd)
		use->action = CL_OUT_OF_RESOURCES;
}

static void use_change_neighbours(struct mutant_object *object)
{
	const size_t in_page = (uintptr_t)object->memory % mutant_page();

	if (MUTANT(kernel_clears_the_page) && in_page)
		memset(object->memory - in_page, 0, in_page);
	if (MUTANT(kernel_restores_the_page) && in_page)
		memcpy(object->memory - in_page, object->saved, in_page);
}

static void use_begin_kernel(struct mutant_use *use)
{
	use_keep(use);
	use_end_access(use);
	use_look_at_descriptor(use);
	use_change_neighbours(mutant_root(use->object));
}

/* Copies in the queue come between the wait list and the command. */
static void use_copy_in(struct mutant_use *use)
{
	static __thread cl_event copied;

	mutant_shadows_before_enqueue();
	if (!mutant_shadows_in_queue())
		return;
	mutant_shadows_copy_in_queue(use->queue, true, *use->num_events, *use->events, &copied);
	*use->num_events = 1;
	*use->events = &copied;
	*use->event = &use->own;
}

static void use_copy_out(struct mutant_use *use, cl_int error)
{
	cl_event done = NULL;

	if (!mutant_shadows_in_queue())
		return;
	mutant_next.clReleaseEvent(**use->events);
	if (error)
		return;
	mutant_shadows_copy_in_queue(use->queue, false, 1, &use->own, &done);
	if (use->blocking && *use->blocking)
		mutant_next.clWaitForEvents(1, &done);
	mutant_next.clReleaseEvent(use->own);
	if (use->asked)
		*use->asked = done;
	else
		mutant_next.clReleaseEvent(done);
}

static void use_begin(struct mutant_use *use)
{
	const struct row *row = use_row();

	use->asked = *use->event;
	use->object = use->from ? mutant_find(*use->from) : NULL;
	if (!use->object && use->to)
		use->object = mutant_find(*use->to);
	if (row && use_is(row, use))
		use->action = row->action;
	if (use->object && use->object->is_ghost && use_call_is_of_sixteen(use->call))
		use->action = CL_INVALID_OPERATION;
	if (use->object && use_is_kernel(use))
		use_begin_kernel(use);
	use_change(use);
	if (mutant_has_shadows())
		use_copy_in(use);
	if (use->object && !*use->event && MUTANT(kernel_at_enqueue))
		*use->event = &use->own;
}

static void use_return_event(struct mutant_use *use)
{
	cl_context context = mutant_root(use->object)->context;

	if (use->asked && (use->action == EVENT_ON_ERROR))
		*use->asked = mutant_next.clCreateUserEvent(context, NULL);
	if (use->asked && use->action == NO_EVENT)
		*use->asked = NULL;
}

static cl_int use_end(struct mutant_use *use, cl_int error)
{
	if (mutant_has_shadows())
		use_copy_out(use, error);
	if (use->blocking && *use->blocking)
		mutant_shadows_after_wait();
	if (!use->object)
		return error;
	use_return_event(use);
	if (!error && use->asked && *use->asked)
		mutant_add_event(*use->asked);
	if (!error && *use->event && use_is_kernel(use) && MUTANT(kernel_at_enqueue))
		mutant_next.clWaitForEvents(1, *use->event);
	return error;
}

static cl_int use_marker(const struct mutant_use *use)
{
	return mutant_next.clEnqueueMarkerWithWaitList(use->queue, *use->num_events, *use->events,
						       *use->event);
}

#define BEGIN(name, ...)                                     \
	struct mutant_use use = { .call = CALL_##name,       \
				  .queue = queue,            \
				  .num_events = &num_events, \
				  .events = &events,         \
				  .event = &event,           \
				  __VA_ARGS__ };             \
	use_begin(&use)

#define ENQUEUE(name, parameters, arguments, ...)                                    \
	static cl_int CL_API_CALL mutant_##name parameters                           \
	{                                                                            \
		cl_int error;                                                        \
		BEGIN(name, __VA_ARGS__);                                            \
		if (use.action < 0)                                                  \
			return use.action;                                           \
		if (use.action == SKIPPED)                                           \
			return use_end(&use, use_marker(&use));                      \
		error = use.action == WORKS || use.action == WORKS_AND_FAILS         \
				? mutant_driver.name arguments                       \
				: mutant_next.name arguments;                        \
		error = use_end(&use, error);                                        \
		return use.action == WORKS_AND_FAILS ? CL_INVALID_OPERATION : error; \
	}

/* A pointer that the driver maps instead of the memory. */
struct mapped {
	unsigned char *copy, *real;
	size_t size;
};

static struct mapped mapped_last;

static void *use_map_take_copy(void *real, size_t size)
{
	free(mapped_last.copy);
	mapped_last = (struct mapped){ malloc(size), real, size };
	if (!mapped_last.copy)
		abort();
	memcpy(mapped_last.copy, real, size);
	return mapped_last.copy;
}

static void use_map_clear_beside(struct mutant_object *root, unsigned char *real, size_t size)
{
	unsigned char *end = root->memory + root->size;

	if (real > root->memory && real <= end)
		memset(root->memory, 0, (size_t)(real - root->memory));
	if (real + size < end)
		memset(real + size, 0, (size_t)(end - real - size));
}

/* @size is 0 for images. */
static void *use_map_change(struct mutant_use *use, void *real, size_t size, size_t *pitch)
{
	if (!use->object || !real)
		return real;
	if ((MUTANT(map_elsewhere) || MUTANT(map_elsewhere_written_back)) && size)
		return use_map_take_copy(real, size);
	if (MUTANT(map_before_the_offset) && size)
		return (void *)((uintptr_t)real / mutant_page() * mutant_page());
	if (MUTANT(map_image_pitch_tight) && pitch)
		*pitch = 4 * (size_t)16;
	if (MUTANT(map_invalidates_all) && use->map & CL_MAP_WRITE_INVALIDATE_REGION && size)
		use_map_clear_beside(mutant_root(use->object), real, size);
	mutant_root(use->object)->mapped = real;
	return real;
}

static void *use_map_refuse(struct mutant_use *use, void *pointer, cl_int *code, cl_int error)
{
	static char somewhere[64];

	if (code && use->action != NO_CODE)
		*code = error;
	return use->action == POINTER_ON_ERROR ? somewhere : pointer;
}

/* The parameters errcode_ret that a mutant needs. */
static void use_map_look_at_code(const struct mutant_use *use, const cl_int *code)
{
	if (use->object && !code && MUTANT(map_code_needed))
		raise(SIGSEGV);
}

#define MAP(name, parameters, arguments, ...)                                           \
	static void *CL_API_CALL mutant_##name parameters                               \
	{                                                                               \
		cl_int error = CL_SUCCESS, *code = errcode_ret;                         \
		void *at;                                                               \
		BEGIN(name, __VA_ARGS__);                                               \
		use_map_look_at_code(&use, code);                                       \
		if (use.action < 0)                                                     \
			return use_map_refuse(&use, NULL, code, use.action);            \
		errcode_ret = &error;                                                   \
		at = use.action == WORKS ? mutant_driver.name arguments                 \
					 : mutant_next.name arguments;                  \
		error = use_end(&use, error);                                           \
		if (error)                                                              \
			return use_map_refuse(&use, at, code, error);                   \
		if (code && !(use.object && MUTANT(map_code_unset)))                    \
			*code = error;                                                  \
		return use_map_change(&use, at, MAPPED_SIZE(name), MAPPED_PITCH(name)); \
	}

#define MAPPED_SIZE(name) SIZE_OF_##name
#define MAPPED_PITCH(name) PITCH_OF_##name
#define SIZE_OF_clEnqueueMapBuffer size
#define PITCH_OF_clEnqueueMapBuffer NULL
#define SIZE_OF_clEnqueueMapImage 0
#define PITCH_OF_clEnqueueMapImage pitch

#define mutant_clEnqueueUnmapMemObject mutant_plain_unmap
#include "calls.h"
#undef mutant_clEnqueueUnmapMemObject
#undef ENQUEUE
#undef MAP

/* The pointer that the driver has mapped, for a pointer that the application has. */
static void *use_unmap_pointer(struct mutant_object *object, void *pointer)
{
	if (mapped_last.copy && pointer == mapped_last.copy) {
		if (MUTANT(map_elsewhere_written_back))
			memcpy(mapped_last.real, mapped_last.copy, mapped_last.size);
		return mapped_last.real;
	}
	if (MUTANT(map_before_the_offset) || MUTANT(unmap_anything))
		return (void *)mutant_root(object)->mapped;
	return pointer;
}

static cl_int CL_API_CALL mutant_clEnqueueUnmapMemObject(cl_command_queue queue, cl_mem mem,
							 void *pointer, cl_uint num_events,
							 const cl_event *events, cl_event *event)
{
	struct mutant_object *object = mutant_find(mem);
	struct mutant_object *root = mutant_root(object);
	cl_int error;

	if (!object)
		return mutant_plain_unmap(queue, mem, pointer, num_events, events, event);
	error = mutant_plain_unmap(queue, mem, use_unmap_pointer(object, pointer), num_events,
				   events, event);
	if (!error && MUTANT(unmap_clears))
		memset(root->memory, 0, root->size);
	if (error == CL_INVALID_VALUE && MUTANT(unmap_anything))
		return mutant_next.clEnqueueMarkerWithWaitList(queue, num_events, events, event);
	return error;
}

static cl_int CL_API_CALL mutant_clFinish(cl_command_queue queue)
{
	cl_int error = MUTANT(finish_early) && mutant_count_live() ? mutant_next.clFlush(queue)
								   : mutant_next.clFinish(queue);

	mutant_shadows_after_wait();
	return error;
}

static cl_int CL_API_CALL mutant_clWaitForEvents(cl_uint count, const cl_event *events)
{
	cl_int error = mutant_next.clWaitForEvents(count, events);

	mutant_shadows_after_wait();
	return error;
}

void mutant_offer_enqueue(struct _cl_icd_dispatch *offered)
{
#define ENQUEUE(name, parameters, arguments, ...) MUTANT_OFFER(offered, name);
#define MAP(name, parameters, arguments, ...) MUTANT_OFFER(offered, name);
#include "calls.h"
#undef ENQUEUE
#undef MAP
	MUTANT_OFFER(offered, clFinish);
	MUTANT_OFFER(offered, clWaitForEvents);
}
