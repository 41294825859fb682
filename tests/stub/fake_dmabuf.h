/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes memfds whose names begin with "fake-dmabuf" look like dma-bufs.  fstatfs() reports the
 * magic of dma-bufs.  DMA_BUF_IOCTL_SYNC works, and is recorded with stub_trace() as "sync START
 * name rw" (or r) and "sync END name rw"; what the layer sends in front of START, as "sync CLEAN name w".
 *
 * libfakedmabuf.so stands in front of libc's functions: link to the library, or preload the
 * library.
 */
#ifndef TESTS_FAKE_DMABUF_H
#define TESTS_FAKE_DMABUF_H

#include <stdbool.h>
#include <stddef.h>

#define FAKE_API __attribute__((visibility("default")))

/*
 * What /dev/udmabuf is: nothing, at first and after fake_dmabuf_reset(); a device that makes fake
 * dma-bufs of whole memfds; or the kernel's.
 */
enum fake_udmabuf { FAKE_UDMABUF_NONE, FAKE_UDMABUF, FAKE_UDMABUF_REAL };
FAKE_API void fake_dmabuf_set_udmabuf(enum fake_udmabuf udmabuf);

/* Returns a descriptor, or -1. */
FAKE_API int fake_dmabuf_create(const char *name, size_t size);

/* Returns a new descriptor of the buffer, with access mode @mode (O_RDONLY...). */
FAKE_API int fake_dmabuf_reopen(int fd, int mode);

/* The next @times ioctls of @edge ("START", "END" or "CLEAN") fail with @error. */
FAKE_API void fake_dmabuf_fail(const char *edge, int error, unsigned times);

/* The @nth ioctl of @edge that could fail from now on fails with @error. */
FAKE_API void fake_dmabuf_fail_nth(const char *edge, int error, unsigned nth);
FAKE_API bool fake_dmabuf_failed(void); /* the fault has happened */

/* Each ioctl that succeeds calls @observer with its edge and the buffer's name; NULL: nobody. */
typedef void fake_dmabuf_observer(const char *edge, const char *name);
FAKE_API void fake_dmabuf_observe(fake_dmabuf_observer *observer);

/* Each ioctl takes @ms milliseconds. */
FAKE_API void fake_dmabuf_delay(long ms);

/* poll() reports unsignalled fences for the buffer @name, until fake_dmabuf_busy(NULL). */
FAKE_API void fake_dmabuf_busy(const char *name);

/* Counts successful STARTs minus successful ENDs, of all buffers. */
FAKE_API int fake_dmabuf_open_brackets(void);

/* Resets faults, delay, busy buffer and count, and takes /dev/udmabuf away. */
FAKE_API void fake_dmabuf_reset(void);

#endif
