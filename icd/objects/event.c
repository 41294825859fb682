/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/objects/event.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#include "icd/calls/info_answer.h"
#include "icd/intercept.h"
#include "icd/layer.h"
#include "icd/objects/table.h"
#include "util/lock.h"
#include "util/log.h"

/* Lives as long as the application has references, which are counted here, or will be called back. */
struct stand_in {
	cl_event command; /* one reference */
	cl_uint handles;
	unsigned int callbacks;
};

/* A callback of the application on its event. */
struct event_callback {
	cl_event event; /* one reference */
	cl_int type;
	void(CL_CALLBACK *notify)(cl_event event, cl_int status, void *user_data);
	void *user_data;
};

LOCK_DEFINE(event_lock, LOCK_LAST);	 /* the table and the counts */
static struct table events = TABLE_INIT; /* marker -> struct stand_in */
static atomic_uint event_count;

static bool event_live(void)
{
	return atomic_load_explicit(&event_count, memory_order_relaxed) != 0;
}

static bool event_add(cl_event marker, cl_event command)
{
	struct stand_in *s = malloc(sizeof(*s));
	bool added;

	if (!s)
		return false;
	*s = (struct stand_in){ command, 1, 0 };
	lock_acquire(&event_lock);
	added = table_set(&events, marker, s);
	atomic_store_explicit(&event_count, events.live, memory_order_relaxed);
	lock_release(&event_lock);
	if (!added)
		free(s);
	return added;
}

void event_give(cl_event marker, cl_event command, cl_event *out)
{
	if (!marker) { /* nothing is behind the command: it stands for itself */
		next.clRetainEvent(command);
		marker = command;
	}
	if (!out)
		next.clReleaseEvent(marker);
	else
		*out = marker;
	if (!out || !event_add(marker, command))
		next.clReleaseEvent(command);
}

bool event_is_given(cl_event marker)
{
	return marker && event_live() && table_get(&events, marker);
}

cl_int CL_API_CALL layer_clRetainEvent(cl_event event)
{
	struct stand_in *s;

	if (event_live() && table_get(&events, event)) {
		lock_acquire(&event_lock);
		s = table_get(&events, event);
		if (s)
			s->handles++;
		lock_release(&event_lock);
	}
	return next.clRetainEvent(event);
}

/* Takes out a record that nobody needs any more; its command, or NULL. */
static cl_event event_remove_unused(cl_event event, struct stand_in *s) REQUIRES(event_lock)
{
	cl_event command = s->command;

	if (s->handles || s->callbacks)
		return NULL;
	table_remove(&events, event);
	atomic_store_explicit(&event_count, events.live, memory_order_relaxed);
	free(s);
	return command;
}

/* Before the driver's object can go, as in memobj.c. */
static cl_event event_drop(cl_event event)
{
	cl_event command = NULL;
	struct stand_in *s;

	lock_acquire(&event_lock);
	s = table_get(&events, event);
	if (s && s->handles) {
		s->handles--;
		command = event_remove_unused(event, s);
	}
	lock_release(&event_lock);
	return command;
}

cl_int CL_API_CALL layer_clReleaseEvent(cl_event event)
{
	cl_event command = event_live() && table_get(&events, event) ? event_drop(event) : NULL;
	cl_int err = next.clReleaseEvent(event);

	if (command)
		next.clReleaseEvent(command);
	return err;
}

/* The caller holds @event, and so its command. */
static cl_event command_of(cl_event event)
{
	struct stand_in *s;
	cl_event command = event;

	if (!event_live() || !table_get(&events, event))
		return event;
	lock_acquire(&event_lock);
	s = table_get(&events, event);
	if (s)
		command = s->command;
	lock_release(&event_lock);
	return command;
}

static cl_int event_status_of(cl_event event, cl_int *status)
{
	return next.clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(*status),
				   status, NULL);
}

/* Complete and failed are the event's own; before that the command tells how far it is. */
static cl_int event_answer_status(cl_event event, cl_event command, size_t size, void *value,
				  size_t *size_ret)
{
	cl_int status, progress, err = event_status_of(event, &status);

	if (!err && status > CL_COMPLETE && !event_status_of(command, &progress))
		status = progress < CL_RUNNING ? CL_RUNNING : progress;
	return err ? err : info_answer(&status, sizeof(status), size, value, size_ret);
}

