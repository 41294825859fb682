/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The self-test of a bracket (access/bracket.h): a bracket around a marker, and a clFinish.
 *
 *	done[0] (user[0]); its callback completes user[1]
 *	done[1] (user[1]), the command; its callback completes user[2]
 *	done[2] (user[2])
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
#include "icd/selftest/selftest.h"
#include "util/thread.h"

#define GATE_MS 20	 /* the caller is in clFinish by then */
#define PATIENCE_MS 3000 /* the work takes one: a slow or busy machine */
#define EVENTS 3

/* A user event that a callback completes. */
struct event_hook {
	cl_event event;
	bool is_set;
	atomic_bool called; /* and over */
};

struct event_test {
	cl_context context;
	cl_command_queue queue;
	cl_event user[EVENTS], done[EVENTS];
	struct event_hook hooks[EVENTS - 1];
	atomic_bool finishes, finished; /* the caller enters clFinish, and has left it */
	bool is_rescued;		/* callbacks did not come */
};

static void CL_CALLBACK user_event_hook_run(cl_event event, cl_int status, void *arg)
{
	struct event_hook *hook = arg;

	(void)event;
	(void)status;
	next.clSetUserEventStatus(hook->event, CL_COMPLETE);
	atomic_store(&hook->called, true);
}

static cl_int user_event_make(struct event_test *t, cl_device_id device)
{
	cl_int err;

	t->context =
		created_or_null(next.clCreateContext(NULL, 1, &device, NULL, NULL, &err), &err);
	if (!err)
		t->queue = created_or_null(next.clCreateCommandQueue(t->context, device, 0, &err),
					   &err);
	for (int i = 0; i < EVENTS && !err; i++)
		t->user[i] = created_or_null(next.clCreateUserEvent(t->context, &err), &err);
	return err;
}

/* No command runs before all are enqueued, as a lazy driver's queue must not be empty in between. */
static cl_int user_event_enqueue(struct event_test *t)
{
	cl_int err = CL_SUCCESS;

	for (int i = 0; i < EVENTS && !err; i++) {
		err = next.clEnqueueMarkerWithWaitList(t->queue, 1, &t->user[i], &t->done[i]);
		if (err || i == EVENTS - 1)
			break;
		t->hooks[i].event = t->user[i + 1];
		err = next.clSetEventCallback(t->done[i], CL_COMPLETE, user_event_hook_run,
					      &t->hooks[i]);
		t->hooks[i].is_set = !err;
	}
	return err;
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

	if (thread_create(&thread, 0, user_event_run, t)) {
		user_event_complete(t);
		return UNTESTED;
	}
	atomic_store(&t->finishes, true);
	err = next.clFinish(t->queue);
	atomic_store(&t->finished, true);
	if (!err)
		err = next.clGetEventInfo(t->done[EVENTS - 1], CL_EVENT_COMMAND_EXECUTION_STATUS,
					  sizeof(status), &status, NULL);
	pthread_join(thread, NULL);
	if (err) {
		user_event_complete(t);
		return UNTESTED;
	}
	return status == CL_COMPLETE && !t->is_rescued ? PASSED : FAILED;
}

/* While a callback may come, the driver keeps the test.  @ms: the patience, milliseconds. */
static void user_event_destroy(struct event_test *t, int ms)
{
	for (int i = 0; i < EVENTS - 1; i++)
		if (t->hooks[i].is_set && !user_event_wait(&t->hooks[i].called, ms))
			return;
	for (int i = 0; i < EVENTS; i++) {
		if (t->done[i])
			next.clReleaseEvent(t->done[i]);
		if (t->user[i])
			next.clReleaseEvent(t->user[i]);
	}
	if (t->queue)
		next.clReleaseCommandQueue(t->queue);
	if (t->context)
		next.clReleaseContext(t->context);
	free(t);
}

/* OpenCL before 1.2 has no wait lists for markers. */
enum tested selftest_user_event(cl_device_id device)
{
	const cl_version version = device_version(device);
	enum tested found = UNTESTED;
	struct event_test *t;

	if (version < CL_MAKE_VERSION(1, 2, 0))
		return version ? FAILED : UNTESTED;
	t = calloc(1, sizeof(*t));
	if (!t)
		return UNTESTED;
	if (!user_event_make(t, device)) {
		if (user_event_enqueue(t))
			user_event_complete(t);
		else
			found = user_event_finish(t);
	}
	/* Callbacks come late on a busy machine, and may never come on a device that failed. */
	user_event_destroy(t, found == FAILED ? GATE_MS : PATIENCE_MS);
	return found;
}
