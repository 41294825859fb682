/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A fake of the kernel module, by wrappers of open() and ioctl().  The fake pins no memory, and a
 * kept pin is idle at once.  All pins and watches belong to the context opened last.  No notifier
 * tells of changes: a test says fake_gdmabuf_change().  Watches may be of any thread.
 */
#ifndef TESTS_FAKE_GDMABUF_H
#define TESTS_FAKE_GDMABUF_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

extern struct fake_gdmabuf {
	int opens;
	int open_error;	    /* not 0: the errno of open() */
	int error;	    /* of exports */
	bool has_gpu;	    /* a provider of GPU memory; for contexts to come */
	bool is_old;	    /* a module without GDMABUF_WATCH_HOST */
	int watch_error;    /* of watches */
	atomic_int watches; /* now, of all contexts */
	uint32_t flags;	    /* of the last export */
	uint64_t budget[2]; /* of the host's memory and of GPUs' */
	void (*exporting)(void);
	void (*watching)(void);
} fake_gdmabuf;

bool fake_gdmabuf_is_device(int fd);

/* Whether the calling process opened the device: a context answers only the opener. */
bool fake_gdmabuf_is_own(int fd);
void fake_gdmabuf_set_own(int fd);

/* Frees the memory of the last export: the status word changes. */
void fake_gdmabuf_free_last(void);

/* The address gets other pages: watches of the range become stale. */
void fake_gdmabuf_change(const void *address, uint64_t length);

/* The first call of a child. */
void fake_gdmabuf_child(void);

#endif
