/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Objects that wait for a callback of the driver, which may never come: some drivers do not call
 * back for commands that fail (PoCL 3.1 to 6.0).  The thread that idles asks for those that have
 * waited long.
 */
#ifndef ICD_ACCESS_OVERDUE_H
#define ICD_ACCESS_OVERDUE_H

#include <stdbool.h>

#include "util/list.h"

struct overdue;

struct overdue_ops {
	bool (*hold)(struct overdue *o); /* false: it is about to be removed */
	void (*ask)(struct overdue *o);	 /* with what hold() took, and gives that up */
};

/* A member of the object. */
struct overdue {
	const struct overdue_ops *ops;
	struct list link; /* overdue.c's, as the next */
	bool listed;
	unsigned int round; /* when it was born, or asked */
};

/*
 * Has @o asked some times a second, from when it is a tenth of a second old.  False: nobody will
 * ask.  overdue_remove() comes before its memory goes, in either case.
 */
bool overdue_add(struct overdue *o, const struct overdue_ops *ops);
void overdue_remove(struct overdue *o);

#endif /* ICD_ACCESS_OVERDUE_H */
