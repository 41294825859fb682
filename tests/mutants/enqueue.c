/* SPDX-License-Identifier: Apache-2.0 */
/* Commands that go wrong: the rows USE of rows.h. */
#include "use.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

static const struct row {
	enum mutant mutant;
	enum call call;
	enum when when;
	int action;
} uses[] = {
#define USE(name, version, where, says, call, when, action) \
	{ MUTANT_##name, CALL_##call, when, action },
#include "rows.h"
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

static bool use_is(const struct row *row, const struct mutant_use *use)
{
	if (row->call == CALL_SIXTEEN ? !use_call_is_of_sixteen(use->call) : row->call != use->call)
		return false;
	if (row->when == ON_PLAIN)
		return !use->object && mutant_count_live();
	if (!use->object)
		return false;
	return mutant_use_is(row->when, use);
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
	    mutant_is_orphan(use->object))
		use->action = CL_MEM_OBJECT_ALLOCATION_FAILURE;
	if (MUTANT(release_too_early) && mutant_is_orphan(use->object))
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
	if (MUTANT(dma_buf_not_duplicated) && fcntl(root->fd, F_GETFD) < 0)
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
		abort();
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
