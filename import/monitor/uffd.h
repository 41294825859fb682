/* SPDX-License-Identifier: Apache-2.0 */
/* userfaultfd(2) for events alone: no page is protected or missing, so no thread ever faults. */
#ifndef IMPORT_MONITOR_UFFD_H
#define IMPORT_MONITOR_UFFD_H

#include <stdbool.h>
#include <stdint.h>

enum uffd_kind {
	UFFD_UNMAPPED, /* munmap(), mmap() over the range, brk(), part of mremap(): done */
	UFFD_REMOVED,  /* madvise(): about to be done */
	UFFD_MOVED, /* mremap(): done; with MREMAP_DONTUNMAP the range stays mapped, and is empty */
	UFFD_OTHER,
};

/* A change of memory: what a thread of the program did to [@start, @end). */
struct uffd_change {
	enum uffd_kind kind;
	uintptr_t start, end;
};

/* Whether the process has a userfaultfd open.  Reads /proc/self/fd. */
bool uffd_is_open(void);

/*
 * A descriptor, never a standard one, which does not block; or a negative errno: -ENOSYS and
 * -EPERM where there is no userfaultfd(2), -EINVAL where the kernel is older than 5.19, which may
 * replace a pinned page when the page is written.
 */
int uffd_open(void);

/*
 * 0; -EBUSY: another userfaultfd has pages of the range; -EINVAL: nothing is mapped there, or no
 * memory that can be watched; -ENOMEM.  Ranges are of whole pages.
 */
int uffd_register(int fd, uintptr_t start, uintptr_t end);

/* Best effort. */
void uffd_unregister(int fd, uintptr_t start, uintptr_t end);

/*
 * 1 while a change of registered memory has begun and its thread has not seen the event read.  If
 * there is no such change: 0: the range is registered, and in a single mapping; -ENOENT: it is not;
 * -EBADF: the descriptor is no userfaultfd.  Nothing changes.
 */
int uffd_look(int fd, uintptr_t start, uintptr_t end);

/*
 * The next changes, @count at most: their number, or a negative errno.  -EAGAIN: no change.  The
 * threads that made the changes go on.
 */
int uffd_read(int fd, struct uffd_change *changes, int count);

#endif
