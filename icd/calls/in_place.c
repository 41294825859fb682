/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/calls/in_place.h"

#include <stdlib.h>

#include "icd/access/queue_bracket.h"
#include "icd/calls/nothing.h"
#include "icd/layer.h"
#include "util/log.h"

struct memobj *in_place_get(cl_mem mem)
{
	struct memobj *obj = memobj_live() && memobj_is_import(mem) ? memobj_get(mem) : NULL;

	if (!obj || obj->in_place)
		return obj;
	memobj_put(obj);
	return NULL;
}

static char *in_place_address(const struct memobj *obj)
{
	return (char *)obj->region->addr + obj->origin;
}

/* Whether the object has @size bytes at @offset. */
static bool in_place_has_range(const struct memobj *obj, size_t offset, size_t size)
{
	size_t all = 0;

	next.clGetMemObjectInfo(obj->handle, CL_MEM_SIZE, sizeof(all), &all, NULL);
	return size && offset <= all && size <= all - offset;
}

/* "CL_INVALID_OPERATION if buffer has been created with CL_MEM_HOST_WRITE_ONLY ..." */
static bool in_place_forbids_map(const struct memobj *obj, cl_map_flags flags)
{
	const cl_map_flags writes = CL_MAP_WRITE | CL_MAP_WRITE_INVALIDATE_REGION;
	const cl_mem_flags mem = in_place_flags(obj->in_place);

	if (mem & CL_MEM_HOST_NO_ACCESS)
		return true;
	if (flags & CL_MAP_READ && mem & CL_MEM_HOST_WRITE_ONLY)
		return true;
	return flags & writes && mem & CL_MEM_HOST_READ_ONLY;
}

static bool in_place_flags_are_wrong(cl_map_flags flags)
{
	const cl_map_flags both = CL_MAP_READ | CL_MAP_WRITE;

	return flags & ~(both | CL_MAP_WRITE_INVALIDATE_REGION) ||
	       (flags & both && flags & CL_MAP_WRITE_INVALIDATE_REGION);
}

cl_int in_place_check_map_flags(const struct memobj *obj, cl_map_flags flags)
{
	if (in_place_flags_are_wrong(flags))
		return CL_INVALID_VALUE;
	return in_place_forbids_map(obj, flags) ? CL_INVALID_OPERATION : CL_SUCCESS;
}

static cl_int in_place_check_map(const struct memobj *obj, const struct in_place_call *call)
{
	if (!in_place_has_range(obj, call->offset, call->size))
		return CL_INVALID_VALUE;
	return in_place_check_map_flags(obj, call->flags);
}

/* The driver does not see the buffers in place, so the error for a queue of another context is the layer's. */
static cl_int in_place_check_queue(const struct memobj *obj, cl_command_queue queue)
{
	cl_context context = NULL;
	cl_int err = next.clGetCommandQueueInfo(queue, CL_QUEUE_CONTEXT, sizeof(context), &context,
						NULL);

	if (!err && context != obj->context)
		err = CL_INVALID_CONTEXT;
	return err;
}

static cl_int in_place_enqueue_map(const struct memobj *obj, const struct in_place_order *o)
{
	cl_int err = in_place_check_queue(obj, o->queue);

	if (err)
		return err;
	queue_bracket_close(o->queue);
	if (o->blocking)
		return nothing_enqueue_and_wait(o->type, o->queue, o->num_wait, o->wait, o->event);
	return nothing_enqueue(o->type, o->queue, o->num_wait, o->wait, o->event);
}

cl_int in_place_map_at(const struct memobj *obj, void *pointer, const struct in_place_order *order)
{
	struct in_place_map *map = in_place_map_create(pointer);
	cl_int err = map ? in_place_enqueue_map(obj, order) : CL_OUT_OF_HOST_MEMORY;

	if (err)
		in_place_map_free(map);
	else
		in_place_map_add(obj->in_place, map);
	return err;
}

