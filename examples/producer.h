/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes real dma-bufs, by every producer of an ordinary Linux system: udmabuf, the system
 * dma-heap, DRM "dumb" buffers through PRIME, and gdmabuf.  A producer is a row of one table.
 *
 * The module knows no OpenCL.  Functions return 0 or a descriptor, or -errno.  All functions may
 * sleep, and may be called from any thread.
 */
#ifndef EXAMPLES_PRODUCER_H
#define EXAMPLES_PRODUCER_H

#include <stddef.h>

struct producer {
	const char *name;
	const char *memory; /* the memory of the dma-bufs, in words */
	const char *device; /* the file, or for DRM the driver's name; NULL is any driver */
	int (*check)(const struct producer *p, int access, char *why, size_t why_size);
	int (*create)(const struct producer *p, size_t size, int access);
};

/* The table's row @i, or NULL after the last one. */
const struct producer *producer_at(size_t i);

/* The row called @name, or NULL. */
const struct producer *producer_find(const char *name);

/*
 * 0 if @p works here and can give descriptors of @access, which is O_RDWR or O_RDONLY;
 * else -errno, with the reason as a sentence in @why.
 */
int producer_check(const struct producer *p, int access, char *why, size_t why_size);

/*
 * A new dma-buf of at least @size bytes (in whole pages), filled with zeros.  The
 * descriptor is the caller's, with O_CLOEXEC; closing its last copy frees the memory.
 * -EOPNOTSUPP if @p has no such @access.
 */
int producer_create(const struct producer *p, size_t size, int access);

/* The size of the dma-buf in bytes, or -errno. */
long long producer_size(int fd);

/*
 * Brackets the CPU's use of a mapping of the dma-buf, as linux/dma-buf.h asks for.
 * @access is O_RDONLY, O_WRONLY or O_RDWR, equal in begin and end.
 */
int producer_cpu_begin(int fd, int access);
int producer_cpu_end(int fd, int access);

#endif
