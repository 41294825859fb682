/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memfds that look like dma-bufs to import/: fstatfs() reports the magic number, DMA_BUF_IOCTL_SYNC
 * is counted, and poll() behaves like the poll() of a fence.  Linked with --wrap; the tests in the
 * guest have real dma-bufs.
 */
#ifndef TESTS_IMPORT_FAKE_DMABUF_H
#define TESTS_IMPORT_FAKE_DMABUF_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

struct fake_dmabuf_state {
	atomic_int starts, ends; /* successful calls of DMA_BUF_IOCTL_SYNC */
	atomic_int cleans; /* calls that end the host's writes, in front of START, which fail */
	atomic_ullong last_flags;
	atomic_int interrupts;	     /* number of calls to fail with EINTR first */
	atomic_int error;	     /* errno for a single call, or 0 */
	atomic_int successes;	     /* successful calls before the error */
	atomic_int fence_fd;	     /* while >= 0, the fence of its inode is not signalled */
	atomic_int mmap_error;	     /* errno for mmap of a fake, or 0 */
	atomic_int mmap_write_error; /* the same for PROT_WRITE */
};

extern struct fake_dmabuf_state fake_dmabuf;

/* A new fake of @size bytes, or -1; @flags O_RDWR, O_RDONLY or O_WRONLY.  The caller closes the fake. */
int fake_dmabuf_open(size_t size, int flags);

#endif
