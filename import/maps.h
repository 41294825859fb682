/* SPDX-License-Identifier: Apache-2.0 */
/* What this process has mapped, asked of the kernel. */
#ifndef IMPORT_MAPS_H
#define IMPORT_MAPS_H

#include <stddef.h>

/**
 * maps_check - is every page of a range mapped, and for what?
 * @addr: first byte
 * @size: bytes, not 0
 * @need: enum import_access that every mapping must permit
 * @have: set on success: what all of them permit
 *
 * Costs a system call for each mapping in the range, whatever their size.
 *
 * Returns 0, or -ERANGE if the range leaves the address space, -EFAULT if part
 * of it is not mapped, -EACCES if a mapping lacks @need, -EIO without /proc.
 */
int maps_check(const void *addr, size_t size, unsigned int need, unsigned int *have);

#endif /* IMPORT_MAPS_H */
