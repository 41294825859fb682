/* SPDX-License-Identifier: Apache-2.0 */
#include "access.h"

#include "error.h"
#include "event.h"
#include "layer.h"
#include "user_event.h"

static bool any_needs_bracket(struct memobj *const *objs, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (objs[i] && objs[i]->bracket)
			return true;
	return false;
}

static bool refresh_is_enough(struct memobj *const *objs, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (objs[i] && objs[i]->bracket && import_needs_end(objs[i]->region))
			return false;
	return true;
}

/* Whether a refresh among the first @i does for object @i. */
static bool is_refreshed(struct memobj *const *objs, size_t i)
{
	for (size_t j = 0; j < i; j++)
		if (objs[j] && objs[j]->bracket &&
		    import_same_bracket(objs[j]->region, objs[i]->region))
			return true;
	return false;
}

static cl_int refresh_now(struct access *a, struct memobj *const *objs, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		int error;

		if (!objs[i] || !objs[i]->bracket || is_refreshed(objs, i))
			continue;
		error = import_begin_access(objs[i]->region, 0);
		if (error) {
			import_put(a->refreshed);
			return error_to_cl(error);
		}
		if (a->refreshed)
			continue;
		a->refreshed = objs[i]->region;
		import_hold(a->refreshed);
	}
	return CL_SUCCESS;
}

void access_prepare(struct access *a)
{
	import_prepare(a->refreshed);
	import_put(a->refreshed);
}

/* The command's event is needed in any case: END follows it. */
static void access_take_event(struct access *a)
{
	a->app_event = a->event;
	a->event = &a->command;
	a->command = NULL;
}

static cl_int access_open(struct access *a, cl_command_queue queue, struct memobj *const *objs,
			  size_t count, unsigned int edges)
{
	struct bracket *b;
	cl_int err = bracket_create(queue, objs, count, edges, &b);

	if (err)
		return err;
	if (edges & ACCESS_BEGIN) {
		err = bracket_begin(b, a->num_wait, a->wait);
		if (err) {
			bracket_cancel(b);
			return err;
		}
		a->wait = bracket_wait_list(b, &a->num_wait);
	}
	a->bracket = b;
	access_take_event(a);
	return CL_SUCCESS;
}

cl_int access_begin(struct access *a, cl_command_queue queue, struct memobj *const *objs,
		    size_t count, unsigned int edges)
{
	if (!any_needs_bracket(objs, count))
		return CL_SUCCESS;
	if (edges & ACCESS_BEGIN && !a->num_wait && !user_events_pending() &&
	    refresh_is_enough(objs, count))
		return refresh_now(a, objs, count);
	return access_open(a, queue, objs, count, edges);
}

static cl_int wait_for(cl_event event)
{
	cl_int status = CL_COMPLETE, err = next.clWaitForEvents(1, &event);

	next.clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status,
			    NULL);
	return err || status < 0 ? CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST : CL_SUCCESS;
}

cl_int access_finish(struct access *a, cl_int err, cl_bool blocking)
{
	cl_event marker;

	if (err) {
		bracket_cancel(a->bracket);
		return err;
	}
	next.clRetainEvent(a->command);
	bracket_add(a->bracket, a->command);
	marker = bracket_end(a->bracket);
	if (blocking)
		err = wait_for(marker ? marker : a->command);
	event_give(marker, a->command, err ? NULL : a->app_event);
	return err;
}
