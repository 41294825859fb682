/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Does clFinish wait for commands that wait for user events?  PoCL's device
 * "basic" returns too early and deadlocks afterwards (3.1).  A driver that fails
 * may hang in anything that follows, so what was made for it is then left alone.
 * OpenCL before 1.2 has no wait lists for markers.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "device.h"
#include "layer.h"
#include "selftest.h"

#define PATIENCE_MS 5

struct event_test {
	cl_context context;
	cl_command_queue queue;
	cl_event gate, marker;
	atomic_bool finished;
	cl_int result; /* of clFinish */
	pthread_t thread;
};

static void *finish(void *arg)
{
	struct event_test *t = arg;

	t->result = next.clFinish(t->queue);
	atomic_store(&t->finished, true);
	return NULL;
}

static bool setup(struct event_test *t, cl_device_id device)
{
	cl_int err;

	t->context = next.clCreateContext(NULL, 1, &device, NULL, NULL, &err);
	if (!err)
		t->queue = next.clCreateCommandQueue(t->context, device, 0, &err);
	if (!err)
		t->gate = next.clCreateUserEvent(t->context, &err);
	if (!err)
		err = next.clEnqueueMarkerWithWaitList(t->queue, 1, &t->gate, &t->marker);
	return !err && !pthread_create(&t->thread, NULL, finish, t);
}

static void teardown(struct event_test *t)
{
	if (t->marker)
		next.clReleaseEvent(t->marker);
	if (t->gate)
		next.clReleaseEvent(t->gate);
	if (t->queue)
		next.clReleaseCommandQueue(t->queue);
	if (t->context)
		next.clReleaseContext(t->context);
	free(t);
}

static bool returns_early(struct event_test *t)
{
	const struct timespec tick = { 0, 1000000 };

	for (int i = 0; i < PATIENCE_MS && !atomic_load(&t->finished); i++)
		nanosleep(&tick, NULL);
	return atomic_load(&t->finished);
}

enum tested selftest_user_event(cl_device_id device)
{
	struct event_test *t;
	bool early;

	if (device_version(device) < CL_MAKE_VERSION(1, 2, 0))
		return FAILED;
	t = calloc(1, sizeof(*t));
	if (!t)
		return UNTESTED;
	if (!setup(t, device)) {
		teardown(t);
		return UNTESTED;
	}
	early = returns_early(t);
	if (early && !t->result) {
		pthread_detach(t->thread);
		return FAILED;
	}
	next.clSetUserEventStatus(t->gate, CL_COMPLETE);
	pthread_join(t->thread, NULL);
	teardown(t);
	return early ? UNTESTED : PASSED;
}
