/* SPDX-License-Identifier: Apache-2.0 */
#include "event.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#include "import/lock.h"
#include "intercept.h"
#include "layer.h"
#include "table.h"

/* Lives as long as the application has references, which it counts itself. */
struct stand_in {
	cl_event command; /* one reference */
	unsigned int handles;
};

LOCK_DEFINE(event_lock, LOCK_LAST);	   /* the table and the counts */
static struct table events = TABLE_INIT;   /* marker -> struct stand_in */
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
	*s = (struct stand_in){ command, 1 };
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
	if (!marker) {
		if (out)
			*out = command;
		else
			next.clReleaseEvent(command);
		return;
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

/* Before the driver's object can go, as in memobj.c. */
static cl_event event_drop(cl_event event)
{
	cl_event command = NULL;
	struct stand_in *s;

	lock_acquire(&event_lock);
	s = table_get(&events, event);
	if (s && !--s->handles) {
		table_remove(&events, event);
		atomic_store_explicit(&event_count, events.live, memory_order_relaxed);
		command = s->command;
		free(s);
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

cl_int CL_API_CALL layer_clGetEventInfo(cl_event event, cl_event_info name, size_t size,
					void *value, size_t *size_ret)
{
	cl_event asked = name == CL_EVENT_COMMAND_TYPE ? command_of(event) : event;

	return next.clGetEventInfo(asked, name, size, value, size_ret);
}

/* Not before the end of access: a command without its end is not complete. */
cl_int CL_API_CALL layer_clGetEventProfilingInfo(cl_event event, cl_profiling_info name,
						 size_t size, void *value, size_t *size_ret)
{
	cl_int status = CL_COMPLETE;
	cl_event command = command_of(event);

	if (command != event)
		next.clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status),
				    &status, NULL);
	if (status != CL_COMPLETE)
		return CL_PROFILING_INFO_NOT_AVAILABLE;
	return next.clGetEventProfilingInfo(command, name, size, value, size_ret);
}
