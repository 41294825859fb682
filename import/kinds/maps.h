/* SPDX-License-Identifier: Apache-2.0 */
/* The mappings of the process, from the kernel. */
#ifndef IMPORT_KINDS_MAPS_H
#define IMPORT_KINDS_MAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "import/import.h"

/* A mapping.  No answer is kept: a thread may change mappings at any time. */
struct maps_mapping {
	uintptr_t start, end;
	unsigned int access; /* enum import_access */
	dev_t device;	     /* of the file's filesystem */
	uint64_t inode;	     /* 0: no file, or the first SysV segment */
	uint64_t offset;     /* of @start in the file */
	bool shared;
};

/* Memory of no file is anonymous. */
static inline bool maps_has_file(const struct maps_mapping *m)
{
	return m->inode || m->device;
}

/**
 * maps_for_each - the mappings of a range, in order
 * @addr: first byte
 * @size: bytes, not 0
 * @visit: called for each with @arg; returns 0, or a negative errno, logged, to end the walk
 *
 * Costs a system call for each mapping in the range, of any size.
 *
 * Returns 0, the errno of @visit, or -ERANGE if the range leaves the address
 * space, -EFAULT if part of the range is not mapped, -EMFILE or -ENFILE without a descriptor, -EIO
 * without /proc.
 */
int maps_for_each(const void *addr, size_t size,
		  int (*visit)(const struct maps_mapping *mapping, void *arg), void *arg);

/**
 * maps_name - the name of a mapping in /proc/self/maps
 * @addr: an address in the mapping
 *
 * The caller frees the name.  "": no name, or no mapping.  NULL: no memory.
 */
char *maps_name(uintptr_t addr);

/**
 * maps_check - whether every page of a range is mapped, and for which access
 * @addr: first byte
 * @size: bytes, not 0
 * @need: enum import_access, required of every mapping
 * @have: set on success: the access that all mappings permit
 * @kinds: NULL, or set on success: a bit for each enum import_kind of the mappings
 *
 * Returns and costs as maps_for_each(), and -EACCES if a mapping lacks @need.
 */
int maps_check(const void *addr, size_t size, unsigned int need, unsigned int *have,
	       unsigned int *kinds);

/* kind.c: the kind of memory of a mapping of a file; may cost a system call. */
enum import_kind maps_kind_of_file(const struct maps_mapping *m);

static inline enum import_kind maps_kind(const struct maps_mapping *m)
{
	if (maps_has_file(m))
		return maps_kind_of_file(m);
	return m->shared ? IMPORT_OTHER : IMPORT_ANONYMOUS;
}

#endif /* IMPORT_KINDS_MAPS_H */
