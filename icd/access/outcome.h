/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A user event whose failure waits until everything behind it is enqueued.
 *
 * A command that is enqueued behind an event that has failed already never runs and never fails
 * with some drivers (PoCL 3.1): it hangs, and clFinish() with it.  So a failure is kept until the
 * outcome is armed: whoever comes second, who arms or who fails it, sets the event's status.
 * Success is never kept.  Only the first status counts.
 */
#ifndef ICD_ACCESS_OUTCOME_H
#define ICD_ACCESS_OUTCOME_H

#include <stdatomic.h>
#include <stdbool.h>

#include "icd/cl_compat.h"

struct outcome {
	cl_event event;	  /* NULL: nobody waits for it */
	atomic_int state; /* enum outcome_state, or the failure that is kept */
};

cl_int outcome_create(struct outcome *outcome, cl_context context);

/* Succeeds, or fails with a negative @status.  Whether the event has failed now. */
bool outcome_set(struct outcome *outcome, cl_int status);

/* Everything behind the event is enqueued.  Whether the event has failed now. */
bool outcome_arm(struct outcome *outcome);

#endif /* ICD_ACCESS_OUTCOME_H */
