/* SPDX-License-Identifier: Apache-2.0 */
#include "heap.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <linux/dma-buf.h>
#include <linux/dma-heap.h>
#include <linux/gdmabuf.h>
#include <linux/udmabuf.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

/* A memfd that cannot shrink: udmabuf takes no other memfd. */
static int heap_sealed_memfd(size_t size)
{
	int fd = memfd_create("climport-conform", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0)
		return -errno;
	if (ftruncate(fd, (off_t)size) || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK)) {
		int error = errno;

		close(fd);
		return -error;
	}
	return fd;
}

static int heap_create_udmabuf(const struct heap *heap, size_t size, int access)
{
	struct udmabuf_create create = { .flags = UDMABUF_FLAGS_CLOEXEC, .size = size };
	int device, memfd, fd;

	if (access != O_RDWR)
		return -EOPNOTSUPP;
	device = open(heap->device, O_RDWR | O_CLOEXEC);
	if (device < 0)
		return -errno;
	fd = memfd = heap_sealed_memfd(size);
	if (memfd >= 0) {
		create.memfd = (__u32)memfd;
		fd = ioctl(device, UDMABUF_CREATE, &create);
		if (fd < 0)
			fd = -errno;
		close(memfd); /* the dma-buf keeps the pages */
	}
	close(device);
	return fd;
}

int heap_create_in(const char *device, size_t size, int access)
{
	struct dma_heap_allocation_data data = {
		.len = size,
		.fd_flags = (__u32)access | O_CLOEXEC,
	};
	int error, heap = open(device, O_RDONLY | O_CLOEXEC);

	if (heap < 0)
		return -errno;
	error = ioctl(heap, DMA_HEAP_IOCTL_ALLOC, &data) ? -errno : 0;
	close(heap);
	return error ? error : (int)data.fd;
}

static int heap_create_by_file(const struct heap *heap, size_t size, int access)
{
	return heap_create_in(heap->device, size, access);
}

/* Pages of this process, which the dma-buf keeps after the process unmaps the pages. */
static int heap_create_gdmabuf(const struct heap *heap, size_t size, int access)
{
	struct gdmabuf_export export = {
		.size = sizeof(export),
		.flags = access == O_RDONLY ? GDMABUF_READ_ONLY : 0,
		.length = size,
	};
	int error, device = open(heap->device, O_RDWR | O_CLOEXEC);
	void *memory;

	if (device < 0)
		return -errno;
	memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED) {
		close(device);
		return -ENOMEM;
	}
	export.address = (uintptr_t)memory;
	error = ioctl(device, GDMABUF_EXPORT_HOST, &export) ? -errno : 0;
	munmap(memory, size);
	close(device);
	return error ? error : export.out_fd;
}

static const struct heap heaps[] = {
	{ "fake", NULL, heap_create_fake },
	{ "udmabuf", "/dev/udmabuf", heap_create_udmabuf },
	{ "dma-heap", "/dev/dma_heap/system", heap_create_by_file },
	{ "gdmabuf", "/dev/gdmabuf", heap_create_gdmabuf },
	{ "vgem", "vgem", heap_create_drm },
	{ "virtio-gpu", "virtio_gpu", heap_create_drm },
	{ "drm", NULL, heap_create_drm },
};

/* A board's other heaps. */
static const struct heap *heap_of_file(size_t i)
{
	static struct heap heap = { .create = heap_create_by_file };
	static glob_t files;

	if (!files.gl_pathv && glob("/dev/dma_heap/*", 0, NULL, &files))
		return NULL;
	if (i >= files.gl_pathc)
		return NULL;
	heap.name = heap.device = files.gl_pathv[i];
	return &heap;
}

const struct heap *heap_at(size_t i)
{
	enum { ROWS = sizeof(heaps) / sizeof(heaps[0]) };

	return i < ROWS ? &heaps[i] : heap_of_file(i - ROWS);
}

long long heap_size_of(int fd)
{
	off_t size = lseek(fd, 0, SEEK_END);

	return size < 0 ? -errno : size;
}

static int heap_sync_cpu(int fd, __u64 phase)
{
	struct dma_buf_sync sync = { .flags = phase | DMA_BUF_SYNC_RW };

	while (ioctl(fd, DMA_BUF_IOCTL_SYNC, &sync))
		if (errno != EINTR && errno != EAGAIN)
			return -errno;
	return 0;
}

int heap_begin_cpu(int fd)
{
	return heap_sync_cpu(fd, DMA_BUF_SYNC_START);
}

int heap_end_cpu(int fd)
{
	return heap_sync_cpu(fd, DMA_BUF_SYNC_END);
}
