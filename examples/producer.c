/* SPDX-License-Identifier: Apache-2.0 */
#include "producer.h"

#include <CL/climport.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/dma-buf.h>
#include <linux/dma-heap.h>
#include <linux/udmabuf.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>
#include <xf86drm.h>

enum { CARDS = 64, DUMB_PITCH = 4096 };

static size_t producer_whole_pages(size_t size)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	return (size + page - 1) / page * page;
}

static int producer_check_device(const struct producer *p, char *why, size_t why_size)
{
	int fd = open(p->device, O_RDWR | O_CLOEXEC);

	if (fd < 0) {
		int error = errno;

		snprintf(why, why_size, "%s: %s", p->device, strerror(error));
		return -error;
	}
	close(fd);
	return 0;
}

/* udmabuf: pages of a memfd. */

static int udmabuf_check(const struct producer *p, int access, char *why, size_t why_size)
{
	if (access != O_RDWR) {
		snprintf(why, why_size, "udmabuf makes no read-only descriptors");
		return -EOPNOTSUPP;
	}
	return producer_check_device(p, why, why_size);
}

/* A memfd that cannot shrink: udmabuf takes no other memfd. */
static int sealed_memfd(size_t size)
{
	int fd = memfd_create("producer", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0)
		return -errno;
	if (ftruncate(fd, (off_t)size) || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK)) {
		int error = errno;

		close(fd);
		return -error;
	}
	return fd;
}

static int producer_udmabuf_create(const struct producer *p, size_t size, int access)
{
	struct udmabuf_create create = { .flags = UDMABUF_FLAGS_CLOEXEC, .size = size };
	int device, memfd, fd;

	if (access != O_RDWR)
		return -EOPNOTSUPP;
	device = open(p->device, O_RDWR | O_CLOEXEC);
	if (device < 0)
		return -errno;
	fd = memfd = sealed_memfd(size);
	if (memfd < 0)
		goto close_device;
	create.memfd = (__u32)memfd;
	fd = ioctl(device, UDMABUF_CREATE, &create);
	if (fd < 0)
		fd = -errno;
	close(memfd); /* the dma-buf keeps the pages */
close_device:
	close(device);
	return fd;
}

/* dma-heap: pages that the kernel allocates for devices. */

static int heap_check(const struct producer *p, int access, char *why, size_t why_size)
{
	(void)access;
	return producer_check_device(p, why, why_size);
}

static int producer_heap_create(const struct producer *p, size_t size, int access)
{
	struct dma_heap_allocation_data data = {
		.len = size,
		.fd_flags = (__u32)access | O_CLOEXEC,
	};
	int error, heap = open(p->device, O_RDONLY | O_CLOEXEC);

	if (heap < 0)
		return -errno;
	error = ioctl(heap, DMA_HEAP_IOCTL_ALLOC, &data) ? -errno : 0;
	close(heap);
	return error ? error : (int)data.fd;
}

/* DRM: "dumb" buffers, which need no knowledge of the GPU, through PRIME. */

static bool card_usable(int card, const char *driver)
{
	drmVersionPtr version = drmGetVersion(card);
	uint64_t dumb = 1, prime = 0; /* drivers without modes, like vgem, give no answer */
	bool wanted = version && (!driver || !strcmp(version->name, driver));

	drmFreeVersion(version);
	drmGetCap(card, DRM_CAP_DUMB_BUFFER, &dumb);
	return wanted && dumb && !drmGetCap(card, DRM_CAP_PRIME, &prime) &&
	       (prime & DRM_PRIME_CAP_EXPORT);
}

static int card_open(const char *driver)
{
	char path[32];

	for (int i = 0; i < CARDS; i++) {
		int card;

		snprintf(path, sizeof(path), "/dev/dri/card%d", i);
		card = open(path, O_RDWR | O_CLOEXEC);
		if (card < 0)
			continue;
		if (card_usable(card, driver))
			return card;
		close(card);
	}
	return -ENODEV;
}

static int drm_check(const struct producer *p, int access, char *why, size_t why_size)
{
	int card = card_open(p->device);

	(void)access;
	if (card >= 0) {
		close(card);
		return 0;
	}
	snprintf(why, why_size, "no %s%sDRM device in /dev/dri with dumb buffers",
		 p->device ? p->device : "", p->device ? " " : "");
	return card;
}

