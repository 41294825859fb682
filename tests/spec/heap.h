/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The exporters of dma-bufs of an ordinary Linux system, by their kernel interfaces alone: the suite
 * needs no library.  An exporter is a row of a table, or a file of /dev/dma_heap.
 */
#ifndef TESTS_SPEC_HEAP_H
#define TESTS_SPEC_HEAP_H

#include <stddef.h>

struct heap {
	const char *name;
	const char *device; /* a file, or for DRM the driver's name; NULL is any driver */
	/* A dma-buf of @size bytes, whole pages, with O_CLOEXEC and @access; or -errno. */
	int (*create)(const struct heap *heap, size_t size, int access);
};

/* The exporter number @i; NULL behind the last.  Whether the exporter works is shown by create. */
const struct heap *heap_at(size_t i);

/* dma-bufs of the file @device of /dev/dma_heap. */
int heap_create_in(const char *device, size_t size, int access);

/* The size of a dma-buf in bytes, or -errno. */
long long heap_size_of(int fd);

/* Brackets the CPU's use of a mapping for reading and writing: 0 or -errno. */
int heap_begin_cpu(int fd);
int heap_end_cpu(int fd);

/* heap_drm.c: "dumb" buffers, through PRIME. */
int heap_create_drm(const struct heap *heap, size_t size, int access);

/* heap_fake.c: of tests/stub/libfakedmabuf.so, if the library is preloaded. */
int heap_create_fake(const struct heap *heap, size_t size, int access);

#endif /* TESTS_SPEC_HEAP_H */
