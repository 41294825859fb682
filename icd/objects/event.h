/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events that stand for another command: the marker behind a bracketed command
 * completes when access has ended, and is asked for the command's type and times.  Until then its
 * status is the command's, at most CL_RUNNING, and so are the callbacks for these.
 */
#ifndef ICD_OBJECTS_EVENT_H
#define ICD_OBJECTS_EVENT_H

#include <stdbool.h>

#include "icd/cl_compat.h"

/**
 * event_give - give an application the event of its command
 * @marker: what completes for it; NULL if that is @command itself
 * @command: what it says it is
 * @out: set to the application's event; NULL if it wants none
 *
 * Takes over one reference to each event.
 */
void event_give(cl_event marker, cl_event command, cl_event *out);

/* Whether the application has @marker, and so a reference to its command is held for it. */
bool event_is_given(cl_event marker);

#endif /* ICD_OBJECTS_EVENT_H */
