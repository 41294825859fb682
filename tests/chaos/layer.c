/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An OpenCL layer that makes the driver below misbehave.  The layer stands first in OPENCL_LAYERS,
 * so ocl-icd puts climport's layer above.  An environment variable tells the fault:
 *
 *	CHAOS="ACTION FUNCTION N PARAMETER"
 *
 * FUNCTION is a name or "any".  The fault happens in the Nth call of FUNCTION, or in every call if
 * N is 0.  ACTION:
 *
 *	fail		the call returns error PARAMETER and has no effect
 *	handle		the call works, returns its object, and returns error PARAMETER
 *	delay		the call takes PARAMETER milliseconds longer
 *	abort		the command is enqueued, and fails while waiting, with status PARAMETER
 *	late		the command starts PARAMETER milliseconds late, behind later commands
 *	drop		an event's callback never comes (FUNCTION is clSetEventCallback)
 *	postpone	an event's callback comes PARAMETER milliseconds late, on a new thread
 *
 * With CHAOS_REPORT=FILE the layer appends lines to FILE: "fault FUNCTION" when the fault happens,
 * and at the end of the process "calls FUNCTION COUNT" for each called function.
 */
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl_layer.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

enum action { NOTHING, FAIL, HANDLE, DELAY, ABORT, LATE, DROP, POSTPONE };
static const char *const action_names[] = { "nothing", "fail", "handle", "delay",
					    "abort",   "late", "drop",	 "postpone" };

enum function {
#define STATUS(name, parameters, arguments) CALL_##name,
#define CREATE(type, name, parameters, arguments) CALL_##name,
#define ENQUEUE(name, parameters, arguments) CALL_##name,
#define MAP(name, parameters, arguments) CALL_##name,
#include "calls.h"
#undef STATUS
#undef CREATE
#undef ENQUEUE
#undef MAP
	CALL_clSetEventCallback,
	FUNCTIONS
};

static const char *const function_names[FUNCTIONS] = {
#define STATUS(name, parameters, arguments) #name,
#define CREATE(type, name, parameters, arguments) #name,
#define ENQUEUE(name, parameters, arguments) #name,
#define MAP(name, parameters, arguments) #name,
#include "calls.h"
#undef STATUS
#undef CREATE
#undef ENQUEUE
#undef MAP
	"clSetEventCallback"
};

static struct _cl_icd_dispatch next, offered;

/* Read from the environment, once. */
static enum action action;
static char function_wanted[64];
static unsigned long nth;
static long parameter;
static int report = -1;

static atomic_ulong calls[FUNCTIONS], matching;

static void chaos_sleep(long ms)
{
	const struct timespec time = { ms / 1000, ms % 1000 * 1000000 };

	nanosleep(&time, NULL); /* time: a slow driver, for no check */
}

static void chaos_report(const char *what, const char *function, unsigned long count)
{
	char line[128];
	int length = snprintf(line, sizeof(line), "%s %s %lu\n", what, function, count);

	if (report >= 0 && write(report, line, (size_t)length) != length)
		abort();
}

/* The action for a call of @function.  Actions outside @allowed, a set of bits, do not happen. */
static enum action chaos_now(enum function function, unsigned int allowed)
{
	unsigned long count;

	atomic_fetch_add(&calls[function], 1);
	if (!(allowed >> action & 1) ||
	    (strcmp(function_wanted, "any") && strcmp(function_wanted, function_names[function])))
		return NOTHING;
	count = atomic_fetch_add(&matching, 1) + 1;
	if (nth && count != nth)
		return NOTHING;
	chaos_report("fault", function_names[function], count);
	if (action == DELAY)
		chaos_sleep(parameter);
	return action;
}

/* A command's gate: a user event in the command's wait list, completed by a thread. */
struct gate {
	cl_event event;
	cl_int status;
	long ms;
};

static void *gate_thread(void *arg)
{
	struct gate *gate = arg;

	chaos_sleep(gate->ms);
	next.clSetUserEventStatus(gate->event, gate->status);
	next.clReleaseEvent(gate->event);
	free(gate);
	return NULL;
}

static void chaos_thread(void *(*run)(void *), void *arg)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, run, arg))
		abort();
	pthread_detach(thread);
}

/* Appends the gate to a copy of the wait list.  The gate's thread starts right away. */
static struct gate *gate_create(cl_command_queue queue, enum action kind, cl_uint *num_events,
				const cl_event **events)
{
	cl_event *list = calloc(*num_events + 1, sizeof(cl_event));
	struct gate *gate = calloc(1, sizeof(*gate));
	cl_context context;

	if (!list || !gate ||
	    next.clGetCommandQueueInfo(queue, CL_QUEUE_CONTEXT, sizeof(context), &context, NULL))
		abort();
	gate->event = next.clCreateUserEvent(context, NULL);
	gate->status = kind == ABORT ? (cl_int)parameter : CL_COMPLETE;
	gate->ms = kind == ABORT ? 50 : parameter;
	if (*num_events)
		memcpy(list, *events, *num_events * sizeof(cl_event));
	list[(*num_events)++] = gate->event;
	*events = list;
	chaos_thread(gate_thread, gate);
	return gate;
}

#define SIMPLE (1u << FAIL | 1u << DELAY)
#define CREATING (SIMPLE | 1u << HANDLE)
#define COMMANDS (1u << ABORT | 1u << LATE)

