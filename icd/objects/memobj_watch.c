/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/objects/memobj_watch.h"

#include <pthread.h>
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
 * A driver's object holds memory and parent, which the driver does not know.  A driver that bears no
 * calls in its callbacks may end a part in the application's release of the part: the part's hold
 * then ends after the driver's return.  Or the driver ends the part later, on a thread of its own:
 * the idle thread then ends the hold.
 */
struct memobj_part {
	struct import_region *region;
	cl_mem parent; /* a reference of the driver */
	bool is_late;  /* not given up in the driver's callback */
	struct memobj_part *next;
};

#define MEMOBJ_PARTS_LATE 16u /* holds that wait for the idle thread */
#define MEMOBJ_PART_PATIENCE_MS 100u
#define MEMOBJ_PART_SHORT_PATIENCE_MS 1000u /* where a call fails otherwise */

static void memobj_part_forget(struct lock *lock) TSA(no_thread_safety_analysis);

LOCK_DEFINE_IN_CHILD(memobj_part_lock, LOCK_LAST, memobj_part_forget); /* the list */
static struct memobj_part *memobj_parts_late GUARDED_BY(memobj_part_lock);
static atomic_uint memobj_parts_begun, memobj_parts_ended; /* to wait */

/* The parts are the parent process's. */
static void memobj_part_forget(struct lock *lock)
{
	(void)lock;
	memobj_parts_late = NULL;
	atomic_store(&memobj_parts_ended, atomic_load(&memobj_parts_begun));
}

static void memobj_part_destroy(struct memobj_part *part)
{
	THREAD_NO_CANCEL();

	import_put(part->region);
	next.clReleaseMemObject(part->parent);
	free(part);
}

/* One by one: a callback of the application's may end the thread. */
static struct memobj_part *memobj_part_take(void)
{
	struct memobj_part *part;

	lock_acquire(&memobj_part_lock);
	part = memobj_parts_late;
	if (part)
		memobj_parts_late = part->next;
	lock_release(&memobj_part_lock);
	return part;
}

static void memobj_part_count_end(void *unused)
{
	(void)unused;
	atomic_fetch_add(&memobj_parts_ended, 1);
}

/* False: there was no part. */
static bool memobj_part_end_next(void)
{
	struct memobj_part *const part = memobj_part_take();

	if (!part)
		return false;
	pthread_cleanup_push(memobj_part_count_end, NULL);
	memobj_part_destroy(part);
	pthread_cleanup_pop(1);
	return true;
}

static bool memobj_part_tick(void)
{
	while (memobj_part_end_next())
		;
	return false;
}

static struct idle_task memobj_part_task = { .tick = memobj_part_tick };

static unsigned int memobj_parts_waiting(void)
{
	unsigned int ended = atomic_load(&memobj_parts_ended);

	return atomic_load(&memobj_parts_begun) - ended;
}

/* Imports that are to end hold descriptors and pages. */
static bool memobj_parts_give_up(uint32_t count)
{
	unsigned int ended = atomic_load(&memobj_parts_ended);

	(void)count;
	if (memobj_parts_waiting())
		idle_call(&memobj_part_task, MEMOBJ_PART_SHORT_PATIENCE_MS);
	return atomic_load(&memobj_parts_ended) != ended;
}

static struct shortage_giver memobj_parts_giver = { .give_up = memobj_parts_give_up };

/* Without a thread that could do it, the part is left to a later one, or to the next release. */
static void memobj_part_destroy_late(struct memobj_part *part)
{
	atomic_fetch_add(&memobj_parts_begun, 1);
	lock_acquire(&memobj_part_lock);
	part->next = memobj_parts_late;
	memobj_parts_late = part;
	lock_release(&memobj_part_lock);
	shortage_add_giver(&memobj_parts_giver);
	idle_request(&memobj_part_task);
}

/*
 * A release that a thread is in: holds that end after the driver's return.  By a key, because
 * thread-local data of the layer is allocated at a thread's first use.
 */
struct memobj_release {
	struct memobj_part *parts;
};

static atomic_bool memobj_has_late_parts; /* one was made: else no release has ends to wait for */
static pthread_key_t memobj_release_key;
static bool memobj_has_release_key;

static void memobj_release_create_key(void)
{
	memobj_has_release_key = !pthread_key_create(&memobj_release_key, NULL);
}

/* The release that this thread is in, or NULL. */
static struct memobj_release *memobj_release_now(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, memobj_release_create_key);
	return memobj_has_release_key ? pthread_getspecific(memobj_release_key) : NULL;
}

/* False: the thread is in a release already, or has no room for the record. */
static bool memobj_release_begin(struct memobj_release *release)
{
	return !memobj_release_now() && memobj_has_release_key &&
	       !pthread_setspecific(memobj_release_key, release);
}

/*
 * Ends of holds may add to the list.  While the process exits, or has no room for a thread, no idle
 * thread calls drivers; the program still does.
 */
static void memobj_release_end(void *arg)
{
	struct memobj_release *release = arg;
	struct memobj_part *part;

	while ((part = release->parts)) {
		release->parts = part->next;
		memobj_part_destroy(part);
	}
	if (memobj_parts_waiting() && !idle_is_running())
		memobj_part_tick();
	pthread_setspecific(memobj_release_key, NULL);
}

/*
 * A release in a callback of a release leaves its holds to the first release.  A callback may end
 * the thread.
 */
cl_int memobj_watch_release(cl_mem mem)
{
	struct memobj_release release = { NULL };
	cl_int err;

	if (!atomic_load_explicit(&memobj_has_late_parts, memory_order_relaxed) ||
	    !memobj_release_begin(&release))
		return next.clReleaseMemObject(mem);
	pthread_cleanup_push(memobj_release_end, &release);
	err = next.clReleaseMemObject(mem);
	pthread_cleanup_pop(1);
	return err;
}

static void CL_CALLBACK memobj_part_destroyed(cl_mem mem, void *arg)
{
	struct memobj_release *release = memobj_release_now();
	struct memobj_part *part = arg;

	(void)mem;
	if (!part->is_late) {
		memobj_part_destroy(part);
	} else if (release) {
		part->next = release->parts;
		release->parts = part;
	} else {
		memobj_part_destroy_late(part);
	}
}

/* For the end of a part that may have to wait. */
static cl_int memobj_part_prepare(void)
{
	if (memobj_parts_waiting() >= MEMOBJ_PARTS_LATE)
		idle_call(&memobj_part_task, MEMOBJ_PART_PATIENCE_MS);
	return error_to_cl(idle_prepare());
}

static struct memobj_part *memobj_part_create(const struct memobj *parent, cl_int *err)
{
	bool is_late = memobj_import(parent)->method->quirks & METHOD_NO_CALLS_IN_CALLBACKS;
	struct memobj_part *part;

	if (is_late)
		atomic_store_explicit(&memobj_has_late_parts, true, memory_order_relaxed);
	*err = is_late ? memobj_part_prepare() : CL_SUCCESS;
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
