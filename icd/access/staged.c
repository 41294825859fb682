/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/access/staged.h"

#include "icd/access/access.h"
#include "icd/error.h"
#include "icd/layer.h"
#include "icd/objects/in_place.h"
#include "icd/objects/proxy_event.h"
#include "util/fork.h"
#include "util/lock.h"
#include "util/thread.h"

static void staged_in_child(struct lock *lock);

LOCK_DEFINE_IN_CHILD(staged_lock, LOCK_LAST, staged_in_child);
static pthread_cond_t staged_changed = PTHREAD_COND_INITIALIZER;
static struct list staged_turns GUARDED_BY(staged_lock) = LIST_INIT(staged_turns);

/* The turns are those of the parent's threads. */
static void staged_in_child(struct lock *lock)
{
	(void)lock;
	list_init(&staged_turns);
}

static bool staged_has(const struct staged_turn *turn, const struct memobj *source)
{
	for (cl_uint i = 0; i < turn->count; i++)
		if (turn->uses[i].source == source)
			return true;
	return false;
}

static bool staged_collides(const struct staged_turn *turn, const struct staged_turn *other)
{
	if (turn->queue != other->queue || pthread_equal(turn->owner, other->owner))
		return false;
	for (cl_uint i = 0; i < turn->count; i++)
		if (staged_has(other, turn->uses[i].source))
			return true;
	return false;
}

static bool staged_is_taken(const struct staged_turn *turn) REQUIRES(staged_lock)
{
	for (struct list *link = staged_turns.next; link != &staged_turns; link = link->next)
		if (staged_collides(turn, container_of(link, struct staged_turn, link)))
			return true;
	return false;
}

/* A thread that is cancelled in the driver's enqueue would keep its turn. */
bool staged_take_turn(struct staged_turn *turn)
{
	const int cancel_state = thread_cancel_disable();
	bool is_mine;

	turn->owner = pthread_self();
	turn->process = fork_generation();
	turn->cancel_state = cancel_state;
	lock_acquire(&staged_lock);
	while (staged_is_taken(turn) && !lock_wait(&staged_lock, &staged_changed, NULL))
		;
	is_mine = !staged_is_taken(turn);
	if (is_mine)
		list_add(&staged_turns, &turn->link);
	lock_release(&staged_lock);
	if (!is_mine)
		thread_cancel_restore(&cancel_state);
	return is_mine;
}

void staged_end_turn(struct staged_turn *turn)
{
	lock_acquire(&staged_lock);
	if (turn->process == fork_generation())
		list_remove(&turn->link);
	pthread_cond_broadcast(&staged_changed);
	lock_release(&staged_lock);
	thread_cancel_restore(&turn->cancel_state);
}

bool staged_is_writable(const struct memobj *image)
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
