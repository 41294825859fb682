/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of each kind to try drivers with: see import_sample_kind() in import.h. */
#include <errno.h>
#include <fcntl.h>
#include <linux/dma-heap.h>
#include <linux/udmabuf.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <linux/magic.h>

#include "log.h"
#include "ops.h"

#define DMABUF_LARGEST (64 << 20) /* bytes: all of a dma-buf's memory is allocated */

struct kind_sample {
	struct import_region region; /* first */
	size_t mapped;		     /* bytes */
};

static void kind_sample_unpin(struct import_region *region)
{
	munmap(region->addr, ((struct kind_sample *)region)->mapped);
}

static const struct import_ops kind_sample_ops = { .name = "sample", .unpin = kind_sample_unpin };

/* A file without a name, on a disk: memory of tmpfs is another kind. */
static int file_in(const char *directory)
{
	struct statfs fs;
	int fd;

	if (!directory || directory[0] != '/' || statfs(directory, &fs) || fs.f_type == TMPFS_MAGIC)
		return -1;
	fd = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (fd < 0) {
		char name[4096];

		snprintf(name, sizeof(name), "%s/climport-XXXXXX", directory);
		fd = mkostemp(name, O_CLOEXEC);
		if (fd >= 0)
			unlink(name);
	}
	return fd;
}

static int file_create(void)
{
	const char *const directories[] = { secure_getenv("XDG_CACHE_HOME"), "/tmp", "/var/tmp",
					    secure_getenv("HOME") };
	int fd = -1;

	for (size_t i = 0; i < sizeof(directories) / sizeof(directories[0]) && fd < 0; i++)
		fd = file_in(directories[i]);
	return fd;
}

static int udmabuf_create(size_t size)
{
	struct udmabuf_create create = { .flags = UDMABUF_FLAGS_CLOEXEC, .size = size };
	int device = open("/dev/udmabuf", O_RDWR | O_CLOEXEC), memory, fd = -1;

	if (device < 0)
		return -1;
	memory = memfd_create("climport", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	create.memfd = memory;
	if (memory >= 0 && !ftruncate(memory, size) && !fcntl(memory, F_ADD_SEALS, F_SEAL_SHRINK))
		fd = ioctl(device, UDMABUF_CREATE, &create);
	if (memory >= 0)
		close(memory);
	close(device);
	return fd;
}

static int heap_create(size_t size)
{
	struct dma_heap_allocation_data data = { .len = size, .fd_flags = O_RDWR | O_CLOEXEC };
	int heap = open("/dev/dma_heap/system", O_RDONLY | O_CLOEXEC), ret;

	if (heap < 0)
		return -1;
	ret = ioctl(heap, DMA_HEAP_IOCTL_ALLOC, &data);
	close(heap);
	return ret ? -1 : (int)data.fd;
}

/* The kind's descriptor of @size bytes; -1: none can be had. */
static int kind_descriptor(enum import_kind kind, size_t size)
{
	int fd = -1;

	switch (kind) {
	case IMPORT_FILE_PRIVATE:
	case IMPORT_FILE_SHARED:
		fd = file_create();
		break;
	case IMPORT_SHMEM:
		fd = memfd_create("climport", MFD_CLOEXEC);
		break;
	case IMPORT_OF_DMABUF:
		if (size > DMABUF_LARGEST)
			return -1;
		fd = udmabuf_create(size);
		return fd < 0 ? heap_create(size) : fd;
	default:
		break;
	}
	if (fd >= 0 && ftruncate(fd, size)) {
		close(fd);
		return -1;
	}
	return fd;
}

static int kind_map(enum import_kind kind, struct kind_sample *s)
{
	const bool is_private = kind == IMPORT_ANONYMOUS || kind == IMPORT_FILE_PRIVATE;
	int flags = (is_private ? MAP_PRIVATE : MAP_SHARED) | MAP_NORESERVE, fd = -1;

	if (kind == IMPORT_ANONYMOUS)
		flags |= MAP_ANONYMOUS;
	else
		fd = kind_descriptor(kind, s->mapped);
	if (kind != IMPORT_ANONYMOUS && fd < 0)
		return -EOPNOTSUPP;
	s->region.addr = mmap(NULL, s->mapped, PROT_READ | PROT_WRITE, flags, fd, 0);
	if (fd >= 0)
		close(fd);
	return s->region.addr == MAP_FAILED ? -ENOMEM : 0;
}

int import_sample_kind(enum import_kind kind, size_t size, struct import_region **region)
{
	size_t page = sysconf(_SC_PAGESIZE);
	struct kind_sample *s = calloc(1, sizeof(*s));
	int ret;

	if (!s)
		return log_errno(ENOMEM, "no memory for a sample");
	s->mapped = (size + page - 1) / page * page;
	s->region.ops = &kind_sample_ops;
	s->region.refs = 1;
	s->region.size = size;
	s->region.fd = -1;
	s->region.access = s->region.wanted = IMPORT_READ | IMPORT_WRITE;
	ret = kind_map(kind, s);
	if (ret) {
		free(s);
		return ret;
	}
	*region = &s->region;
	return 0;
}