#define STATUS(name, parameters, arguments)                                          \
	static cl_int CL_API_CALL chaos_##name parameters                            \
	{                                                                            \
		return chaos_now(CALL_##name, SIMPLE) == FAIL ? (cl_int)parameter    \
							      : next.name arguments; \
	}

/* An application may pass NULL for errcode_ret. */
#define CREATE(type, name, parameters, arguments)                       \
	static type CL_API_CALL chaos_##name parameters                 \
	{                                                               \
		enum action now = chaos_now(CALL_##name, CREATING);     \
		type object = now == FAIL ? NULL : next.name arguments; \
                                                                        \
		if (errcode_ret && (now == FAIL || now == HANDLE))      \
			*errcode_ret = (cl_int)parameter;               \
		return object;                                          \
	}

#define ENQUEUE(name, parameters, arguments)                                 \
	static cl_int CL_API_CALL chaos_##name parameters                    \
	{                                                                    \
		enum action now = chaos_now(CALL_##name, SIMPLE | COMMANDS); \
		const cl_event *before = events;                             \
		cl_int err;                                                  \
                                                                             \
		if (now == FAIL)                                             \
			return (cl_int)parameter;                            \
		if (now == ABORT || now == LATE)                             \
			gate_create(queue, now, &num_events, &events);       \
		err = next.name arguments;                                   \
		if (events != before)                                        \
			free((void *)events);                                \
		return err;                                                  \
	}

#define MAP(name, parameters, arguments)                                     \
	static void *CL_API_CALL chaos_##name parameters                     \
	{                                                                    \
		enum action now = chaos_now(CALL_##name, SIMPLE | COMMANDS); \
		const cl_event *before = events;                             \
		void *at = NULL;                                             \
                                                                             \
		if (now == ABORT || now == LATE)                             \
			gate_create(queue, now, &num_events, &events);       \
		if (now != FAIL)                                             \
			at = next.name arguments;                            \
		else if (errcode_ret)                                        \
			*errcode_ret = (cl_int)parameter;                    \
		if (events != before)                                        \
			free((void *)events);                                \
		return at;                                                   \
	}

#include "calls.h"
#undef STATUS
#undef CREATE
#undef ENQUEUE
#undef MAP

/* A postponed callback. */
struct callback {
	void(CL_CALLBACK *notify)(cl_event, cl_int, void *);
	void *data;
	cl_event event;
	cl_int status;
};

static void *callback_thread(void *arg)
{
	struct callback *callback = arg;

	chaos_sleep(parameter);
	callback->notify(callback->event, callback->status, callback->data);
	next.clReleaseEvent(callback->event);
	free(callback);
	return NULL;
}

static void CL_CALLBACK callback_postpone(cl_event event, cl_int status, void *arg)
{
	struct callback *callback = arg;

	callback->event = event;
	callback->status = status;
	next.clRetainEvent(event);
	chaos_thread(callback_thread, callback);
}

static cl_int CL_API_CALL chaos_clSetEventCallback(cl_event event, cl_int type,
						   void(CL_CALLBACK *notify)(cl_event, cl_int,
									     void *),
						   void *data)
{
	enum action now = chaos_now(CALL_clSetEventCallback, SIMPLE | 1u << DROP | 1u << POSTPONE);
	struct callback *callback;

	if (now == FAIL)
		return (cl_int)parameter;
	if (now == DROP)
		return CL_SUCCESS;
	if (now != POSTPONE)
		return next.clSetEventCallback(event, type, notify, data);
	callback = calloc(1, sizeof(*callback));
	if (!callback)
		abort();
	callback->notify = notify;
	callback->data = data;
	return next.clSetEventCallback(event, type, callback_postpone, callback);
}

/*
 * Aborts on text that cannot be parsed: a misspelt fault must not look like a fault without effect.
 */
static void chaos_read_environment(void)
{
	const char *text = getenv("CHAOS"), *path = getenv("CHAOS_REPORT");
	char name[16];

	if (path)
		report = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (!text || !*text)
		return;
	if (sscanf(text, "%15s %63s %lu %ld", name, function_wanted, &nth, &parameter) != 4)
		abort();
	for (action = FAIL; strcmp(name, action_names[action]); action++)
		if (action == POSTPONE)
			abort();
}

__attribute__((destructor)) static void chaos_report_calls(void)
{
	for (int i = 0; i < FUNCTIONS; i++)
		if (calls[i])
			chaos_report("calls", function_names[i], calls[i]);
}

EXPORT cl_int CL_API_CALL clGetLayerInfo(cl_layer_info name, size_t size, void *result,
					 size_t *size_ret)
{
	const cl_layer_api_version version = CL_LAYER_API_VERSION_100;

	if (name != CL_LAYER_API_VERSION || (result && size < sizeof(version)))
		return CL_INVALID_VALUE;
	if (result)
		memcpy(result, &version, sizeof(version));
	if (size_ret)
		*size_ret = sizeof(version);
	return CL_SUCCESS;
}

EXPORT cl_int CL_API_CALL clInitLayer(cl_uint entries, const struct _cl_icd_dispatch *target,
				      cl_uint *entries_ret,
				      const struct _cl_icd_dispatch **dispatch_ret)
{
	if (entries > sizeof(next) / sizeof(void *))
		entries = sizeof(next) / sizeof(void *);
	memcpy(&next, target, entries * sizeof(void *));
	chaos_read_environment();
#define OFFER(name) offered.name = next.name ? chaos_##name : NULL;
#define STATUS(name, parameters, arguments) OFFER(name)
#define CREATE(type, name, parameters, arguments) OFFER(name)
#define ENQUEUE(name, parameters, arguments) OFFER(name)
#define MAP(name, parameters, arguments) OFFER(name)
#include "calls.h"
	OFFER(clSetEventCallback)
	*entries_ret = entries;
	*dispatch_ret = &offered;
	return CL_SUCCESS;
}
