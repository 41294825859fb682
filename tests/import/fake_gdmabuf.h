/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A fake of the kernel module: open() of /dev/gdmabuf, and its ioctls, are wrapped.  It pins
 * nothing, and a pin is idle as soon as it is kept.  Its pins are those of the context that was
 * opened last.
 */
#ifndef TESTS_FAKE_GDMABUF_H
#define TESTS_FAKE_GDMABUF_H

#include <stdbool.h>
#include <stdint.h>

extern struct fake_gdmabuf {
	int opens;
	int error;	    /* of exports */
	bool has_gpu;	    /* a provider of GPU memory; for contexts to come */
	uint32_t flags;	    /* of the last export */
	uint64_t budget[2]; /* of the host's memory and of GPUs' */
	void (*exporting)(void);
} fake_gdmabuf;

bool fake_gdmabuf_is_device(int fd);

/* Which process opened a device: contexts answer nobody else. */
bool fake_gdmabuf_is_own(int fd);
void fake_gdmabuf_set_own(int fd);

/* The memory of the last export is freed: the status word says so. */
void fake_gdmabuf_free_last(void);

/* To be called first in a child. */
void fake_gdmabuf_child(void);

#endif
