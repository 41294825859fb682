/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CL_IMPORT_TYPE_DMA_BUF_ARM, for devices that read memory through the CPU's
 * page tables: the buffer is mapped here, and DMA_BUF_IOCTL_SYNC brackets each
 * use.  Source: Linux, Documentation/driver-api/dma-buf.rst.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/dma-buf.h>
#include <linux/magic.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "import/kinds/maps.h"
#include "import/import.h"
#include "util/log.h"
#include "util/thread.h"

/* Some programs pass the descriptor instead of the descriptor's address: an error, no crash. */
static int dmabuf_read_descriptor(const void *memory, int *fd)
{
	unsigned int have;

	if (maps_check(memory, sizeof(*fd), IMPORT_READ, &have, NULL))
		return log_errno(EBADF,
				 "no dma-buf descriptor can be read at %p: "
				 "the memory argument is the address of an int",
				 memory);
	memcpy(fd, memory, sizeof(*fd));
	return 0;
}

static int dmabuf_check_descriptor(int fd, size_t size)
{
	struct statfs fs;
	off_t bytes;

	if (fstatfs(fd, &fs))
		return log_errno(EBADF, "descriptor %d: %m", fd);
	if (fs.f_type != DMA_BUF_MAGIC)
		return log_errno(EBADF, "descriptor %d is not a dma-buf", fd);
	bytes = lseek(fd, 0, SEEK_END);
	if (bytes < 0)
		return log_errno(EIO, "size of dma-buf %d: %m", fd);
	if (size > (size_t)bytes)
		return log_errno(ERANGE, "%zu bytes exceed dma-buf %d, which has %lld", size, fd,
				 (long long)bytes);
	return 0;
}

/* Linux maps no unreadable descriptor, and nobody needs one. */
static int dmabuf_check_mode(struct import_region *region)
{
	const int mode = fcntl(region->fd, F_GETFL) & O_ACCMODE;

	if (mode == O_WRONLY)
		return log_errno(EOPNOTSUPP, "the dma-buf's descriptor is O_WRONLY, and cannot be "
					     "mapped: it has to be O_RDWR");
	region->access = IMPORT_READ | (mode == O_RDWR ? IMPORT_WRITE : 0);
	if (mode == O_RDONLY)
		region->read_only = "its descriptor is O_RDONLY, and has to be O_RDWR for writers";
	return 0;
}

/* An exporter of read-only memory maps it for reading, whatever the descriptor's mode is. */
static int dmabuf_map_region(struct import_region *region, bool optional)
{
	const int prot = PROT_READ | (region->access & IMPORT_WRITE ? PROT_WRITE : 0);

	region->addr = mmap(NULL, region->size, prot, MAP_SHARED, region->fd, 0);
	if (region->addr != MAP_FAILED)
		return 0;
	if (errno != ENOMEM && region->access & IMPORT_WRITE) {
		region->addr = mmap(NULL, region->size, PROT_READ, MAP_SHARED, region->fd, 0);
		if (region->addr != MAP_FAILED) {
			region->access = IMPORT_READ;
			region->read_only = "its exporter lets nobody map it for writing";
			return 0;
		}
	}
	if (errno == ENOMEM || errno == EACCES)
		return log_errno(errno, "mmap of %zu bytes of a dma-buf: %m", region->size);
	region->addr = NULL;
	if (optional)
		return 0;
	return log_errno(EOPNOTSUPP, "the exporter of the dma-buf supports no CPU mapping: %m");
}

static int dmabuf_open(const struct import_desc *desc, struct import_region *region)
{
	THREAD_NO_CANCEL();
	int fd = -1, ret = dmabuf_read_descriptor(desc->memory, &fd);

	if (!ret)
		ret = dmabuf_check_descriptor(fd, desc->size);
	if (ret)
		return ret;
	region->fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	if (region->fd < 0)
		return log_errno(errno, "duplicate of descriptor %d: %m", fd);
	descriptor_identify(region->fd, &region->id);
	ret = dmabuf_check_mode(region);
	if (!ret)
		ret = dmabuf_map_region(region, desc->cpu_optional);
	if (ret)
		close(region->fd);
	region->kinds = 1u << IMPORT_OF_DMABUF |
			(region->access & IMPORT_WRITE ? 0u : 1u << IMPORT_UNWRITABLE);
	return ret;
}

static void dmabuf_close(struct import_region *region)
{
	THREAD_NO_CANCEL();

	if (region->addr)
		munmap(region->addr, region->size);
	descriptor_close(region->fd, &region->id);
}

/* The kernel gives no second descriptor of a mapped buffer, whose file cannot be opened. */
static int dmabuf_check_access(const struct import_region *region)
{
	if (descriptor_is(region->fd, &region->id))
		return 0;
	return log_errno(EIO,
			 "the program closed descriptor %d, which an import keeps of its dma-buf: "
			 "the memory cannot be kept consistent any more",
			 region->fd);
}

/*
 * Linux does not check a descriptor's mode here.  An exporter may refuse, and gdmabuf does.  A kernel need not write all of
 * a write-only object, and what a device wrote beside it has to be read first.
 */
static unsigned int dmabuf_sync_flags(const struct import_region *region, unsigned int access)
{
	return access & region->access & IMPORT_WRITE ? DMA_BUF_SYNC_RW : DMA_BUF_SYNC_READ;
}

static int dmabuf_ioctl(const struct import_region *region, unsigned int flags)
{
	struct dma_buf_sync sync = { .flags = flags };
	int ret;

	do
		ret = ioctl(region->fd, DMA_BUF_IOCTL_SYNC, &sync);
	while (ret && (errno == EINTR || errno == EAGAIN));
	return ret;
}

static bool dmabuf_take_begun(struct import_region *region)
{
	unsigned int begun = atomic_load(&region->begun);

	while (begun && !atomic_compare_exchange_weak(&region->begun, &begun, begun - 1))
		;
	return begun;
}

/*
 * Where caches are not coherent with devices, START drops what the application, or another kernel, has written.  So an END
 * writes it back first, as Mali's driver does.  udmabuf refuses END before the first START, and drops nothing then.
 * No other END comes without a START, as of a release or an unmap whose START failed.
 */
static int dmabuf_sync(struct import_region *region, unsigned int access, enum import_edge edge)
{
	const bool begins = edge == IMPORT_BEGIN;
	int ret;

	if (!begins && !dmabuf_take_begun(region))
		return 0;
	ret = dmabuf_check_access(region);
	if (!ret && begins)
		dmabuf_ioctl(region, DMA_BUF_SYNC_END | DMA_BUF_SYNC_WRITE);
	if (!ret && dmabuf_ioctl(region, dmabuf_sync_flags(region, access) |
						 (begins ? DMA_BUF_SYNC_START : DMA_BUF_SYNC_END)))
		ret = log_errno(errno, "DMA_BUF_IOCTL_SYNC %s: %m", begins ? "start" : "end");
	if (!ret == begins)
		atomic_fetch_add(&region->begun, 1);
	return ret;
}

/* POLLIN: the last writer is done; POLLOUT: readers are done as well. */
static short dmabuf_ready_events(unsigned int access)
{
	return access & IMPORT_WRITE ? POLLOUT : POLLIN;
}

const struct import_ops import_dmabuf_ops = {
	.open = dmabuf_open,
	.close = dmabuf_close,
	.sync = dmabuf_sync,
	.check_access = dmabuf_check_access,
	.ready_events = dmabuf_ready_events,
};
