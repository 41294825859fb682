/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/objects/memobj_watch.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "icd/error.h"
#include "icd/layer.h"
#include "icd/objects/method.h"
#include "util/idle.h"
#include "util/lock.h"
#include "util/log.h"
#include "util/shortage.h"
#include "util/thread.h"

/*
 * A driver's object holds its parent, which the driver does not know; the parent holds the memory.  A driver that bears
 * no calls in its callbacks may end the object in the application's release: the hold then ends after the driver's
 * return.  Or it ends the object later, on a thread of its own: the idle thread then ends the hold.
 */
struct memobj_hold {
	cl_mem parent; /* a reference of the driver */
	bool is_late;  /* not given up in the driver's callback */
	struct memobj_hold *next;
};

#define MEMOBJ_PATIENCE_MS 1000u /* where a call fails otherwise */

static void memobj_holds_forget(struct lock *lock) TSA(no_thread_safety_analysis);

LOCK_DEFINE_IN_CHILD(memobj_holds_lock, LOCK_LAST, memobj_holds_forget); /* the list */
static struct memobj_hold *memobj_holds_late GUARDED_BY(memobj_holds_lock);
static atomic_uint memobj_holds_waiting; /* of the list, or about to end */
static atomic_bool memobj_has_late;	 /* one was made: else no release has anything to end */

/* This thread's release is in the driver, and what the driver has ended there. */
static _Thread_local bool memobj_releases;
static _Thread_local struct memobj_hold *memobj_own;

/* The holds are the parent process's. */
static void memobj_holds_forget(struct lock *lock)
{
	(void)lock;
	memobj_holds_late = NULL;
	atomic_store(&memobj_holds_waiting, 0);
}

static void memobj_hold_end(struct memobj_hold *hold)
{
	THREAD_NO_CANCEL();

	next.clReleaseMemObject(hold->parent);
	free(hold);
}

static struct memobj_hold *memobj_hold_take(void)
{
	struct memobj_hold *hold;

	lock_acquire(&memobj_holds_lock);
	hold = memobj_holds_late;
	if (hold)
		memobj_holds_late = hold->next;
	lock_release(&memobj_holds_lock);
	return hold;
}

static bool memobj_holds_tick(void)
{
	struct memobj_hold *hold;

	while ((hold = memobj_hold_take())) {
		memobj_hold_end(hold);
		atomic_fetch_sub(&memobj_holds_waiting, 1);
	}
	return false;
}

static struct idle_task memobj_holds_task = { .tick = memobj_holds_tick };

/* Imports that are to end hold descriptors and pages. */
static bool memobj_holds_give_up(uint32_t count)
{
	const unsigned int waiting = atomic_load(&memobj_holds_waiting);

	(void)count;
	if (waiting)
		idle_call(&memobj_holds_task, MEMOBJ_PATIENCE_MS);
	return atomic_load(&memobj_holds_waiting) < waiting;
}

static struct shortage_giver memobj_holds_giver = { .give_up = memobj_holds_give_up };

/* Without an idle thread the hold is left to a later release. */
static void memobj_hold_end_late(struct memobj_hold *hold)
{
	atomic_fetch_add(&memobj_holds_waiting, 1);
	lock_acquire(&memobj_holds_lock);
	hold->next = memobj_holds_late;
	memobj_holds_late = hold;
	lock_release(&memobj_holds_lock);
	shortage_add_giver(&memobj_holds_giver);
	idle_request(&memobj_holds_task);
}

cl_int memobj_watch_release(cl_mem mem)
{
	struct memobj_hold *hold;
	cl_int err;

	if (!atomic_load_explicit(&memobj_has_late, memory_order_relaxed) || memobj_releases)
		return next.clReleaseMemObject(mem);
	memobj_releases = true;
	err = next.clReleaseMemObject(mem);
	while ((hold = memobj_own)) {
		memobj_own = hold->next;
		memobj_hold_end(hold);
	}
	memobj_releases = false;
	if (atomic_load(&memobj_holds_waiting) && !idle_is_running())
		memobj_holds_tick();
	return err;
}

static void CL_CALLBACK memobj_watched_destroyed(cl_mem mem, void *arg)
{
	struct memobj_hold *hold = arg;

	(void)mem;
	if (!hold->is_late) {
		memobj_hold_end(hold);
	} else if (memobj_releases) {
		hold->next = memobj_own;
		memobj_own = hold;
	} else {
		memobj_hold_end_late(hold);
	}
}

/* For the end of a hold that may have to wait. */
static cl_int memobj_hold_prepare(void)
{
	atomic_store_explicit(&memobj_has_late, true, memory_order_relaxed);
	return error_to_cl(idle_prepare());
}

static struct memobj_hold *memobj_hold_create(const struct memobj *parent, cl_int *err)
{
	bool is_late = memobj_import(parent)->method->quirks & METHOD_NO_CALLS_IN_CALLBACKS;
	struct memobj_hold *hold;

	*err = is_late ? memobj_hold_prepare() : CL_SUCCESS;
	if (*err)
		return NULL;
	hold = malloc(sizeof(*hold));
	if (!hold) {
		log_error("no memory to keep track of a sub-buffer or image of an import");
		*err = CL_OUT_OF_HOST_MEMORY;
		return NULL;
	}
	*err = next.clRetainMemObject(parent->handle);
	if (*err) {
		error_of_driver("clRetainMemObject", *err);
		free(hold);
		return NULL;
	}
	*hold = (struct memobj_hold){ .parent = parent->handle, .is_late = is_late };
	return hold;
}

cl_mem memobj_watched(cl_mem mem, const struct memobj *parent, cl_int *err)
{
	struct memobj_hold *hold;

	if (!mem)
		return NULL;
	hold = memobj_hold_create(parent, err);
	if (hold) {
		*err = next.clSetMemObjectDestructorCallback(mem, memobj_watched_destroyed, hold);
		if (!*err)
			return mem;
		error_of_driver("clSetMemObjectDestructorCallback", *err);
		memobj_hold_end(hold);
	}
	next.clReleaseMemObject(mem);
	return NULL;
}
