/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/objects/memobj.h"

#include <stdlib.h>

#include "icd/access/mapping.h"
#include "icd/access/queue_bracket.h"
#include "icd/calls/info_answer.h"
#include "icd/error.h"
#include "icd/intercept.h"
#include "icd/layer.h"
#include "icd/methods/method.h"
#include "icd/objects/table.h"
#include "util/lock.h"
#include "util/log.h"

LOCK_DEFINE(memobj_lock, LOCK_LAST);	  /* table, and handles of every record */
static struct table memobjs = TABLE_INIT; /* cl_mem -> struct memobj */
atomic_uint memobj_count;

bool memobj_is_import(cl_mem mem)
{
	return table_get(&memobjs, mem) != NULL;
}

struct memobj *memobj_hold(struct memobj *obj)
{
	atomic_fetch_add_explicit(&obj->refs, 1, memory_order_relaxed);
	return obj;
}

struct memobj *memobj_get(cl_mem mem)
{
	struct memobj *obj;

	if (!memobj_is_import(mem))
		return NULL;
	lock_acquire(&memobj_lock);
	obj = table_get(&memobjs, mem);
	if (obj)
		memobj_hold(obj);
	lock_release(&memobj_lock);
	return obj;
}

void memobj_put(struct memobj *obj)
{
	while (obj && atomic_fetch_sub_explicit(&obj->refs, 1, memory_order_acq_rel) == 1) {
		struct memobj *parent = obj->parent;

		import_put(obj->region);
		if (obj->hidden)
			obj->method->release_hidden(obj->hidden);
		free(obj);
		obj = parent;
	}
}

/* May run late and on the driver's thread: it knows the region alone, no address. */
static void CL_CALLBACK memobj_destroyed(cl_mem mem, void *region)
{
	(void)mem;
	mapping_forget(region);
	import_put(region);
}

cl_int memobj_watch(cl_mem mem, struct import_region *region)
{
	cl_int err;

	import_hold(region);
	err = next.clSetMemObjectDestructorCallback(mem, memobj_destroyed, region);
	if (err) {
		error_of_driver("clSetMemObjectDestructorCallback", err);
		import_put(region);
	}
	return err;
}

/* What a driver's object keeps. */
struct kept {
	struct import_region *region;
	cl_mem parent; /* a reference of the driver */
};

static void kept_put(struct kept *kept)
{
	import_put(kept->region);
	next.clReleaseMemObject(kept->parent);
	free(kept);
}

static void CL_CALLBACK part_destroyed(cl_mem mem, void *kept)
{
	(void)mem;
	kept_put(kept);
}

cl_int memobj_watch_part(cl_mem mem, const struct memobj *parent)
{
	struct kept *kept = malloc(sizeof(*kept));
	cl_int err;

	if (!kept) {
		log_error("no memory for the record of an import");
		return CL_OUT_OF_HOST_MEMORY;
	}
	*kept = (struct kept){ parent->region, parent->handle };
	err = next.clRetainMemObject(kept->parent);
	if (err) {
		error_of_driver("clRetainMemObject", err);
		free(kept);
		return err;
	}
	import_hold(kept->region);
	err = next.clSetMemObjectDestructorCallback(mem, part_destroyed, kept);
	if (err) {
		error_of_driver("clSetMemObjectDestructorCallback", err);
		kept_put(kept);
	}
	return err;
}

cl_int memobj_add(const struct memobj *like)
{
	struct memobj *obj = malloc(sizeof(*obj));
	bool added;

	if (!obj) {
		log_error("no memory for the record of an import");
		return CL_OUT_OF_HOST_MEMORY;
	}
	*obj = *like;
	obj->refs = 1;
	obj->handles = 1;
	lock_acquire(&memobj_lock);
	added = table_set(&memobjs, obj->handle, obj);
	if (added && obj->parent) {
		obj->parent->handles++;
		memobj_hold(obj->parent);
	}
	atomic_store_explicit(&memobj_count, memobjs.live, memory_order_relaxed);
	lock_release(&memobj_lock);
	if (!added) {
		log_error("no memory for the record of an import");
		free(obj);
		return CL_OUT_OF_HOST_MEMORY;
	}
	import_hold(obj->region);
	return CL_SUCCESS;
}

/*
 * One reference less; returns the record whose driver object the caller is
 * about to give up, with the table's reference to it.  A parent can go with its
 * last child; the child holds its record until memobj_put().  @import is set to
 * the record of the import if it goes: the same, or a parent.
 */
static struct memobj *memobj_drop(cl_mem mem, const struct memobj **import)
{
	struct memobj *obj, *gone = NULL;