static int drm_create(const struct producer *p, size_t size, int access)
{
	struct drm_mode_create_dumb dumb = {
		.width = DUMB_PITCH / 4,
		.height = (__u32)((size + DUMB_PITCH - 1) / DUMB_PITCH),
		.bpp = 32,
	};
	struct drm_mode_destroy_dumb destroy;
	int fd = -1, error, card = card_open(p->device);

	if (card < 0)
		return card;
	error = drmIoctl(card, DRM_IOCTL_MODE_CREATE_DUMB, &dumb) ? -errno : 0;
	if (error)
		goto close_card;
	if (drmPrimeHandleToFD(card, dumb.handle, DRM_CLOEXEC | (access == O_RDWR ? DRM_RDWR : 0),
			       &fd))
		error = -errno;
	destroy.handle = dumb.handle; /* the dma-buf keeps the memory */
	drmIoctl(card, DRM_IOCTL_MODE_DESTROY_DUMB, &destroy);
close_card:
	close(card);
	return error ? error : fd;
}

/* gdmabuf: pages of this process, which the dma-buf keeps after the process unmaps the pages. */

static int gdmabuf_check(const struct producer *p, int access, char *why, size_t why_size)
{
	(void)access;
	return producer_check_device(p, why, why_size);
}

static int gdmabuf_create(const struct producer *p, size_t size, int access)
{
	unsigned int flags = access == O_RDONLY ? CLIMPORT_READ_ONLY : 0;
	struct climport_dmabuf dmabuf;
	void *memory;
	int error;

	(void)p;
	if (access == O_WRONLY)
		return -EOPNOTSUPP;
	memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		return -errno;
	error = climport_export_dmabuf(memory, size, flags, &dmabuf, sizeof(dmabuf));
	munmap(memory, size);
	return error ? error : dmabuf.fd;
}

static const struct producer producers[] = {
	{ "udmabuf", "pages of a memfd", "/dev/udmabuf", udmabuf_check, producer_udmabuf_create },
	{ "dma-heap", "pages of the system heap", "/dev/dma_heap/system", heap_check,
	  producer_heap_create },
	{ "gdmabuf", "pages of mmap()", "/dev/gdmabuf", gdmabuf_check, gdmabuf_create },
	{ "vgem", "a DRM buffer of vgem", "vgem", drm_check, drm_create },
	{ "virtio-gpu", "a DRM buffer of virtio-gpu", "virtio_gpu", drm_check, drm_create },
	{ "drm", "a DRM buffer of any driver", NULL, drm_check, drm_create },
};

const struct producer *producer_at(size_t i)
{
	return i < sizeof(producers) / sizeof(producers[0]) ? &producers[i] : NULL;
}

const struct producer *producer_find(const char *name)
{
	const struct producer *p;

	for (size_t i = 0; (p = producer_at(i)); i++)
		if (!strcmp(p->name, name))
			return p;
	return NULL;
}

int producer_check(const struct producer *p, int access, char *why, size_t why_size)
{
	return p->check(p, access, why, why_size);
}

int producer_create(const struct producer *p, size_t size, int access)
{
	return p->create(p, producer_whole_pages(size), access);
}

long long producer_size(int fd)
{
	off_t size = lseek(fd, 0, SEEK_END);

	return size < 0 ? -errno : size;
}

static int cpu_sync(int fd, int access, __u64 phase)
{
	struct dma_buf_sync sync = { .flags = phase };

	if (access != O_WRONLY)
		sync.flags |= DMA_BUF_SYNC_READ;
	if (access != O_RDONLY)
		sync.flags |= DMA_BUF_SYNC_WRITE;
	while (ioctl(fd, DMA_BUF_IOCTL_SYNC, &sync))
		if (errno != EINTR && errno != EAGAIN)
			return -errno;
	return 0;
}

int producer_cpu_begin(int fd, int access)
{
	return cpu_sync(fd, access, DMA_BUF_SYNC_START);
}

int producer_cpu_end(int fd, int access)
{
	return cpu_sync(fd, access, DMA_BUF_SYNC_END);
}
