/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Failed brackets that the driver still uses.
 *
 * PoCL 3.1 calls back for a command before it tells the command's successors, which a failure in
 * the callback has ended already.  If nobody holds the events of the successors, PoCL uses the
 * events after their end.  So a failed bracket stays until the driver has no reference to the
 * events that the callbacks were for, which PoCL drops last, or for a second after the marker in
 * front is done.
 */
#ifndef ICD_ACCESS_GRAVE_H
#define ICD_ACCESS_GRAVE_H

#include "icd/access/bracket_events.h"
#include "util/list.h"

/* A member of the bracket. */
struct grave {
	struct list link;
	unsigned int age; /* milliseconds */
	const struct bracket_events *events;
	void (*destroy)(struct grave *grave);
};

/* Calls @grave->destroy when the driver no longer uses @grave->events. */
void grave_add(struct grave *grave);

#endif /* ICD_ACCESS_GRAVE_H */
