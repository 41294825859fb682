/* SPDX-License-Identifier: Apache-2.0 */
/* Calls on user events, which are counted: objects/user_event.h. */
#include "icd/objects/user_event.h"

#include "icd/intercept.h"
#include "icd/layer.h"

/* Counted before the driver creates the event: another thread may use the event at once. */
cl_event CL_API_CALL layer_clCreateUserEvent(cl_context context, cl_int *errcode_ret)
{
	cl_int err = CL_SUCCESS;
	cl_event event;

	user_event_add();
	event = next.clCreateUserEvent(context, &err);
	if (!is_created(event, err))
		user_event_remove();
	if (errcode_ret)
		*errcode_ret = err;
	return event;
}

/* "can be called only once": the first status counts. */
cl_int CL_API_CALL layer_clSetUserEventStatus(cl_event event, cl_int status)
{
	cl_int err = next.clSetUserEventStatus(event, status);

	if (!err)
		user_event_remove();
	return err;
}