	lock_acquire(&memobj_lock);
	obj = table_get(&memobjs, mem);
	if (obj && !--obj->handles)
		gone = obj;
	for (obj = gone; obj; obj = obj->parent) {
		table_remove(&memobjs, obj->handle);
		if (obj != gone)
			atomic_fetch_sub_explicit(&obj->refs, 1, memory_order_relaxed);
		if (!obj->parent)
			*import = obj;
		if (!obj->parent || --obj->parent->handles)
			break;
	}
	atomic_store_explicit(&memobj_count, memobjs.live, memory_order_relaxed);
	lock_release(&memobj_lock);
	return gone;
}

cl_int CL_API_CALL layer_clRetainMemObject(cl_mem mem)
{
	struct memobj *obj;

	if (memobj_live() && memobj_is_import(mem)) {
		lock_acquire(&memobj_lock);
		obj = table_get(&memobjs, mem);
		if (obj)
			obj->handles++;
		lock_release(&memobj_lock);
	}
	return next.clRetainMemObject(mem);
}

cl_int CL_API_CALL layer_clReleaseMemObject(cl_mem mem)
{
	const struct memobj *import = NULL;
	struct memobj *gone = memobj_live() && memobj_is_import(mem) ? memobj_drop(mem, &import)
								     : NULL;
	cl_int err;

	if (gone && gone->bracket)
		queue_bracket_close_region(gone->region);
	if (import) {
		/* before the application's destructor callback, which may import it anew */
		mapping_release(import->region);
		import_released(import->region);
	}
	err = next.clReleaseMemObject(mem);

	memobj_put(gone);
	return err;
}

const struct memobj *memobj_import(const struct memobj *obj)
{
	while (obj->parent)
		obj = obj->parent;
	return obj;
}

static const cl_mem *parent_of(const struct memobj *obj)
{
	static const cl_mem none;

	return obj->parent ? &obj->parent->handle : &none;
}

/* How an import was built does not show: no CL_MEM_USE_HOST_PTR, no host pointer. */
static cl_int memobj_info(const struct memobj *obj, cl_mem_info name, size_t size, void *value,
			  size_t *size_ret)
{
	const cl_bool no = CL_FALSE;
	void *const no_pointer = NULL;
	cl_mem_flags flags;
	cl_int err;

	switch (name) {
	case CL_MEM_FLAGS:
		err = next.clGetMemObjectInfo(obj->handle, name, sizeof(flags), &flags, NULL);
		flags &= ~(cl_mem_flags)CL_MEM_USE_HOST_PTR;
		return err ? err : info_answer(&flags, sizeof(flags), size, value, size_ret);
	case CL_MEM_HOST_PTR:
		return info_answer(&no_pointer, sizeof(no_pointer), size, value, size_ret);
	case CL_MEM_USES_SVM_POINTER:
		return info_answer(&no, sizeof(no), size, value, size_ret);
	case CL_MEM_PROPERTIES:
		return info_answer(NULL, 0, size, NULL, size_ret);
	case CL_MEM_ASSOCIATED_MEMOBJECT:
		if (obj->hides_parent || obj->hidden)
			return info_answer(parent_of(obj), sizeof(cl_mem), size, value, size_ret);
		break;
	case CL_MEM_OFFSET:
		if (memobj_import(obj)->hidden)
			return info_answer(&obj->origin, sizeof(obj->origin), size, value,
					   size_ret);
		break;
	}
	return next.clGetMemObjectInfo(obj->handle, name, size, value, size_ret);
}

cl_int CL_API_CALL layer_clGetMemObjectInfo(cl_mem mem, cl_mem_info name, size_t size, void *value,
					    size_t *size_ret)
{
	struct memobj *obj = memobj_live() ? memobj_get(mem) : NULL;
	cl_int err;

	if (!obj)
		return next.clGetMemObjectInfo(mem, name, size, value, size_ret);
	err = memobj_info(obj, name, size, value, size_ret);
	memobj_put(obj);
	return err;
}

cl_int CL_API_CALL layer_clGetImageInfo(cl_mem image, cl_image_info name, size_t size, void *value,
					size_t *size_ret)
{
	struct memobj *obj = name == CL_IMAGE_BUFFER && memobj_live() ? memobj_get(image) : NULL;
	cl_int err;

	if (!obj || !obj->hides_parent)
		err = next.clGetImageInfo(image, name, size, value, size_ret);
	else
		err = info_answer(&obj->parent->handle, sizeof(cl_mem), size, value, size_ret);
	memobj_put(obj);
	return err;
}
