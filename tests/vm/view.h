/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The CPU's view of a dma-buf, through a mapping of the test, which OpenCL does not use.  Also
 * counts of the resources that the process holds.
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

/* Maps the dma-buf.  @fd is borrowed for the life of the view. */
struct view view_open(int fd, size_t size, int access);
void view_close(struct view *view);

/* Copy the first @size bytes into or out of the dma-buf, between begin and end of CPU access. */
void view_write(struct view *view, const void *bytes, size_t size);
void view_read(struct view *view, void *bytes, size_t size);

/* New bytes by malloc(); random bytes differ from call to call. */
unsigned char *bytes_zero(size_t size);
unsigned char *bytes_random(size_t size);

/* The number of bytes b[i] that differ from a[i] ^ KEY. */
size_t bytes_not_transformed(const unsigned char *a, const unsigned char *b, size_t size);

/* Descriptors and mappings of the process, and dma-bufs of the system (0 if unknown). */
struct held {
	int descriptors, mappings, dmabufs;
};

/*
 * Call once before the first count, to warm caches.  Drivers release late: held_since() waits a
 * while for the counts of @before.
 */
struct held held_settled(void);
struct held held_since(const struct held *before);

#endif
