/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/objects/memobj_watch.h"

#include <stdlib.h>

#include "icd/error.h"
#include "icd/layer.h"
#include "util/idle.h"
#include "util/lock.h"
#include "util/log.h"
#include "util/thread.h"

void CL_CALLBACK memobj_destroyed(cl_mem mem, void *region)
{
	(void)mem;
	import_put(region);
}

cl_int memobj_watch(cl_mem mem, struct import_region *region,
		    void(CL_CALLBACK *destroyed)(cl_mem mem, void *region))
{
	cl_int err;

	import_hold(region);
	err = next.clSetMemObjectDestructorCallback(mem, destroyed, region);
	if (err) {
		error_of_driver("clSetMemObjectDestructorCallback", err);
		import_put(region);
	}
	return err;
}

/* A driver's object holds memory and parent, which the driver does not know. */
struct memobj_part {
	struct import_region *region;
	cl_mem parent; /* a reference of the driver */
	bool is_late;  /* given up by memobj_part_tick() */
	struct memobj_part *next;
};

static void memobj_part_forget(struct lock *lock) TSA(no_thread_safety_analysis);

LOCK_DEFINE_IN_CHILD(memobj_part_lock, LOCK_LAST, memobj_part_forget); /* the list */
static struct memobj_part *memobj_parts_late GUARDED_BY(memobj_part_lock);

/* The parts are the parent process's. */
static void memobj_part_forget(struct lock *lock)
{
	(void)lock;
	memobj_parts_late = NULL;
}

static void memobj_part_destroy(struct memobj_part *part)
{
	THREAD_NO_CANCEL();

	import_put(part->region);
	next.clReleaseMemObject(part->parent);
	free(part);
}

static struct memobj_part *memobj_part_take(void)
{
	struct memobj_part *parts;

	lock_acquire(&memobj_part_lock);
	parts = memobj_parts_late;
	memobj_parts_late = NULL;
	lock_release(&memobj_part_lock);
	return parts;
}

static bool memobj_part_tick(void)
{
	struct memobj_part *part, *next_part;

	while ((part = memobj_part_take()))
		for (; part; part = next_part) {
			next_part = part->next;
			memobj_part_destroy(part);
		}
	return false;
}

/* Without a thread that could do it, the part is left to a later one: see idle_watch(). */
static void memobj_part_destroy_late(struct memobj_part *part)
{
	static struct idle_watcher watcher = { .tick = memobj_part_tick };

	lock_acquire(&memobj_part_lock);
	part->next = memobj_parts_late;
	memobj_parts_late = part;
	lock_release(&memobj_part_lock);
	idle_watch(&watcher);
}

static void CL_CALLBACK memobj_part_destroyed(cl_mem mem, void *arg)
{
	struct memobj_part *part = arg;

	(void)mem;
	if (part->is_late)
		memobj_part_destroy_late(part);
	else
		memobj_part_destroy(part);
}

static struct memobj_part *memobj_part_create(const struct memobj *parent, cl_int *err)
{
	bool is_late = memobj_no_calls_in_callbacks(memobj_import(parent));
	struct memobj_part *part;

	*err = is_late ? error_to_cl(idle_prepare()) : CL_SUCCESS;
	if (*err)
		return NULL;
	part = malloc(sizeof(*part));
	if (!part) {
		log_error("no memory for the record of an import");
		*err = CL_OUT_OF_HOST_MEMORY;
		return NULL;
	}
	*err = next.clRetainMemObject(parent->handle);
	if (*err) {
		error_of_driver("clRetainMemObject", *err);
		free(part);
		return NULL;
	}
	import_hold(parent->region);
	*part = (struct memobj_part){
		.region = parent->region,
		.parent = parent->handle,
		.is_late = is_late,
	};
	return part;
}

cl_int memobj_watch_part(cl_mem mem, const struct memobj *parent)
{
	cl_int err;
	struct memobj_part *part = memobj_part_create(parent, &err);

	if (!part)
		return err;
	err = next.clSetMemObjectDestructorCallback(mem, memobj_part_destroyed, part);
	if (err) {
		error_of_driver("clSetMemObjectDestructorCallback", err);
		memobj_part_destroy(part);
	}
	return err;
}
