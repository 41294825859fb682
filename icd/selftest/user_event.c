/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The self-test of a bracket (access/bracket.h) asks two questions.
 *
 * First: does clFinish wait for commands behind user events, and does the driver call back when
 * such commands are complete?  PoCL's device "basic" (3.1) returns from clFinish too early, and
 * deadlocks if the event is completed meanwhile.  So the event is completed only when the thread in
 * clFinish is known to wait: the thread sleeps, or has used the CPU for longer than a return takes.
 * A failing driver may hang in any later call, so the objects of the test are then left alone.
 *
 * Second: does a callback come while clFinish waits for the work of the callback?  oclgrind (21.10)
 * calls back behind the last command, and clFinish spins for ever.
 *
 * OpenCL before 1.2 has no wait lists for markers.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "icd/layer.h"
#include "icd/objects/device.h"
#include "icd/selftest/selftest.h"
#include "util/thread.h"

#define LOOKS 3		    /* at a sleeping thread: a lock in clFinish is held for less */
#define SPIN_TICKS 20	    /* of CPU time, 0.2 s: a spinning thread */
#define LOOK_LIMIT 3000	    /* milliseconds, for clFinish */
#define TEST_LIMIT 4500	    /* milliseconds, of all the test: the work takes one */
#define BRACKET_TICKS 100   /* 1 s */
#define CALLBACK_LIMIT 1500 /* milliseconds, for a callback */

/* A user event, completed by a callback. */
struct event_hook {
	cl_event event;
	atomic_bool called; /* and over */
	bool watched;
};

struct event_test {
	cl_context context;
	cl_command_queue queue;
	cl_event gate, marker;
	atomic_int tid; /* of the thread, set just before clFinish */
	atomic_bool finished, called_back;
	bool watched;	 /* called_back will be set */
	long long until; /* milliseconds: the end of the test's time */
	cl_int result;	 /* of clFinish */
	pthread_t thread;
	struct event_hook begin, end;
	cl_event start; /* of the bracket: completed when the whole bracket is enqueued */
	cl_event ready, command, last;
};

static void *user_event_finish(void *arg)
{
	struct event_test *t = arg;

	atomic_store(&t->tid, gettid());
	t->result = next.clFinish(t->queue);
	atomic_store(&t->finished, true);
	return NULL;
}

static void CL_CALLBACK user_event_marker_complete(cl_event event, cl_int status, void *arg)
{
	struct event_test *t = arg;

	(void)event;
	(void)status;
	atomic_store(&t->called_back, true);
}

static bool user_event_begin(struct event_test *t, cl_device_id device)
{
	cl_int err;

	t->context =
		created_or_null(next.clCreateContext(NULL, 1, &device, NULL, NULL, &err), &err);
	if (!err)
		t->queue = created_or_null(next.clCreateCommandQueue(t->context, device, 0, &err),
					   &err);
	if (!err)
		t->gate = created_or_null(next.clCreateUserEvent(t->context, &err), &err);
	if (!err)
		err = next.clEnqueueMarkerWithWaitList(t->queue, 1, &t->gate, &t->marker);
	if (!err)
		err = next.clSetEventCallback(t->marker, CL_COMPLETE, user_event_marker_complete,
					      t);
	t->watched = !err;
	return !err && !thread_create(&t->thread, 0, user_event_finish, t);
}

static void user_event_end(struct event_test *t)
{
	const cl_event events[] = { t->marker,	t->gate, t->start,	 t->ready,
				    t->command, t->last, t->begin.event, t->end.event };

	for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++)
		if (events[i])
			next.clReleaseEvent(events[i]);
	if (t->queue)
		next.clReleaseCommandQueue(t->queue);
	if (t->context)
		next.clReleaseContext(t->context);
	free(t);
}

/* State and CPU time of a thread: fields 3, 14 and 15 of proc_pid_stat(5). */
static bool user_event_look(int tid, char *state, unsigned long *ticks)
{
	unsigned long user = 0, system = 0;
	char path[64], text[512];
	const char *after;
	FILE *file;
	size_t n;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	file = fopen(path, "re");
	if (!file)
		return false;
	n = fread(text, 1, sizeof(text) - 1, file);
	fclose(file);
	text[n] = '\0';
	after = strrchr(text, ')'); /* the name may hold anything */
	if (!after || sscanf(after + 1, " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu",
			     state, &user, &system) != 3)
		return false;
	*ticks = user + system;
	return true;
}

static bool user_event_sees_threads(void)
{
	unsigned long ticks;
	char state;

	return user_event_look(gettid(), &state, &ticks);
}

/* Whether the thread waits in clFinish; false as well after clFinish. */
static bool user_event_waits(struct event_test *t)
{
	const struct timespec tick = { 0, 1000000 };
	unsigned long ticks = 0;
	int asleep = 0;
	char state;

	for (int i = 0; i < LOOK_LIMIT && !atomic_load(&t->finished); i++) {
		int tid = atomic_load(&t->tid);

		if (tid && user_event_look(tid, &state, &ticks)) {
			asleep = state == 'S' ? asleep + 1 : 0;
			if (asleep == LOOKS || ticks >= SPIN_TICKS)
				break;
		}
		nanosleep(&tick, NULL);
	}
	return !atomic_load(&t->finished);
}

static long long user_event_now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}

/* Until when something is waited for now. */
static long long user_event_limit(const struct event_test *t)
{
	long long end = user_event_now_ms() + CALLBACK_LIMIT;

	return end < t->until ? end : t->until;
}

