/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/objects/memobj.h"

#include <stdlib.h>

#include "icd/error.h"
#include "icd/layer.h"
#include "icd/objects/backing.h"
#include "icd/objects/method.h"
#include "util/log.h"

HANDLE_TABLE_DEFINE(memobj_table, NULL); /* cl_mem -> struct memobj */

struct memobj *memobj_get(cl_mem mem)
{
	return handle_table_get(&memobj_table, mem);
}

void memobj_put(struct memobj *obj)
{
	while (obj && handle_record_put(&obj->record)) {
		struct memobj *parent = obj->parent;

		if (obj->backing)
			backing_put(obj->backing);
		free(obj->properties);
		if (parent)
			free(obj);
		else
			import_put(obj->region);
		obj = parent;
	}
}

static void CL_CALLBACK memobj_destroyed(cl_mem mem, void *region)
{
	(void)mem;
	import_put(region);
}

cl_int memobj_hold_until_destroyed(cl_mem mem, struct import_region *region)
{
	cl_int err;

	if (region->is_borrowed && !region->opaque)
		return CL_SUCCESS;
	import_hold(region);
	err = next.clSetMemObjectDestructorCallback(mem, memobj_destroyed, region);
	if (err) {
		error_of_driver("clSetMemObjectDestructorCallback", err);
		import_put(region);
	}
	return err;
}

cl_mem memobj_holding(cl_mem mem, struct import_region *region, cl_int *err)
{
	if (!mem)
		return NULL;
	*err = memobj_hold_until_destroyed(mem, region);
	if (!*err)
		return mem;
	next.clReleaseMemObject(mem);
	return NULL;
}

/* An object that is made from another has a handle on its parent. */
cl_int memobj_add(struct memobj *obj)
{
	bool is_added;

	lock_acquire(&memobj_table.lock);
	is_added = handle_table_set(&memobj_table, obj->handle, obj);
	if (is_added && obj->parent) {
		obj->parent->record.handles++;
		handle_record_hold(&obj->parent->record);
	}
	lock_release(&memobj_table.lock);
	if (is_added)
		return CL_SUCCESS;
	log_error("no memory to keep track of an import, or of what is made from it");
	return CL_OUT_OF_HOST_MEMORY;
}

/*
 * A parent can leave the table with its last child.  The child still holds the parent's record, so
 * the table's reference to the parent is never the last one.
 */
struct memobj *memobj_release(cl_mem mem, const struct memobj **import)
{
	struct memobj *gone, *obj;

	lock_acquire(&memobj_table.lock);
	gone = obj = handle_table_drop(&memobj_table, mem);
	while (obj && obj->parent) {
		obj = handle_table_drop(&memobj_table, obj->parent->handle);
		if (obj)
			handle_record_put(&obj->record);
	}
	*import = obj;
	lock_release(&memobj_table.lock);
	return gone;
}

bool memobj_needs_acquire(const struct memobj *obj)
{
	return obj->method->enqueue_edge;
}

cl_mem memobj_root(const struct memobj *import)
{
	return import->backing ? backing_mem(import->backing) : import->handle;
}

bool memobj_needs_access(const struct memobj *obj)
{
	return !obj->external && (import_needs_bracket(obj->region) || memobj_needs_acquire(obj));
}

bool memobj_is_recordable(const struct memobj *obj)
{
	return !memobj_needs_access(obj) ||
	       (!memobj_import(obj)->is_managed && !memobj_needs_acquire(obj));
}

void memobj_list_take(struct memobj_list *list, struct memobj *obj)
{
	bool is_new = true;

	for (size_t i = 0; i < list->count; i++)
		is_new &= list->objs[i]->region != obj->region;
	if (is_new && list->count < MEMOBJ_LIST_MAX) {
		list->objs[list->count++] = obj;
		return;
	}
	list->left_out += is_new;
	memobj_put(obj);
}

void memobj_list_add(struct memobj_list *list, cl_mem mem)
{
	struct memobj *obj = memobj_get(mem);

	if (obj && memobj_needs_access(obj))
		memobj_list_take(list, obj);
	else
		memobj_put(obj);
}

void memobj_list_put(struct memobj_list *list)
{
	while (list->count)
		memobj_put(list->objs[--list->count]);
}

const struct memobj *memobj_import(const struct memobj *obj)
{
	while (obj->parent)
		obj = obj->parent;
	return obj;
}
