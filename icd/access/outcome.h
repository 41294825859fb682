/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An outcome is a user event whose failure waits until all commands behind the event are enqueued.
 *
 * With some drivers (PoCL 3.1) a command that is enqueued behind a failed event never runs and
 * never fails: the command hangs, and so does clFinish().  So a failure is kept until the outcome
 * is armed.  Whichever comes second, outcome_arm() or the failure, fails the event.
 * Success is never kept.  Only the first status counts.
 */
#ifndef ICD_ACCESS_OUTCOME_H
#define ICD_ACCESS_OUTCOME_H

#include <stdatomic.h>
#include <stdbool.h>

#include "icd/cl_compat.h"

struct outcome {
	cl_event event;	  /* NULL: no command waits for the outcome */
	atomic_int state; /* enum outcome_state, or the kept failure */
};

cl_int outcome_create(struct outcome *outcome, cl_context context);

/* Sets success, or the failure @status < 0.  Whether the event has failed by the call. */
bool outcome_set(struct outcome *outcome, cl_int status);

/* All commands behind the event are enqueued.  Returns the failure if the event has failed by the call, or 0. */
cl_int outcome_arm(struct outcome *outcome);

#endif /* ICD_ACCESS_OUTCOME_H */
