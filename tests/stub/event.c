/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events: status, callbacks, waiting.  The thread that sets an event's status wakes the waiters
 * first, and then runs the callbacks, the last registered first.  The specification leaves both
 * orders open.
 */
#include "internal.h"

#include <time.h>

pthread_mutex_t sched_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t sched_changed = PTHREAD_COND_INITIALIZER;
FORK_SAFE(sched_lock, 105);

/* In a child of fork(), no thread waits yet. */
static void sched_forget(void)
{
	pthread_cond_init(&sched_changed, NULL);
	queues_forget();
}

__attribute__((constructor)) static void sched_forget_atfork(void)
{
	pthread_atfork(NULL, NULL, sched_forget);
}

static cl_ulong event_read_clock(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t); /* time: profiling, for an order */
	return (cl_ulong)t.tv_sec * 1000000000 + (cl_ulong)t.tv_nsec;
}

struct event *event_create(struct context *context, struct queue *queue, cl_command_type type)
{
	struct event *event = object_create(STUB_EVENT);

	object_retain(context);
	event->context = context;
	if (queue)
		object_retain(queue);
	event->queue = queue;
	event->type = type;
	event->status = queue ? CL_QUEUED : CL_SUBMITTED;
	event->time[0] = event_read_clock();
	return event;
}

void stub_event_put(struct event *event)
{
	struct context *context = event->context;
	struct queue *queue = event->queue;
	struct callback *c;

	if (!object_release(event))
		return;
	while ((c = event->callbacks)) {
		event->callbacks = c->next;
		free(c);
	}
	object_destroy(event);
	if (queue)
		queue_put(queue);
	stub_context_put(context);
}

/*
 * Removes the due callbacks from the event's list.  The caller holds the lock.  A failure goes to
 * callbacks of every type, with the failure's status.
 */
static struct callback *callbacks_due(struct event *event)
{
	struct callback **at = &event->callbacks, *due = NULL, **end = &due;

	if (stub_get(STUB_NO_CALLBACK) ||
	    (event->status < 0 && event->queue && stub_get(STUB_NO_FAILURE_CALLBACK)))
		return NULL;
	while (*at) {
		if ((*at)->type < event->status) {
			at = &(*at)->next;
			continue;
		}
		*end = *at;
		if (event->status < 0 && !stub_get(STUB_CALLBACK_COMPLETE))
			(*at)->type = event->status;
		*at = (*at)->next;
		end = &(*end)->next;
		*end = NULL;
	}
	return due;
}

void callbacks_run(struct event *event, struct callback *due)
{
	struct callback *c;

	if (due)
		sleep_ms(stub_get(STUB_CALLBACK_DELAY));
	while ((c = due)) {
		due = c->next;
		c->call.event((cl_event)event, c->type, c->data);
		free(c);
	}
}

struct callback *event_change(struct event *event, cl_int status)
{
	struct callback *due;

	event->status = status;
	event->time[status < 0 ? 3 : CL_QUEUED - status] = event_read_clock();
	due = callbacks_due(event);
	pthread_cond_broadcast(&sched_changed);
	return due;
}

void event_set_status(struct event *event, cl_int status)
{
	struct callback *due;

	object_retain(event);
	pthread_mutex_lock(&sched_lock);
	due = event_change(event, status);
	pthread_mutex_unlock(&sched_lock);
	callbacks_run(event, due);
	stub_event_put(event);
}

cl_int event_wait(struct event *event)
{
	cl_int status;

	queue_flush_event(event);
	pthread_mutex_lock(&sched_lock);
	while (event->status > CL_COMPLETE)
		pthread_cond_wait(&sched_changed, &sched_lock);
	status = event->status;
	pthread_mutex_unlock(&sched_lock);
	return status < 0 ? CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST : CL_SUCCESS;
}

cl_int wait_list_check(struct context *context, cl_uint num, const cl_event *list)
{
	if (!num != !list)
		return CL_INVALID_EVENT_WAIT_LIST;
	for (cl_uint i = 0; i < num; i++) {
		struct event *event = object_get(list[i], STUB_EVENT);

		if (!event)
			return CL_INVALID_EVENT_WAIT_LIST;
		if (event->context != context)
			return CL_INVALID_CONTEXT;
	}
	return CL_SUCCESS;
}

cl_int CL_API_CALL stub_clWaitForEvents(cl_uint num, const cl_event *list)
{
	cl_int err = CALL(clWaitForEvents, U(num), U(list));

	if (err)
		return err;
	if (!num || !list)
		return CL_INVALID_VALUE;
	for (cl_uint i = 0; i < num; i++)
		if (!object_get(list[i], STUB_EVENT))
			return CL_INVALID_EVENT;
	for (cl_uint i = 0; i < num; i++)
		queue_flush_event((struct event *)list[i]);
	for (cl_uint i = 0; i < num; i++)
		if (event_wait((struct event *)list[i]))
			err = CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
	return err;
}