/* The application's references: the layer has its own. */
static cl_int event_answer_references(cl_event event, size_t size, void *value, size_t *size_ret)
{
	const struct stand_in *s;
	cl_uint handles = 0;

	lock_acquire(&event_lock);
	s = table_get(&events, event);
	if (s)
		handles = s->handles;
	lock_release(&event_lock);
	return info_answer(&handles, sizeof(handles), size, value, size_ret);
}

cl_int CL_API_CALL layer_clGetEventInfo(cl_event event, cl_event_info name, size_t size,
					void *value, size_t *size_ret)
{
	if (!event_live() || !table_get(&events, event))
		return next.clGetEventInfo(event, name, size, value, size_ret);
	switch (name) {
	case CL_EVENT_COMMAND_TYPE:
		return next.clGetEventInfo(command_of(event), name, size, value, size_ret);
	case CL_EVENT_COMMAND_EXECUTION_STATUS:
		return event_answer_status(event, command_of(event), size, value, size_ret);
	case CL_EVENT_REFERENCE_COUNT:
		return event_answer_references(event, size, value, size_ret);
	}
	return next.clGetEventInfo(event, name, size, value, size_ret);
}

/* Not before the end of access: a command without its end is not complete. */
cl_int CL_API_CALL layer_clGetEventProfilingInfo(cl_event event, cl_profiling_info name,
						 size_t size, void *value, size_t *size_ret)
{
	cl_int status = CL_COMPLETE;
	cl_event command = command_of(event);

	if (command != event)
		event_status_of(event, &status);
	if (status != CL_COMPLETE)
		return CL_PROFILING_INFO_NOT_AVAILABLE;
	return next.clGetEventProfilingInfo(command, name, size, value, size_ret);
}

/* The command of an event that is to call back, or NULL for an event that is the driver's. */
static cl_event event_hold_callback(cl_event event)
{
	cl_event command = NULL;
	struct stand_in *s;

	lock_acquire(&event_lock);
	s = table_get(&events, event);
	if (s) {
		s->callbacks++;
		command = s->command;
	}
	lock_release(&event_lock);
	return command;
}

static void event_put_callback(cl_event event)
{
	cl_event command = NULL;
	struct stand_in *s;

	lock_acquire(&event_lock);
	s = table_get(&events, event);
	if (s) {
		s->callbacks--;
		command = event_remove_unused(event, s);
	}
	lock_release(&event_lock);
	if (command)
		next.clReleaseEvent(command);
}

static void event_callback_free(struct event_callback *c)
{
	event_put_callback(c->event);
	next.clReleaseEvent(c->event);
	free(c);
}

/* Driver: the event, or its command, is as far.  A command that failed is told when its event has. */
static void CL_CALLBACK event_call_back(cl_event event, cl_int status, void *arg)
{
	struct event_callback *c = arg;

	if (status < 0 && event != c->event &&
	    !next.clSetEventCallback(c->event, CL_COMPLETE, event_call_back, c))
		return;
	c->notify(c->event, status < 0 ? status : c->type, c->user_data);
	event_callback_free(c);
}

static cl_int event_set_callback(cl_event event, cl_event command, cl_int type,
				 void(CL_CALLBACK *notify)(cl_event, cl_int, void *),
				 void *user_data)
{
	struct event_callback *c = malloc(sizeof(*c));
	cl_int err;

	if (!c) {
		log_error("no memory for a callback");
		event_put_callback(event);
		return CL_OUT_OF_HOST_MEMORY;
	}
	*c = (struct event_callback){ event, type, notify, user_data };
	next.clRetainEvent(event);
	err = next.clSetEventCallback(type == CL_COMPLETE ? event : command, type, event_call_back,
				      c);
	if (err)
		event_callback_free(c);
	return err;
}

/* The end is the event's, what comes before is its command's. */
cl_int CL_API_CALL layer_clSetEventCallback(cl_event event, cl_int type,
					    void(CL_CALLBACK *notify)(cl_event, cl_int, void *),
					    void *user_data)
{
	cl_event command = notify && event_live() ? event_hold_callback(event) : NULL;

	if (!command)
		return next.clSetEventCallback(event, type, notify, user_data);
	return event_set_callback(event, command, type, notify, user_data);
}
