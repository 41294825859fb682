/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the fakes of CUDA, Vulkan and OpenCL pass each other as an "opaque" descriptor: a
 * memfd that tells where the memory is in this process.
 */
#ifndef FAKE_OPAQUE_H
#define FAKE_OPAQUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#define FAKE_OPAQUE_MAGIC 0x6f70617175656664u

struct fake_opaque {
	uint64_t magic;
	void *memory; /* what the device sees; the CPU can touch it */
	size_t size;
	unsigned char uuid[16]; /* of the device that can take it */
	bool cached;		/* the device may keep what it has read of it */
};

/* A new descriptor, the caller's; -1 and errno on failure. */
static inline int fake_opaque_create(const struct fake_opaque *opaque)
{
	int fd = memfd_create("opaque", MFD_CLOEXEC);

	if (fd >= 0 && pwrite(fd, opaque, sizeof(*opaque), 0) == sizeof(*opaque))
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

static inline bool fake_opaque_read(int fd, struct fake_opaque *opaque)
{
	return pread(fd, opaque, sizeof(*opaque), 0) == sizeof(*opaque) &&
	       opaque->magic == FAKE_OPAQUE_MAGIC;
}

#endif
