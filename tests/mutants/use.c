/* SPDX-License-Identifier: Apache-2.0 */
/* Which uses of objects a mutant is wrong about. */
#include "use.h"

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

bool mutant_is_orphan(const struct mutant_object *object)
{
	for (; object; object = object->parent)
		if (object->parent_released ||
		    (object->parent && !mutant_find(object->parent->mem)))
			return true;
	return false;
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
		return mutant_is_orphan(object);
	case ON_SECOND_IMPORT:
		return mutant_root(object)->number > 1;
	case ON_UNALIGNED:
		return (uintptr_t)mutant_root(object)->memory % mutant_page();
	case ON_LARGE:
		return mutant_root(object)->size >= 65536;
	case ON_DMA_BUF:
		return mutant_root(object)->is_dma_buf;
	case IN_SECOND_CONTEXT:
		return mutant_root(object)->context != mutant_first_context();
	case AFTER_A_KERNEL:
		return object->used_by_kernel;
	default:
		return false;
	}
}

bool mutant_use_is(enum when when, const struct mutant_use *use)
{
	return use_of_call_is(when, use) || use_of_object_is(when, use->object);
}
