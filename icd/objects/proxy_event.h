/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A proxy event stands for a command.
 *
 * The application's event of a bracketed command is the marker behind the bracket, which completes
 * when access has ended.  The record has the command of the marker: type and times are the
 * command's.  Until access has ended the status is the command's, at most CL_RUNNING, and so are
 * callbacks for such a status.
 */
#ifndef ICD_OBJECTS_PROXY_EVENT_H
#define ICD_OBJECTS_PROXY_EVENT_H

#include <stdbool.h>

#include "icd/cl_compat.h"
#include "icd/objects/handle_table.h"

extern struct handle_table proxy_event_table;

/* Whether @event is a proxy.  A proxy holds a reference to its command. */
static inline bool proxy_event_is_given(cl_event event)
{
	return handle_table_has(&proxy_event_table, event);
}

/**
 * proxy_event_give - give an application the event of its command
 * @marker: completes for the application; NULL: @command itself does
 * @command: the command that the marker stands for
 * @out: set to the application's event; NULL if the application wants no event
 *
 * Takes over one reference to each event.
 */
void proxy_event_give(cl_event marker, cl_event command, cl_event *out);

/* The command of an event that the caller holds; @event if @event is no proxy. */
cl_event proxy_event_command(cl_event event);

/*
 * The type of the command that the application enqueued, where the driver knows another.  The application does not have
 * @event yet.  Without memory the event keeps the driver's type.
 */
void proxy_event_set_type(cl_event event, cl_command_type type);

/* 0: the type of the proxy's command. */
cl_command_type proxy_event_type(cl_event event);

/* The application's references, without the layer's. */
cl_uint proxy_event_references(cl_event event);

/* The application retains @event, perhaps a proxy. */
static inline void proxy_event_retain(cl_event event)
{
	if (proxy_event_is_given(event))
		handle_table_retain(&proxy_event_table, event);
}

/* clReleaseEvent() for an event that may be a proxy, whose command is released behind the event. */
cl_int proxy_event_release(cl_event event);

/* A pending callback holds the record.  The command, or NULL if @event is no proxy. */
cl_event proxy_event_hold_callback(cl_event event);
void proxy_event_put_callback(cl_event event);

/* Waits for an event of any kind.  CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST: it has failed. */
cl_int proxy_event_wait(cl_event event);

#endif /* ICD_OBJECTS_PROXY_EVENT_H */
