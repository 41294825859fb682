/* SPDX-License-Identifier: Apache-2.0 */
/* Calls on events.  A proxy event answers for its command: proxy_event.h. */
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

#include "icd/access/overdue.h"
#include "icd/info_answer.h"
#include "icd/intercept.h"
#include "icd/layer.h"
#include "icd/objects/proxy_event.h"
#include "util/log.h"

/*
 * A callback of the application on a proxy event.  The driver knows the callback by a ticket, since a driver may
 * call back late, or never: PoCL 3.1 to 6.0 do not call back for commands that fail.  The idle thread asks for the
 * event, and calls back if the event has failed.
 */
struct event_callback {
	struct handle_record record; /* in the table until the application is called */
	struct overdue overdue;
	void *ticket;
	cl_event event; /* one reference */
	cl_int type;
	void(CL_CALLBACK *notify)(cl_event event, cl_int status, void *user_data);
	void *user_data;
};

static HANDLE_TABLE_DEFINE(event_callbacks, NULL); /* ticket -> struct event_callback */

cl_int CL_API_CALL layer_clRetainEvent(cl_event event)
{
	cl_int err = next.clRetainEvent(event);

	if (!err)
		proxy_event_retain(event);
	return err;
}

cl_int CL_API_CALL layer_clReleaseEvent(cl_event event)
{
	return proxy_event_release(event);
}

static cl_int event_get_status(cl_event event, cl_int *status)
{
	return next.clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(*status),
				   status, NULL);
}

/* If the command has failed, what is behind the command failed for that reason. */
static cl_int event_failure(cl_event event, cl_int status)
{
	cl_int reason, err = event_get_status(proxy_event_command(event), &reason);

	return !err && reason < 0 ? reason : status;
}

/* Complete and failed are the event's own statuses; before, the command's status is the answer. */
static cl_int event_answer_status(cl_event event, size_t size, void *value, size_t *size_ret)
{
	cl_int status, progress, err = event_get_status(event, &status);

	if (err)
		return err;
	if (status > CL_COMPLETE && !event_get_status(proxy_event_command(event), &progress))
		status = progress < CL_RUNNING ? CL_RUNNING : progress;
	else if (status < 0)
		status = event_failure(event, status);
	return info_answer(&status, sizeof(status), size, value, size_ret);
}

cl_int CL_API_CALL layer_clGetEventInfo(cl_event event, cl_event_info name, size_t size,
					void *value, size_t *size_ret)
{
	cl_command_type type;
	cl_uint references;

	if (!proxy_event_is_given(event))
		return next.clGetEventInfo(event, name, size, value, size_ret);
	switch (name) {
	case CL_EVENT_COMMAND_TYPE:
		type = proxy_event_type(event);
		if (type)
			return info_answer(&type, sizeof(type), size, value, size_ret);
		return next.clGetEventInfo(proxy_event_command(event), name, size, value, size_ret);
	case CL_EVENT_COMMAND_EXECUTION_STATUS:
		return event_answer_status(event, size, value, size_ret);
	case CL_EVENT_REFERENCE_COUNT:
		references = proxy_event_references(event);
		return info_answer(&references, sizeof(references), size, value, size_ret);
	}
	return next.clGetEventInfo(event, name, size, value, size_ret);
}

/* Not before the end of access: a command without its end is not complete. */
cl_int CL_API_CALL layer_clGetEventProfilingInfo(cl_event event, cl_profiling_info name,
						 size_t size, void *value, size_t *size_ret)
{
	cl_event command = proxy_event_command(event);
	cl_int status = CL_COMPLETE;

	if (command != event)
		event_get_status(event, &status);
	if (status != CL_COMPLETE)
		return CL_PROFILING_INFO_NOT_AVAILABLE;
	return next.clGetEventProfilingInfo(command, name, size, value, size_ret);
}

static void event_callback_put(struct event_callback *c)
{
	if (!handle_record_put(&c->record))
		return;
	overdue_remove(&c->overdue);
	proxy_event_put_callback(c->event);
	next.clReleaseEvent(c->event);
	free(c);
}

