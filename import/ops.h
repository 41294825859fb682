/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The operations of a kind of memory.  A new kind is a file with a table of operations, and a row
 * in import.c.
 */
#ifndef IMPORT_OPS_H
#define IMPORT_OPS_H

#include "import/import.h"

/* No lock is held around any call. */
struct import_ops {
	const char *name;

	/* Fills region->addr, fd and access.  Undone by unpin. */
	int (*pin)(const struct import_desc *desc, struct import_region *region);
	void (*unpin)(struct import_region *region);

	/* Optional: the application has released the import; before unpin, or not at all. */
	void (*released)(struct import_region *region);

	/* Optional, both or none: CPU access needs a bracket. */
	int (*begin_access)(struct import_region *region, unsigned int access);
	int (*end_access)(struct import_region *region, unsigned int access);
	/*
	 * With begin and end: 0, or a negative errno, logged, if begin and end can only fail by
	 * now.
	 */
	int (*check_access)(const struct import_region *region);

	/* Optional: poll(2) events of region->fd after which begin_access does not wait. */
	short (*ready_events)(unsigned int access);
};

extern const struct import_ops import_host_ops;
extern const struct import_ops import_dmabuf_ops;

#endif /* IMPORT_OPS_H */
