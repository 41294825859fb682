/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/calls/in_place.h"

#include <stdlib.h>

#include "icd/layer.h"
#include "icd/objects/proxy_event.h"
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
	const cl_mem_flags mem = in_place_flags(obj->in_place);

	if (mem & CL_MEM_HOST_NO_ACCESS)
		return true;
	if (flags & CL_MAP_READ)
		return mem & CL_MEM_HOST_WRITE_ONLY;
	return flags && mem & CL_MEM_HOST_READ_ONLY;
}

static bool in_place_flags_are_wrong(cl_map_flags flags)
{
	const cl_map_flags both = CL_MAP_READ | CL_MAP_WRITE;

	return flags & ~(both | CL_MAP_WRITE_INVALIDATE_REGION) ||
	       (flags & both && flags & CL_MAP_WRITE_INVALIDATE_REGION);
}

cl_int in_place_map_begin(const struct memobj *obj, struct in_place_call *call,
			  struct in_place_map **map)
{
	*map = NULL;
	if (!obj)
		return CL_SUCCESS;
	if (in_place_flags_are_wrong(call->flags) ||
	    !in_place_has_range(obj, call->offset, call->size))
		return CL_INVALID_VALUE;
	if (in_place_forbids_map(obj, call->flags))
		return CL_INVALID_OPERATION;
	*map = in_place_map_create(in_place_address(obj) + call->offset);
	if (!*map)
		return CL_OUT_OF_HOST_MEMORY;
	call->flags = CL_MAP_READ;
	call->size = 1;
	return CL_SUCCESS;
}

void *in_place_map_end(const struct memobj *obj, struct in_place_map *map, size_t offset,
		       void *pointer)
{
	if (!map)
		return pointer;
	if (!pointer) {
		in_place_map_free(map);
		return NULL;
	}
	in_place_map_add(obj->in_place, map, pointer);
	return in_place_address(obj) + offset;
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

/* Nothing is left to migrate. */
static cl_int in_place_migrate_none(cl_command_queue queue, cl_uint num_wait, const cl_event *wait,
				    cl_event *event)
{
	cl_event marker;
	cl_int err;

	if (!event)
		return next.clEnqueueMarkerWithWaitList(queue, num_wait, wait, NULL);
	err = next.clEnqueueMarkerWithWaitList(queue, num_wait, wait, &marker);
	if (!err)
		proxy_event_give_as(marker, CL_COMMAND_MIGRATE_MEM_OBJECTS, event);
	return err;
}

cl_int in_place_migrate(cl_command_queue queue, cl_uint count, const cl_mem *mems,
			cl_mem_migration_flags flags, cl_uint num_wait, const cl_event *wait,
			cl_event *event)
{
	cl_mem *others;
	cl_uint num = 0;
	cl_int err;

	if (flags & ~(cl_mem_migration_flags)(CL_MIGRATE_MEM_OBJECT_HOST |
					      CL_MIGRATE_MEM_OBJECT_CONTENT_UNDEFINED))
		return CL_INVALID_VALUE;
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
		  : in_place_migrate_none(queue, num_wait, wait, event);
	free(others);
	return err;
}
