/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The "opaque" descriptors of the fakes of CUDA, RM and OpenCL: a memfd with the address of the
 * memory in the importing process.
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
	void *memory; /* the device's bytes, accessible to the CPU */
	size_t size;
	unsigned char uuid[16]; /* of the device that can import the memory */
	bool any_device;	/* every device can */
	bool cached;		/* the device may cache bytes of the memory */
	bool copied;		/* the device works on a copy */
	bool on_device;		/* the memory is the device's own */
};

/* A new descriptor, which the caller owns; -1 and errno on failure. */
static inline int fake_opaque_create(const struct fake_opaque *opaque)
{
	int fd = memfd_create("opaque", MFD_CLOEXEC);

	if (fd >= 0 && pwrite(fd, opaque, sizeof(*opaque), 0) == sizeof(*opaque))
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

/* At the file's offset: open nodes of the fake RM share a memfd. */
static inline bool fake_opaque_read(int fd, struct fake_opaque *opaque)
{
	return pread(fd, opaque, sizeof(*opaque), lseek(fd, 0, SEEK_CUR)) == sizeof(*opaque) &&
	       opaque->magic == FAKE_OPAQUE_MAGIC;
}

#endif
