/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memfds that look like dma-bufs to import/: fstatfs() reports the magic
 * number, DMA_BUF_IOCTL_SYNC is counted, and poll() says what a fence would.
 * Linked with --wrap; real dma-bufs are tested in the guest.
 */
#ifndef TESTS_IMPORT_FAKE_DMABUF_H
#define TESTS_IMPORT_FAKE_DMABUF_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

struct fake_dmabuf_state {
	atomic_int starts, ends; /* DMA_BUF_IOCTL_SYNC calls that succeeded */
	atomic_ullong last_flags;
	atomic_int interrupts; /* so many calls fail with EINTR first */
	atomic_int error;      /* errno for one call, or 0 */
	atomic_int successes;  /* calls that succeed before it */
	atomic_int fence_fd;   /* not signalled for this inode's descriptors while >= 0 */
	atomic_int mmap_error; /* errno for mmap of a fake, or 0 */
};

extern struct fake_dmabuf_state fake_dmabuf;

/* A new fake of @size bytes, or -1; @flags O_RDWR or O_RDONLY.  The caller closes it. */
int fake_dmabuf_open(size_t size, int flags);

#endif
