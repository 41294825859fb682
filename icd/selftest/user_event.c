/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The self-test of a bracket (access/bracket.h): one end of it, and a clFinish.
 *
 *	done[0] (user[0]); its callback completes user[1]
 *	done[1] (user[1])
 *
 * Another thread completes user[0], the gate, while the caller is in clFinish.  PoCL's device "basic" (3.1) returns
 * from clFinish too early, and deadlocks if the event is completed then, so its gate stays as it is.  oclgrind (21.10)
 * calls back after the last command, so clFinish would spin for ever: the thread completes what is left.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "icd/driver_info.h"
#include "icd/layer.h"
#include "icd/selftest/session.h"
#include "util/thread.h"

#define GATE_MS 20	 /* the caller is in clFinish by then */
#define PATIENCE_MS 3000 /* the work takes one: a slow or busy machine */
#define EVENTS 2

struct event_test {
	struct session session;
	cl_event user[EVENTS], done[EVENTS];
	atomic_bool called;		/* and the callback is over */
	atomic_bool finishes, finished; /* the caller enters clFinish, and has left it */
	bool is_rescued;		/* the callback did not come */
};

static void CL_CALLBACK user_event_called(cl_event event, cl_int status, void *arg)
{
	struct event_test *t = arg;

	(void)event;
	(void)status;
	next.clSetUserEventStatus(t->user[1], CL_COMPLETE);
	atomic_store(&t->called, true);
}

/* No command runs before all are enqueued, as a lazy driver's queue must not be empty in between. */
static cl_int user_event_enqueue(struct event_test *t, const cl_device_id *device)
{
	cl_int err = session_begin_queue(&t->session, device, 1);

	for (int i = 0; i < EVENTS && !err; i++)
		t->user[i] =
			created_or_null(next.clCreateUserEvent(t->session.context, &err), &err);
	for (int i = 0; i < EVENTS && !err; i++)
		err = next.clEnqueueMarkerWithWaitList(t->session.queue, 1, &t->user[i],
						       &t->done[i]);
	return err ? err : next.clSetEventCallback(t->done[0], CL_COMPLETE, user_event_called, t);
}

/* False: that takes longer than @ms milliseconds. */
static bool user_event_wait(const atomic_bool *done, int ms)
{
	const struct timespec tick = { 0, 1000000 };

	for (; !atomic_load(done) && ms; ms--)
		nanosleep(&tick, NULL);
	return atomic_load(done);
}

static void user_event_complete(struct event_test *t)
{
	for (int i = 0; i < EVENTS; i++)
		if (t->user[i])
			next.clSetUserEventStatus(t->user[i], CL_COMPLETE);
}

static void *user_event_run(void *arg)
{
	struct event_test *t = arg;

	user_event_wait(&t->finishes, PATIENCE_MS);
	if (user_event_wait(&t->finished, GATE_MS))
		return NULL;
	next.clSetUserEventStatus(t->user[0], CL_COMPLETE);
	t->is_rescued = !user_event_wait(&t->finished, PATIENCE_MS);
	if (t->is_rescued)
		user_event_complete(t);
	return NULL;
}

static enum tested user_event_finish(struct event_test *t)
{
	cl_int status = CL_QUEUED, err;
	pthread_t thread;

	if (thread_create(&thread, 0, user_event_run, t))
		return UNTESTED;
	atomic_store(&t->finishes, true);
	err = next.clFinish(t->session.queue);
	atomic_store(&t->finished, true);
	if (!err)
		err = next.clGetEventInfo(t->done[EVENTS - 1], CL_EVENT_COMMAND_EXECUTION_STATUS,
					  sizeof(status), &status, NULL);
	pthread_join(thread, NULL);
	if (err)
		return UNTESTED;
	return status == CL_COMPLETE && !t->is_rescued ? PASSED : FAILED;
}

static void user_event_destroy(struct event_test *t)
{
	for (int i = 0; i < EVENTS; i++) {
		if (t->done[i])
			next.clReleaseEvent(t->done[i]);
		if (t->user[i])
			next.clReleaseEvent(t->user[i]);
	}
	session_end(&t->session);
	free(t);
}

/*
 * OpenCL before 1.2 has no wait lists for markers.  While a callback may come, late on a busy machine, the driver keeps the
 * test; it may never come on a device that failed.
 */
enum tested selftest_user_event(cl_device_id device)
{
	const cl_version version = device_version(device);
	enum tested found = UNTESTED;
	struct event_test *t;
	cl_int err;

	if (version < CL_MAKE_VERSION(1, 2, 0))
		return version ? FAILED : UNTESTED;
	t = calloc(1, sizeof(*t));
	if (!t)
		return UNTESTED;
	err = user_event_enqueue(t, &device);
	if (!err)
		found = user_event_finish(t);
	if (found == UNTESTED)
		user_event_complete(t);
	if (err || user_event_wait(&t->called, found == FAILED ? GATE_MS : PATIENCE_MS))
		user_event_destroy(t);
	return found;
}