/* Of the driver and the idle thread, the first takes the callback out of the table.  False: the second. */
static bool event_callback_take(struct event_callback *c)
{
	bool taken;

	lock_acquire(&event_callbacks.lock);
	taken = handle_table_remove(&event_callbacks, c->ticket);
	lock_release(&event_callbacks.lock);
	return taken;
}

static void event_callback_call(struct event_callback *c, cl_int status)
{
	if (!event_callback_take(c))
		return;
	c->notify(c->event, status < 0 ? event_failure(c->event, status) : c->type, c->user_data);
	event_callback_put(c);
}

/*
 * Driver: the event, or its command, has reached the status.  A failure of the command is told to
 * the application when the event has failed.
 */
static void CL_CALLBACK event_callback_run(cl_event event, cl_int status, void *ticket)
{
	struct event_callback *c = handle_table_get(&event_callbacks, ticket);

	if (!c)
		return;
	if (status >= 0 || event == c->event ||
	    next.clSetEventCallback(c->event, CL_COMPLETE, event_callback_run, ticket))
		event_callback_call(c, status);
	event_callback_put(c);
}

static bool event_callback_hold(struct overdue *o)
{
	struct event_callback *c = container_of(o, struct event_callback, overdue);
	unsigned int refs = atomic_load(&c->record.refs);

	while (refs && !atomic_compare_exchange_weak(&c->record.refs, &refs, refs + 1))
		;
	return refs;
}

static void event_callback_ask(struct overdue *o)
{
	struct event_callback *c = container_of(o, struct event_callback, overdue);
	cl_int status;

	if (!event_get_status(c->event, &status) && status < 0)
		event_callback_call(c, status);
	event_callback_put(c);
}

/* Even: the table has a meaning for odd keys.  In a 64-bit process no ticket is given twice. */
static void *event_callback_draw_ticket(void)
{
	static atomic_uintptr_t last;

	return (void *)(atomic_fetch_add(&last, 2) + 2);
}

/* Takes over the hold of proxy_event_hold_callback().  NULL: no memory. */
static struct event_callback *event_callback_create(cl_event event, cl_int type)
{
	struct event_callback *c = calloc(1, sizeof(*c));

	if (c) {
		c->ticket = event_callback_draw_ticket();
		c->event = event;
		c->type = type;
	}
	if (c && handle_table_add(&event_callbacks, c->ticket, c)) {
		next.clRetainEvent(event);
		return c;
	}
	log_error("no memory for a callback");
	free(c);
	proxy_event_put_callback(event);
	return NULL;
}

static cl_int event_set_callback(cl_event event, cl_event command, cl_int type,
				 void(CL_CALLBACK *notify)(cl_event, cl_int, void *),
				 void *user_data)
{
	static const struct overdue_ops ops = { event_callback_hold, event_callback_ask };
	struct event_callback *c = event_callback_create(event, type);
	cl_int err;

	if (!c)
		return CL_OUT_OF_HOST_MEMORY;
	c->notify = notify;
	c->user_data = user_data;
	handle_record_hold(&c->record);
	err = next.clSetEventCallback(type == CL_COMPLETE ? event : command, type,
				      event_callback_run, c->ticket);
	if (!err)
		overdue_add(&c->overdue, &ops);
	else if (event_callback_take(c))
		event_callback_put(c);
	event_callback_put(c);
	return err;
}

/* CL_COMPLETE is the event's own status; an earlier status is the command's. */
cl_int CL_API_CALL layer_clSetEventCallback(cl_event event, cl_int type,
					    void(CL_CALLBACK *notify)(cl_event, cl_int, void *),
					    void *user_data)
{
	cl_event command = notify ? proxy_event_hold_callback(event) : NULL;

	if (!command)
		return next.clSetEventCallback(event, type, notify, user_data);
	return event_set_callback(event, command, type, notify, user_data);
}
