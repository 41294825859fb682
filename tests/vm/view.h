/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the CPU sees of a dma-buf, through a mapping of the test's own: OpenCL knows
 * nothing of it.  And what this process holds of the system.
 */
#ifndef TESTS_VM_VIEW_H
#define TESTS_VM_VIEW_H

#include <stddef.h>

struct view {
	int fd;
	int access; /* O_RDWR or O_RDONLY */
	size_t size;
	unsigned char *bytes;
};

/* Maps the dma-buf; @fd is borrowed for the life of the view. */
struct view view_open(int fd, size_t size, int access);
void view_close(struct view *view);

/* Copies into, or out of, the first @size bytes of the dma-buf, bracketed for the CPU. */
void view_write(struct view *view, const void *bytes, size_t size);
void view_read(struct view *view, void *bytes, size_t size);

/* New bytes of malloc(); random ones differ from call to call. */
unsigned char *bytes_zero(size_t size);
unsigned char *bytes_random(size_t size);

/* How many of b[i] are not a[i] ^ KEY. */
size_t bytes_not_transformed(const unsigned char *a, const unsigned char *b, size_t size);

/* Of this process: descriptors and mappings; of the system: dma-bufs (0 where unknown). */
struct held {
	int descriptors, mappings, dmabufs;
};

/* Warm caches first.  Drivers release late: held_since() waits a while for @before. */
struct held held_settled(void);
struct held held_since(const struct held *before);

#endif
