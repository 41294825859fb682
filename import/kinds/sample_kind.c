/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of each kind to try drivers with: see import_sample_kind() in import.h. */
#include <errno.h>
#include <fcntl.h>
#include <linux/dma-heap.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <linux/magic.h>

#include "import/kinds/udmabuf.h"
#include "import/import.h"
#include "util/log.h"
#include "util/shortage.h"
#include "util/thread.h"

#define DMABUF_LARGEST (64 << 20) /* bytes: all of a dma-buf's memory is allocated */
#define FILE_LARGEST (64 << 20)	  /* of a file on a disk */

struct kind_sample {
	struct import_region region; /* first */
	void *mapping;
	size_t mapped; /* bytes */
	void *first;   /* page of the sample */
	int fd; /* -1, or a memfd: udmabuf's exporter looks for the descriptor of shared memory */
};

static void sample_kind_close(struct import_region *region)
{
	struct kind_sample *s = (struct kind_sample *)region;
	THREAD_NO_CANCEL();

	munmap(s->mapping, s->mapped);
	if (s->fd >= 0)
		close(s->fd);
}

static const struct import_ops kind_sample_ops = { .close = sample_kind_close };

/* Whole pages. */
static size_t sample_bytes(const struct import_sample_want *want)
{
	const size_t page = sysconf(_SC_PAGESIZE);

	return (want->offset + want->size + page - 1) / page * page;
}

/* For file systems without O_TMPFILE.  A signal waits until the name is gone. */
static int sample_named_file_in(const char *directory)
{
	sigset_t all, before;
	char *name;
	int fd;

	if (asprintf(&name, "%s/climport-XXXXXX", directory) < 0)
		return -ENOMEM;
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	fd = mkostemp(name, O_CLOEXEC);
	if (fd < 0)
		fd = -errno;
	else
		unlink(name);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	free(name);
	return fd;
}

/* A file without a name, on a disk, or a negative errno.  tmpfs is a kind apart. */
static int sample_file_in(const char *directory)
{
	struct statfs fs;
	int fd;

	if (!directory || directory[0] != '/' || statfs(directory, &fs) || fs.f_type == TMPFS_MAGIC)
		return -EOPNOTSUPP;
	fd = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	return fd < 0 ? sample_named_file_in(directory) : fd;
}

/*
 * On a full disk, a store into a hole of a shared mapping ends the program: blocks are allocated
 * before the stores.  A negative errno if the disk has no room.
 */
static int sample_file_allocate(int fd, const struct import_sample_want *want)
{
	static const char zeros[IMPORT_SAMPLE_TOUCHED];

	if (ftruncate(fd, (off_t)sample_bytes(want)))
		return -errno;
	if (!want->is_sparse)
		return -posix_fallocate(fd, 0, (off_t)sample_bytes(want));
	for (size_t i = 0; i < IMPORT_SAMPLE_PLACES; i++)
		if (pwrite(fd, zeros, sizeof(zeros), (off_t)(want->offset + want->at[i])) !=
		    sizeof(zeros))
			return errno ? -errno : -ENOSPC;
	return 0;
}

/* In the first directory with room. */
static int sample_file_create(const struct import_sample_want *want)
{
	const char *const directories[] = { secure_getenv("XDG_CACHE_HOME"), "/tmp", "/var/tmp",
					    secure_getenv("HOME") };
	int ret = -EOPNOTSUPP;

	if (!want->is_sparse && want->kind == IMPORT_FILE_SHARED && want->size > FILE_LARGEST)
		return -EOPNOTSUPP;
	for (size_t i = 0; i < sizeof(directories) / sizeof(directories[0]); i++) {
		int fd = sample_file_in(directories[i]);

		if (fd == -EMFILE || fd == -ENFILE)
			ret = fd;
		if (fd < 0)
			continue;
		ret = sample_file_allocate(fd, want);
		if (!ret)
			return fd;
		close(fd);
	}
	return ret;
}

/* Sealed, as udmabuf wants memory. */
static int sample_shmem_create(size_t size)
{
	int fd = memfd_create("climport", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0)
		return -errno;
	if (!ftruncate(fd, (off_t)size) && !fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK))
		return fd;
	close(fd);
	return -ENOMEM;
}

static int sample_udmabuf_create(size_t size)
{
	int memory = sample_shmem_create(size), fd;

	if (memory < 0)
		return memory;
	fd = udmabuf_create(memory, 0, size);
	close(memory);
	return fd;
}

static int sample_heap_create(size_t size)
{
	struct dma_heap_allocation_data data = { .len = size, .fd_flags = O_RDWR | O_CLOEXEC };
	int heap = open("/dev/dma_heap/system", O_RDONLY | O_CLOEXEC), ret;

	if (heap < 0)
		return -errno;
	ret = ioctl(heap, DMA_HEAP_IOCTL_ALLOC, &data) ? -errno : 0;
	close(heap);
	return ret ? ret : (int)data.fd;
}

/* A shortage says nothing about what the process can make. */
static int sample_dmabuf_create(size_t size)
{
	int fd;

	if (size > DMABUF_LARGEST)
		return -EOPNOTSUPP;
	fd = sample_udmabuf_create(size);
	if (fd >= 0 || shortage_is(fd))
		return fd;
	fd = sample_heap_create(size);
	return fd >= 0 || shortage_is(fd) ? fd : -EOPNOTSUPP;
}