/* Callbacks may come late, on any thread. */
static bool user_event_calls_back(struct event_test *t)
{
	const struct timespec tick = { 0, 1000000 };
	const long long end = user_event_limit(t);

	while (user_event_now_ms() < end && !atomic_load(&t->called_back))
		nanosleep(&tick, NULL);
	return atomic_load(&t->called_back);
}

static void CL_CALLBACK user_event_hook_run(cl_event event, cl_int status, void *arg)
{
	struct event_hook *hook = arg;

	(void)event;
	(void)status;
	next.clSetUserEventStatus(hook->event, CL_COMPLETE);
	atomic_store(&hook->called, true);
}

static cl_int user_event_hook_set(struct event_hook *hook, cl_context context, cl_event after)
{
	cl_int err;

	hook->event = created_or_null(next.clCreateUserEvent(context, &err), &err);
	if (!err)
		err = next.clSetEventCallback(after, CL_COMPLETE, user_event_hook_run, hook);
	hook->watched = !err;
	return err;
}

static bool user_event_hook_is_over(const struct event_hook *hook)
{
	return !hook->watched || atomic_load(&hook->called);
}

/* A bracket around a marker. */
static cl_int user_event_bracket_enqueue(struct event_test *t)
{
	cl_int err;

	t->start = created_or_null(next.clCreateUserEvent(t->context, &err), &err);
	if (!err)
		err = next.clEnqueueMarkerWithWaitList(t->queue, 1, &t->start, &t->ready);
	if (!err)
		err = user_event_hook_set(&t->begin, t->context, t->ready);
	if (!err)
		err = next.clEnqueueMarkerWithWaitList(t->queue, 1, &t->begin.event, &t->command);
	if (!err)
		err = user_event_hook_set(&t->end, t->context, t->command);
	if (!err)
		err = next.clEnqueueMarkerWithWaitList(t->queue, 1, &t->end.event, &t->last);
	return err;
}

/*
 * A bracket, and clFinish on a thread.  No command runs before all are enqueued: else the queue of a
 * fast driver is empty in between, and callbacks come that would never come in clFinish.
 */
static bool user_event_bracket_begin(struct event_test *t)
{
	cl_int err = user_event_bracket_enqueue(t);

	if (t->start)
		next.clSetUserEventStatus(t->start, CL_COMPLETE);
	atomic_store(&t->finished, false);
	atomic_store(&t->tid, 0);
	return !err && !thread_create(&t->thread, 0, user_event_finish, t);
}

/* False: the thread in clFinish spins for longer than any driver needs, or until the limit. */
static bool user_event_bracket_finishes(struct event_test *t)
{
	const struct timespec tick = { 0, 1000000 };
	const long long end = user_event_limit(t);
	unsigned long ticks = 0;
	char state;

	while (user_event_now_ms() < end && ticks < BRACKET_TICKS && !atomic_load(&t->finished)) {
		int tid = atomic_load(&t->tid);

		nanosleep(&tick, NULL);
		if (tid)
			user_event_look(tid, &state, &ticks);
	}
	return atomic_load(&t->finished);
}

/* Completes each event without a callback, so no command is left waiting. */
static bool user_event_bracket_test(struct event_test *t)
{
	bool begun = user_event_bracket_begin(t),
	     finishes = begun && user_event_bracket_finishes(t);

	if (!finishes && t->begin.event)
		next.clSetUserEventStatus(t->begin.event, CL_COMPLETE);
	if (!finishes && t->end.event)
		next.clSetUserEventStatus(t->end.event, CL_COMPLETE);
	if (begun)
		pthread_join(t->thread, NULL);
	return finishes;
}

static bool user_event_hooks_are_over(struct event_test *t)
{
	const struct timespec tick = { 0, 1000000 };
	const long long end = user_event_limit(t);

	while (user_event_now_ms() < end &&
	       !(user_event_hook_is_over(&t->begin) && user_event_hook_is_over(&t->end)))
		nanosleep(&tick, NULL);
	return user_event_hook_is_over(&t->begin) && user_event_hook_is_over(&t->end);
}

static enum tested user_event_test(struct event_test *t)
{
	bool waits = user_event_waits(t), brackets;

	if (!waits && !t->result) {
		pthread_detach(t->thread);
		free(t); /* not needed by the thread any more */
		return FAILED;
	}
	next.clSetUserEventStatus(t->gate, CL_COMPLETE);
	pthread_join(t->thread, NULL);
	if (!user_event_calls_back(t))
		return FAILED;
	brackets = user_event_bracket_test(t);
	if (user_event_hooks_are_over(t))
		user_event_end(t);
	if (!brackets)
		return FAILED;
	return waits ? PASSED : UNTESTED;
}

/* After a partial begin.  No command is left waiting for the gate. */
static void user_event_abort(struct event_test *t)
{
	if (t->marker)
		next.clSetUserEventStatus(t->gate, CL_COMPLETE);
	if (!t->watched || user_event_calls_back(t))
		user_event_end(t);
}

/* A driver that fails may go on with the objects of the test. */
enum tested selftest_user_event(cl_device_id device)
{
	const cl_version version = device_version(device);
	enum tested found = UNTESTED;
	struct event_test *t;

	if (version < CL_MAKE_VERSION(1, 2, 0))
		return version ? FAILED : UNTESTED;
	if (!user_event_sees_threads())
		return UNTESTED; /* without /proc */
	t = calloc(1, sizeof(*t));
	if (!t)
		return UNTESTED;
	t->until = user_event_now_ms() + TEST_LIMIT;
	if (user_event_begin(t, device))
		found = user_event_test(t);
	else
		user_event_abort(t);
	return found;
}
