/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes memfds whose names begin with "fake-dmabuf" look like dma-bufs: fstatfs()
 * says so, and DMA_BUF_IOCTL_SYNC works and is recorded with stub_trace() as
 * "sync START name rw" (or r, w) and "sync END name rw".
 *
 * libfakedmabuf.so stands in front of libc's functions: link to it, or preload it.
 */
#ifndef TESTS_FAKE_DMABUF_H
#define TESTS_FAKE_DMABUF_H

#include <stdbool.h>
#include <stddef.h>

#define FAKE_API __attribute__((visibility("default")))

/* A descriptor, or -1. */
FAKE_API int fake_dmabuf_create(const char *name, size_t size);

/* Another descriptor of the same buffer with access mode @mode (O_RDONLY...). */
FAKE_API int fake_dmabuf_reopen(int fd, int mode);

/* The next @times ioctls of @edge ("START" or "END") fail with @error. */
FAKE_API void fake_dmabuf_fail(const char *edge, int error, unsigned times);

/* The first of those is the @nth from now on that could fail. */
FAKE_API void fake_dmabuf_fail_nth(const char *edge, int error, unsigned nth);
FAKE_API bool fake_dmabuf_failed(void); /* it has happened */

/* Each ioctl takes so long. */
FAKE_API void fake_dmabuf_delay(long ms);

/* poll() says that buffer @name has fences to wait for, until it is called with NULL. */
FAKE_API void fake_dmabuf_busy(const char *name);

/* Successful STARTs less ENDs, of all buffers. */
FAKE_API int fake_dmabuf_open_brackets(void);

/* All of the above as at start. */
FAKE_API void fake_dmabuf_reset(void);

#endif
