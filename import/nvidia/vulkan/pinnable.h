/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a device may pin memory for as long as it likes. */
#ifndef IMPORT_NVIDIA_VULKAN_PINNABLE_H
#define IMPORT_NVIDIA_VULKAN_PINNABLE_H

#include <stddef.h>

/**
 * pinnable_check - whether a driver can pin a range for writing
 * @addr: first byte
 * @size: bytes, not 0
 *
 * Anonymous and shared memory, heap, stacks, memfds, tmpfs and huge pages can be pinned.
 * Drivers pin no files on disks, even mapped privately, no device mappings, and no memory mapped
 * without write access.
 *
 * Costs a system call for each mapping in the range; shared memory from a tmpfs also
 * a read of /proc/self/mountinfo.  The answer may be old when it comes: the driver has
 * the last word.
 *
 * Returns 0, or a negative errno, logged with the mapping's name: -EOPNOTSUPP if no
 * driver can pin the range, -ERANGE, -EFAULT, -EIO as maps_for_each().
 */
int pinnable_check(const void *addr, size_t size);

#endif
