/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/access/staged.h"

#include <pthread.h>

#include "icd/access/access.h"
#include "icd/error.h"
#include "icd/layer.h"
#include "icd/objects/in_place.h"
#include "icd/objects/proxy_event.h"
#include "util/lock.h"
#include "util/thread.h"

static void staged_in_child(struct lock *lock);

LOCK_DEFINE_IN_CHILD(staged_lock, LOCK_LAST, staged_in_child);
static pthread_cond_t staged_changed = PTHREAD_COND_INITIALIZER;
static unsigned int staged_depth; /* turns of the owner, one within the other */
static pthread_t staged_owner;

/* The owner is a thread of the parent's. */
static void staged_in_child(struct lock *lock)
{
	(void)lock;
	staged_depth = 0;
}

static bool staged_is_taken(void) REQUIRES(staged_lock)
{
	return staged_depth && !pthread_equal(staged_owner, pthread_self());
}

bool staged_take_turn(void)
{
	bool is_mine;

	THREAD_NO_CANCEL();
	lock_acquire(&staged_lock);
	while (staged_is_taken() && !lock_wait(&staged_lock, &staged_changed, NULL))
		;
	is_mine = !staged_is_taken();
	if (is_mine) {
		staged_owner = pthread_self();
		staged_depth++;
	}
	lock_release(&staged_lock);
	return is_mine;
}

void staged_end_turn(void)
{
	THREAD_NO_CANCEL();
	lock_acquire(&staged_lock);
	if (staged_depth) /* else a child's: the turn was the parent's */
		staged_depth--;
	if (!staged_depth)
		pthread_cond_signal(&staged_changed);
	lock_release(&staged_lock);
}

bool staged_is_written(const struct memobj *image)
{
	return !(in_place_flags(image->in_place) & CL_MEM_READ_ONLY);
}

/* A copy is a command on the in-place buffer, and may need a bracket of its own. */
cl_int staged_copy(cl_command_queue queue, struct memobj *source, bool is_before, cl_uint num_wait,
		   const cl_event *wait, cl_event *event)
{
	size_t size = 0;
	cl_mem stage = in_place_stage(source->in_place, &size);
	struct access a;
	cl_int err;

	*event = NULL;
	access_none(&a, num_wait, wait, event);
	err = access_begin(&a, queue, &source, 1, ACCESS_BOTH);
	if (err)
		return err;
	err = next.clEnqueueCopyBuffer(queue, is_before ? source->handle : stage,
				       is_before ? stage : source->handle, 0, 0, size, a.num_wait,
				       a.wait, a.event);
	err = access_end(&a, err, CL_FALSE);
	if (is_created(*event, err)) {
		proxy_event_unwrap(*event);
		return CL_SUCCESS;
	}
	err = err ? err : CL_OUT_OF_RESOURCES;
	error_of_driver("clEnqueueCopyBuffer", err);
	return err;
}
