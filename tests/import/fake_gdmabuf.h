/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A fake of the kernel module, by wrappers of open() and ioctl().  A dma-buf is a memfd, and pins no
 * memory.  All watches belong to the context opened last.  No notifier tells of changes: a test says
 * fake_gdmabuf_change().  Calls may be of any thread.
 */
#ifndef TESTS_FAKE_GDMABUF_H
#define TESTS_FAKE_GDMABUF_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

extern struct fake_gdmabuf {
	int opens;
	int open_error; /* not 0: the errno of open() */
	int error;	/* of exports */
	int host_error; /* of exports of host memory */
	bool has_gpu;	/* a provider of GPU memory; for contexts to come */
	uint64_t
		memlock; /* RLIMIT_MEMLOCK: bytes of host dma-bufs open in the process; 0: no limit */
	int watch_error;    /* of watches */
	atomic_int watches; /* now, of all contexts */
	atomic_int calls;   /* of ioctl() */
	atomic_int exports; /* that succeeded */
	uint32_t flags;	    /* of the last export */
	void (*exporting)(void);
	void (*watching)(void);
} fake_gdmabuf;

bool fake_gdmabuf_is_device(int fd);

/* Whether the calling process opened the device: a context answers only the opener. */
bool fake_gdmabuf_is_own(int fd);
void fake_gdmabuf_set_own(int fd);

/* Bytes of the process's dma-bufs of host memory. */
uint64_t fake_gdmabuf_pinned(void);

/* The address gets other pages: watches of the range become stale. */
void fake_gdmabuf_change(const void *address, uint64_t length);

/* The first call of a child. */
void fake_gdmabuf_child(void);

#endif
