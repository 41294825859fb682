/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/selftest/user_event.h"

#include <stdatomic.h>

#include "icd/intercept.h"
#include "icd/layer.h"

static atomic_uint pending;

bool user_events_pending(void)
{
	return atomic_load_explicit(&pending, memory_order_relaxed) != 0;
}

void user_events_assume_pending(void)
{
	atomic_fetch_add_explicit(&pending, 1, memory_order_relaxed);
}

cl_event CL_API_CALL layer_clCreateUserEvent(cl_context context, cl_int *errcode_ret)
{
	cl_int err = CL_SUCCESS;
	cl_event event;

	atomic_fetch_add_explicit(&pending, 1, memory_order_relaxed);
	event = next.clCreateUserEvent(context, &err);
	if (!is_created(event, err))
		atomic_fetch_sub_explicit(&pending, 1, memory_order_relaxed);
	if (errcode_ret)
		*errcode_ret = err;
	return event;
}

/* "can be called only once": the status that counts is the first. */
cl_int CL_API_CALL layer_clSetUserEventStatus(cl_event event, cl_int status)
{
	cl_int err = next.clSetUserEventStatus(event, status);

	if (!err)
		atomic_fetch_sub_explicit(&pending, 1, memory_order_relaxed);
	return err;
}