int import_sample_dmabuf(size_t size, int *fd)
{
	*fd = sample_dmabuf_create(size);
	return *fd < 0 ? *fd : 0;
}

/* The kind's descriptor, or a negative errno. */
static int sample_kind_descriptor(const struct import_sample_want *want)
{
	switch (want->kind) {
	case IMPORT_FILE_PRIVATE:
	case IMPORT_FILE_SHARED:
		return sample_file_create(want);
	case IMPORT_SHMEM:
	case IMPORT_SHMEM_PRIVATE:
		return sample_shmem_create(sample_bytes(want));
	case IMPORT_OF_DMABUF:
		return sample_dmabuf_create(sample_bytes(want));
	default:
		return -EOPNOTSUPP;
	}
}

/* IMPORT_UNWRITABLE and IMPORT_SEVERAL say how anonymous memory is mapped. */
static bool sample_is_anonymous(enum import_kind kind)
{
	return kind == IMPORT_ANONYMOUS || kind == IMPORT_UNWRITABLE || kind == IMPORT_SEVERAL;
}

static bool sample_is_private(enum import_kind kind)
{
	return sample_is_anonymous(kind) || kind == IMPORT_FILE_PRIVATE ||
	       kind == IMPORT_SHMEM_PRIVATE || kind == IMPORT_HUGE;
}

static size_t sample_huge_page_size(void)
{
	FILE *file = fopen("/proc/meminfo", "re");
	size_t kib = 0;
	char line[128];

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "Hugepagesize: %zu", &kib) == 1)
			break;
	if (file)
		fclose(file);
	return kib * 1024;
}

/* Reserved: a store never finds the pool empty. */
static int sample_huge_create(const struct import_sample_want *want, struct kind_sample *s)
{
	const size_t page = sysconf(_SC_PAGESIZE), huge = sample_huge_page_size();
	int flags = sample_is_private(want->kind) ? MAP_PRIVATE : MAP_SHARED;
	char *mapping;

	if (!huge)
		return -EOPNOTSUPP;
	s->mapped = (page + s->mapped + huge - 1) / huge * huge;
	mapping = mmap(NULL, s->mapped, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS | MAP_HUGETLB,
		       -1, 0);
	if (mapping == MAP_FAILED)
		return -ENOMEM;
	s->mapping = mapping;
	s->first = mapping + page;
	return 0;
}

/*
 * Maps at an odd page, so that the memory is aligned to a page and no more.  A reservation, larger
 * by a page, provides the address.
 */
static int sample_kind_map(enum import_kind kind, int fd, struct kind_sample *s)
{
	const size_t page = sysconf(_SC_PAGESIZE);
	int flags = (sample_is_private(kind) ? MAP_PRIVATE : MAP_SHARED) | MAP_NORESERVE;
	char *room = mmap(NULL, s->mapped + page, PROT_NONE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	char *at = room;

	if (room == MAP_FAILED)
		return -ENOMEM;
	if ((uintptr_t)room & page) {
		munmap(room + s->mapped, page);
	} else {
		munmap(room, page);
		at += page;
	}
	if (fd < 0)
		flags |= MAP_ANONYMOUS;
	s->first = s->mapping =
		mmap(at, s->mapped, PROT_READ | PROT_WRITE, flags | MAP_FIXED, fd, 0);
	if (s->mapping != MAP_FAILED)
		return 0;
	munmap(at, s->mapped);
	return -ENOMEM;
}

/* Makes two mappings of the sample, or takes the permission to write away. */
static int sample_kind_protect(enum import_kind kind, struct kind_sample *s)
{
	const size_t page = sysconf(_SC_PAGESIZE);
	int ret = 0;

	if (kind == IMPORT_UNWRITABLE)
		ret = mprotect(s->mapping, s->mapped, PROT_READ);
	if (kind == IMPORT_SEVERAL)
		ret = madvise((char *)s->mapping + page, s->mapped - page, MADV_DONTFORK);
	if (!ret)
		return 0;
	munmap(s->mapping, s->mapped);
	return -ENOMEM;
}

static int sample_kind_create(const struct import_sample_want *want, struct kind_sample *s)
{
	int fd = -1, ret;

	if (want->kind == IMPORT_HUGE || want->kind == IMPORT_HUGE_SHARED)
		return sample_huge_create(want, s);
	if (!sample_is_anonymous(want->kind)) {
		fd = sample_kind_descriptor(want);
		if (fd < 0)
			return fd;
	}
	ret = sample_kind_map(want->kind, fd, s);
	if (!ret && want->kind == IMPORT_SHMEM)
		s->fd = fd;
	else if (fd >= 0)
		close(fd);
	return ret ? ret : sample_kind_protect(want->kind, s);
}

int import_sample_kind(const struct import_sample_want *want, struct import_region **region)
{
	struct kind_sample *s = calloc(1, sizeof(*s));
	int ret;

	if (!s)
		return log_errno(ENOMEM, "no memory for a sample");
	s->mapped = sample_bytes(want);
	s->fd = -1;
	ret = sample_kind_create(want, s);
	if (ret) {
		free(s);
		return ret;
	}
	import_region_init(&s->region, &kind_sample_ops, (char *)s->first + want->offset,
			   want->size);
	*region = &s->region;
	return 0;
}