cl_int CL_API_CALL stub_clGetEventInfo(cl_event handle, cl_event_info name, size_t room, void *out,
				       size_t *size_ret)
{
	struct event *event = object_get(handle, STUB_EVENT);
	cl_int err = CALL(clGetEventInfo, U(handle), U(name), U(room), U(out), U(size_ret)), status;
	cl_uint refs;

	if (err)
		return err;
	if (!event)
		return CL_INVALID_EVENT;
	pthread_mutex_lock(&sched_lock);
	status = event->status;
	pthread_mutex_unlock(&sched_lock);
	if (status < 0 && event->queue && stub_get(STUB_FAILED_COMPLETE))
		status = CL_COMPLETE;
	switch (name) {
	case CL_EVENT_COMMAND_QUEUE:
		return info_put(&event->queue, sizeof(void *), room, out, size_ret);
	case CL_EVENT_COMMAND_TYPE:
		return info_put(&event->type, sizeof(event->type), room, out, size_ret);
	case CL_EVENT_COMMAND_EXECUTION_STATUS:
		return info_put(&status, sizeof(status), room, out, size_ret);
	case CL_EVENT_CONTEXT:
		return info_put(&event->context, sizeof(void *), room, out, size_ret);
	case CL_EVENT_REFERENCE_COUNT:
		refs = (cl_uint)event->base.refs;
		return info_put(&refs, sizeof(refs), room, out, size_ret);
	}
	return CL_INVALID_VALUE;
}

cl_event CL_API_CALL stub_clCreateUserEvent(cl_context handle, cl_int *errcode_ret)
{
	struct context *context = object_get(handle, STUB_CONTEXT);
	cl_int err = CALL(clCreateUserEvent, U(handle), U(errcode_ret));

	if (!err && !context)
		err = CL_INVALID_CONTEXT;
	if (err)
		return creation_failed(errcode_ret, err);
	if (errcode_ret)
		*errcode_ret = CL_SUCCESS;
	return (cl_event)event_create(context, NULL, CL_COMMAND_USER);
}

cl_int CL_API_CALL stub_clSetUserEventStatus(cl_event handle, cl_int status)
{
	struct event *event = object_get(handle, STUB_EVENT);
	cl_int err = CALL(clSetUserEventStatus, U(handle), U(status)), before;

	if (err)
		return err;
	if (!event || event->queue)
		return CL_INVALID_EVENT;
	if (status > CL_COMPLETE)
		return CL_INVALID_VALUE;
	pthread_mutex_lock(&sched_lock);
	before = event->status;
	pthread_mutex_unlock(&sched_lock);
	if (before <= CL_COMPLETE)
		return CL_INVALID_OPERATION;
	event_set_status(event, status);
	return CL_SUCCESS;
}

cl_int CL_API_CALL stub_clSetEventCallback(cl_event handle, cl_int type,
					   void(CL_CALLBACK *notify)(cl_event, cl_int, void *),
					   void *data)
{
	struct event *event = object_get(handle, STUB_EVENT);
	cl_int err = CALL(clSetEventCallback, U(handle), U(type), U(notify), U(data));
	struct callback *c, *due;

	if (err)
		return err;
	if (!event)
		return CL_INVALID_EVENT;
	if (!notify || type < CL_COMPLETE || type > CL_SUBMITTED)
		return CL_INVALID_VALUE;
	c = calloc(1, sizeof(*c));
	c->call.event = notify;
	c->type = type;
	c->data = data;
	pthread_mutex_lock(&sched_lock);
	c->next = event->callbacks;
	event->callbacks = c;
	due = callbacks_due(event);
	pthread_mutex_unlock(&sched_lock);
	callbacks_run(event, due);
	return CL_SUCCESS;
}

cl_int CL_API_CALL stub_clRetainEvent(cl_event handle)
{
	cl_int err = CALL(clRetainEvent, U(handle));

	if (err)
		return err;
	if (!object_get(handle, STUB_EVENT))
		return CL_INVALID_EVENT;
	object_retain(handle);
	return CL_SUCCESS;
}

cl_int CL_API_CALL stub_clReleaseEvent(cl_event handle)
{
	struct event *event = object_get(handle, STUB_EVENT);

	cl_int err = CALL(clReleaseEvent, U(handle));

	if (err)
		return err;
	if (!event)
		return CL_INVALID_EVENT;
	stub_event_put(event);
	return CL_SUCCESS;
}

cl_int CL_API_CALL stub_clGetEventProfilingInfo(cl_event handle, cl_profiling_info name,
						size_t room, void *out, size_t *size_ret)
{
	struct event *event = object_get(handle, STUB_EVENT);
	cl_int err =
		CALL(clGetEventProfilingInfo, U(handle), U(name), U(room), U(out), U(size_ret));
	bool done;

	if (err)
		return err;
	if (!event)
		return CL_INVALID_EVENT;
	pthread_mutex_lock(&sched_lock);
	done = event->status == CL_COMPLETE;
	pthread_mutex_unlock(&sched_lock);
	if (!event->queue || !(event->queue->properties & CL_QUEUE_PROFILING_ENABLE) || !done)
		return CL_PROFILING_INFO_NOT_AVAILABLE;
	if (name < CL_PROFILING_COMMAND_QUEUED || name > CL_PROFILING_COMMAND_END)
		return CL_INVALID_VALUE;
	return info_put(&event->time[name - CL_PROFILING_COMMAND_QUEUED], sizeof(cl_ulong), room,
			out, size_ret);
}
