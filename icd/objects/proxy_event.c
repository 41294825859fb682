/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/objects/proxy_event.h"

#include <stdlib.h>

#include "icd/layer.h"

struct proxy_event {
	struct handle_record record; /* handles: the application's, and callbacks */
	cl_event command;	     /* one reference */
	cl_command_type type;	     /* 0: the command's */
	unsigned int callbacks;
};

HANDLE_TABLE_DEFINE(proxy_event_table, NULL); /* marker -> struct proxy_event */

static bool proxy_event_add(cl_event marker, cl_event command)
{
	struct proxy_event *p = malloc(sizeof(*p));

	if (!p)
		return false;
	*p = (struct proxy_event){ .command = command };
	if (handle_table_add(&proxy_event_table, marker, p))
		return true;
	free(p);
	return false;
}

void proxy_event_give(cl_event marker, cl_event command, cl_event *out)
{
	if (!marker) {
		next.clRetainEvent(command);
		marker = command;
	}
	if (!out)
		next.clReleaseEvent(marker);
	else
		*out = marker;
	if (!out || !proxy_event_add(marker, command))
		next.clReleaseEvent(command);
}

cl_event proxy_event_command(cl_event event)
{
	struct proxy_event *p = handle_table_get(&proxy_event_table, event);
	cl_event command = p ? p->command : event;

	handle_record_free(p);
	return command;
}

void proxy_event_set_type(cl_event event, cl_command_type type)
{
	struct proxy_event *p = handle_table_get(&proxy_event_table, event);

	if (!p && !next.clRetainEvent(event)) {
		if (!proxy_event_add(event, event))
			next.clReleaseEvent(event);
		p = handle_table_get(&proxy_event_table, event);
	}
	if (p)
		p->type = type;
	handle_record_free(p);
}

cl_command_type proxy_event_type(cl_event event)
{
	struct proxy_event *p = handle_table_get(&proxy_event_table, event);
	cl_command_type type = p ? p->type : 0;

	handle_record_free(p);
	return type;
}

cl_uint proxy_event_references(cl_event event)
{
	const struct proxy_event *p;
	cl_uint references = 0;

	lock_acquire(&proxy_event_table.lock);
	p = handle_table_peek(&proxy_event_table, event);
	if (p)
		references = p->record.handles - p->callbacks;
	lock_release(&proxy_event_table.lock);
	return references;
}

/* The record if the application is about to release the last handle. */
static struct proxy_event *proxy_event_drop(cl_event event)
{
	struct proxy_event *p, *gone = NULL;

	if (!proxy_event_is_given(event))
		return NULL;
	lock_acquire(&proxy_event_table.lock);
	p = handle_table_peek(&proxy_event_table, event);
	if (p && p->record.handles > p->callbacks)
		gone = handle_table_drop(&proxy_event_table, event);
	lock_release(&proxy_event_table.lock);
	return gone;
}

static void proxy_event_end(struct proxy_event *gone)
{
	cl_event command = gone ? gone->command : NULL;

	handle_record_free(gone);
	if (command)
		next.clReleaseEvent(command);
}

cl_int proxy_event_release(cl_event event)
{
	struct proxy_event *gone = proxy_event_drop(event);
	cl_int err = next.clReleaseEvent(event);

	proxy_event_end(gone);
	return err;
}

cl_event proxy_event_hold_callback(cl_event event)
{
	cl_event command = NULL;
	struct proxy_event *p;

	if (!proxy_event_is_given(event))
		return NULL;
	lock_acquire(&proxy_event_table.lock);
	p = handle_table_peek(&proxy_event_table, event);
	if (p) {
		p->record.handles++;
		p->callbacks++;
		command = p->command;
	}
	lock_release(&proxy_event_table.lock);
	return command;
}

void proxy_event_put_callback(cl_event event)
{
	struct proxy_event *p, *gone = NULL;

	lock_acquire(&proxy_event_table.lock);
	p = handle_table_peek(&proxy_event_table, event);
	if (p) {
		p->callbacks--;
		gone = handle_table_drop(&proxy_event_table, event);
	}
	lock_release(&proxy_event_table.lock);
	proxy_event_end(gone);
}

cl_int proxy_event_wait(cl_event event)
{
	cl_int status = CL_COMPLETE, err = next.clWaitForEvents(1, &event);

	next.clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status,
			    NULL);
	return err || status < 0 ? CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST : CL_SUCCESS;
}
