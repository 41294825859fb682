/* SPDX-License-Identifier: Apache-2.0 */
/* Calls on events.  A proxy event answers for its command: proxy_event.h. */
#include <stdlib.h>

#include "icd/info_answer.h"
#include "icd/intercept.h"
#include "icd/layer.h"
#include "icd/objects/proxy_event.h"
#include "util/log.h"

/* A callback of the application on a proxy event. */
struct event_callback {
	cl_event event; /* one reference */
	cl_int type;
	void(CL_CALLBACK *notify)(cl_event event, cl_int status, void *user_data);
	void *user_data;
};

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

static void event_callback_destroy(struct event_callback *c)
{
	proxy_event_put_callback(c->event);
	next.clReleaseEvent(c->event);
	free(c);
}

/*
 * Driver: the event, or its command, has reached the status.  A failure of the command is told to
 * the application when the event has failed.
 */
static void CL_CALLBACK event_callback_run(cl_event event, cl_int status, void *arg)
{
	struct event_callback *c = arg;

	if (status < 0 && event != c->event &&
	    !next.clSetEventCallback(c->event, CL_COMPLETE, event_callback_run, c))
		return;
	c->notify(c->event, status < 0 ? event_failure(c->event, status) : c->type, c->user_data);
	event_callback_destroy(c);
}

static cl_int event_set_callback(cl_event event, cl_event command, cl_int type,
				 void(CL_CALLBACK *notify)(cl_event, cl_int, void *),
				 void *user_data)
{
	struct event_callback *c = malloc(sizeof(*c));
	cl_int err;

	if (!c) {
		log_error("no memory for a callback");
		proxy_event_put_callback(event);
		return CL_OUT_OF_HOST_MEMORY;
	}
	*c = (struct event_callback){ event, type, notify, user_data };
	next.clRetainEvent(event);
	err = next.clSetEventCallback(type == CL_COMPLETE ? event : command, type,
				      event_callback_run, c);
	if (err)
		event_callback_destroy(c);
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
