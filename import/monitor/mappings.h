/* SPDX-License-Identifier: Apache-2.0 */
/* Which mappings of the process may be watched, and how much of a mapping is registered. */
#ifndef IMPORT_MONITOR_MAPPINGS_H
#define IMPORT_MONITOR_MAPPINGS_H

#include "import/monitor/watches.h"

/*
 * 0 and the range of all mappings of the pages.  -EOPNOTSUPP: a mapping is not anonymous private
 * writable memory, or is the stack of the first thread.  -EFAULT: part of the pages is not mapped.
 */
int mappings_check(struct watches_pages pages, struct watches_pages *mappings);

/* The range that is registered for a watch of the pages, by the answer of mappings_check(). */
struct watches_pages mappings_to_register(struct watches_pages pages,
					  struct watches_pages mappings);

/* The end of the mapping that has the page before @end; @end without such a mapping. */
uintptr_t mappings_end_of(uintptr_t end);

#endif