void *in_place_map(const struct memobj *obj, const struct in_place_call *call, cl_int *err)
{
	const struct in_place_order order = { CL_COMMAND_MAP_BUFFER, call->queue, call->blocking,
					      call->num_wait,	     call->wait,  call->event };
	char *pointer = in_place_address(obj) + call->offset;

	*err = in_place_check_map(obj, call);
	if (!*err)
		*err = in_place_map_at(obj, pointer, &order);
	return *err ? NULL : pointer;
}

cl_int in_place_unmap(const struct memobj *obj, cl_command_queue queue, const void *pointer,
		      cl_uint num_wait, const cl_event *wait, cl_event *event)
{
	struct in_place_map *map;
	cl_int err = in_place_check_queue(obj, queue);

	if (err)
		return err;
	map = in_place_map_take(obj->in_place, pointer);
	if (!map)
		return CL_INVALID_VALUE;
	queue_bracket_close(queue);
	err = nothing_enqueue(CL_COMMAND_UNMAP_MEM_OBJECT, queue, num_wait, wait, event);
	if (err)
		in_place_map_add(obj->in_place, map);
	else
		in_place_map_free(map);
	return err;
}

void in_place_transfer(cl_mem buffer, size_t offset, size_t *size, const void *memory)
{
	struct memobj *obj = in_place_get(buffer);

	if (obj && memory == in_place_address(obj) + offset &&
	    in_place_has_range(obj, offset, *size))
		*size = 1;
	memobj_put(obj);
}

bool in_place_forbids(cl_mem buffer, cl_map_flags access)
{
	struct memobj *obj = in_place_get(buffer);
	bool forbids = obj && in_place_forbids_map(obj, access);

	memobj_put(obj);
	return forbids;
}

static bool in_place_is(cl_mem mem)
{
	struct memobj *obj = in_place_get(mem);

	memobj_put(obj);
	return obj;
}

bool in_place_has_any(cl_uint count, const cl_mem *mems)
{
	for (cl_uint i = 0; memobj_live() && mems && i < count; i++)
		if (in_place_is(mems[i]))
			return true;
	return false;
}

static bool in_place_is_of_context(cl_mem mem, cl_context context)
{
	struct memobj *obj = in_place_get(mem);
	bool is_of_context = !obj || obj->context == context;

	memobj_put(obj);
	return is_of_context;
}

/* The driver does not see the buffers in place, so their errors are the layer's. */
static cl_int in_place_check_migration(cl_command_queue queue, cl_uint count, const cl_mem *mems,
				       cl_mem_migration_flags flags)
{
	cl_context context;
	cl_int err = next.clGetCommandQueueInfo(queue, CL_QUEUE_CONTEXT, sizeof(context), &context,
						NULL);

	if (err)
		return err;
	if (flags & ~(cl_mem_migration_flags)(CL_MIGRATE_MEM_OBJECT_HOST |
					      CL_MIGRATE_MEM_OBJECT_CONTENT_UNDEFINED))
		return CL_INVALID_VALUE;
	for (cl_uint i = 0; i < count; i++)
		if (!in_place_is_of_context(mems[i], context))
			return CL_INVALID_CONTEXT;
	return CL_SUCCESS;
}

cl_int in_place_migrate(cl_command_queue queue, cl_uint count, const cl_mem *mems,
			cl_mem_migration_flags flags, cl_uint num_wait, const cl_event *wait,
			cl_event *event)
{
	cl_mem *others;
	cl_uint num = 0;
	cl_int err = in_place_check_migration(queue, count, mems, flags);

	if (err)
		return err;
	others = malloc(count * sizeof(*others));
	if (!others) {
		log_error("no memory for a list of memory objects");
		return CL_OUT_OF_HOST_MEMORY;
	}
	for (cl_uint i = 0; i < count; i++)
		if (!in_place_is(mems[i]))
			others[num++] = mems[i];
	err = num ? next.clEnqueueMigrateMemObjects(queue, num, others, flags, num_wait, wait,
						    event)
		  : nothing_enqueue(CL_COMMAND_MIGRATE_MEM_OBJECTS, queue, num_wait, wait, event);
	free(others);
	return err;
}
