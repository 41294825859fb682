/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a device may pin memory for as long as it likes. */
#ifndef IMPORT_NVIDIA_PINNABLE_H
#define IMPORT_NVIDIA_PINNABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "import/import.h"

/* Anonymous and shared memory, heap, stacks, memfds, tmpfs and huge pages. */
#define PINNABLE_MEMORY                                                             \
	(1u << IMPORT_ANONYMOUS | 1u << IMPORT_SHMEM | 1u << IMPORT_SHMEM_PRIVATE | \
	 1u << IMPORT_HUGE | 1u << IMPORT_HUGE_SHARED)

/* In addition private mappings of files: the kernel copies the pages at the pin, for this mapping. */
#define PINNABLE_COPIES (1u << IMPORT_FILE_PRIVATE)

/**
 * pinnable_check - whether a driver can pin a range for writing
 * @addr: first byte
 * @size: bytes, not 0
 * @kinds: a bit for each enum import_kind that the driver pins
 *
 * Refused are memory of other kinds, and memory mapped without write access.  Shared mappings of
 * files on disks and mappings of devices are pinned by no driver.
 *
 * Costs a system call for each mapping in the range, two for a mapping of a file, whose first page
 * in the range is populated, and more for the first mapping of a file.  The answer may be old when
 * it comes: the driver has the last word.
 *
 * Returns 0, or a negative errno, logged with the mapping's name: -EOPNOTSUPP if the driver does not
 * pin the range, -ERANGE, -EFAULT, -EIO as maps_for_each().
 */
int pinnable_check(const void *addr, size_t size, unsigned int kinds);

/* Whether pinnable_check() is 0.  A refusal is not logged. */
bool pinnable_is(const void *addr, size_t size, unsigned int kinds);

#endif
