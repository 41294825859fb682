/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Objects that wait for a callback of the driver, which may never come: PoCL 3.1 to 6.0 do not call
 * back for commands that fail.  The idle thread asks for objects that have waited long.
 */
#ifndef ICD_ACCESS_OVERDUE_H
#define ICD_ACCESS_OVERDUE_H

#include <stdbool.h>

#include "util/list.h"

struct overdue;

struct overdue_ops {
	bool (*hold)(struct overdue *o); /* false: @o is about to be removed */
	void (*ask)(struct overdue *o);	 /* with the reference of hold(), which ask() gives up */
};

/* A member of the object. */
struct overdue {
	const struct overdue_ops *ops;
	struct list link; /* overdue.c's, as all below */
	bool listed;
	unsigned int round; /* when @o was added, or asked */
};

/*
 * Calls ask() some times a second, from an age of a tenth of a second on.  False: ask() will not be
 * called.  In both cases overdue_remove() comes before the memory of @o goes.
 */
bool overdue_add(struct overdue *o, const struct overdue_ops *ops);
void overdue_remove(struct overdue *o);

#endif /* ICD_ACCESS_OVERDUE_H */
