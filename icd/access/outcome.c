/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/access/outcome.h"

#include "icd/layer.h"
#include "util/cl_names.h"
#include "util/log.h"

enum outcome_state {
	OUTCOME_NEW, /* a failure is kept */
	OUTCOME_ARMED,
	OUTCOME_SET,
};

cl_int outcome_create(struct outcome *outcome, cl_context context)
{
	cl_int err = CL_SUCCESS;

	outcome->event = created_or_null(next.clCreateUserEvent(context, &err), &err);
	if (err)
		log_error("the driver makes no user event for a dma-buf bracket: %s",
			  cl_error_name(err));
	return err;
}

static bool outcome_decide(struct outcome *outcome, cl_int status)
{
	if (outcome->event)
		next.clSetUserEventStatus(outcome->event, status);
	return status < 0;
}

bool outcome_set(struct outcome *outcome, cl_int status)
{
	int state = atomic_load(&outcome->state), after;

	do {
		if (state != OUTCOME_NEW && state != OUTCOME_ARMED)
			return false;
		after = status < 0 && state == OUTCOME_NEW ? status : OUTCOME_SET;
	} while (!atomic_compare_exchange_weak(&outcome->state, &state, after));
	return after == OUTCOME_SET && outcome_decide(outcome, status);
}

cl_int outcome_arm(struct outcome *outcome)
{
	int state = atomic_load(&outcome->state);

	while (state <= OUTCOME_NEW &&
	       !atomic_compare_exchange_weak(&outcome->state, &state,
					     state < 0 ? OUTCOME_SET : OUTCOME_ARMED))
		;
	if (state >= 0)
		return CL_SUCCESS;
	outcome_decide(outcome, state);
	return state;
}
