/* SPDX-License-Identifier: Apache-2.0 */
/* What this process has mapped, asked of the kernel. */
#ifndef IMPORT_KINDS_MAPS_H
#define IMPORT_KINDS_MAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "import/import.h"

/* One mapping.  Nothing is kept of it: another thread may change it at any time. */
struct maps_mapping {
	uintptr_t start, end;
	unsigned int access; /* enum import_access */
	dev_t device;	     /* of the file's filesystem */
	uint64_t inode;	     /* 0: no file, the memory is anonymous */
	bool shared;
};

/**
 * maps_for_each - the mappings of a range, in order
 * @addr: first byte
 * @size: bytes, not 0
 * @visit: called for each with @arg; returns 0, or a negative errno, logged, that ends the walk
 *
 * Costs a system call for each mapping in the range, whatever their size.
 *
 * Returns 0, what @visit returned, or -ERANGE if the range leaves the address
 * space, -EFAULT if part of it is not mapped, -EMFILE or -ENFILE without a descriptor, -EIO
 * without /proc.
 */
int maps_for_each(const void *addr, size_t size,
		  int (*visit)(const struct maps_mapping *mapping, void *arg), void *arg);

/**
 * maps_name - what a mapping is of, as /proc/self/maps says it
 * @addr: an address in it
 *
 * The caller frees it.  "": it has none, or is gone.  NULL: there is no memory.
 */
char *maps_name(uintptr_t addr);

/**
 * maps_check - is every page of a range mapped, and for what?
 * @addr: first byte
 * @size: bytes, not 0
 * @need: enum import_access that every mapping must permit
 * @have: set on success: what all of them permit
 * @kinds: the same, unless it is NULL: a bit for each enum import_kind of them
 *
 * Returns and costs what maps_for_each() does, and -EACCES if a mapping lacks @need.
 */
int maps_check(const void *addr, size_t size, unsigned int need, unsigned int *have,
	       unsigned int *kinds);

/* kind.c: the kind of memory; costs a system call where a file is mapped. */
enum import_kind maps_kind(const struct maps_mapping *m);

#endif /* IMPORT_KINDS_MAPS_H */
