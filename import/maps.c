/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PROCMAP_QUERY (Linux 6.11) answers for one mapping in one ioctl; older
 * kernels print /proc/self/maps, which costs by the number of mappings.
 *
 * The other ways know less or cost more: msync(MS_ASYNC) sees holes but not
 * protection, mincore() and MADV_POPULATE_* cost by the page
 * (docs/architecture.md has the figures).
 */
#include "maps.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "import.h"
#include "log.h"

/* linux/fs.h of 6.11; Debian 12's is older. */
struct procmap_query_v1 {
	uint64_t size;
	uint64_t query_flags;
	uint64_t query_addr;
	uint64_t vma_start;
	uint64_t vma_end;
	uint64_t vma_flags;
	uint64_t vma_page_size;
	uint64_t vma_offset;
	uint64_t inode;
	uint32_t dev_major;
	uint32_t dev_minor;
	uint32_t vma_name_size;
	uint32_t build_id_size;
	uint64_t vma_name_addr;
	uint64_t build_id_addr;
};

#define PROCMAP_QUERY_V1 _IOWR('f', 17, struct procmap_query_v1)
#define VMA_READABLE 0x01
#define VMA_WRITABLE 0x02
#define VMA_COVERING_OR_NEXT 0x10

struct mapping {
	uintptr_t start, end;
	unsigned int access;
};

/*
 * The descriptor of /proc/self/maps stays with the process that opened it, so
 * it lives in a page that the kernel wipes in a child.  0 is "not open".
 */
static _Atomic(atomic_int *) query_fd_page;
static atomic_bool query_missing;

static atomic_int *query_fd_slot(void)
{
	atomic_int *page = atomic_load_explicit(&query_fd_page, memory_order_acquire),
		   *expected = NULL;
	size_t size = sysconf(_SC_PAGESIZE);

	if (page)
		return page;
	page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED)
		return NULL;
	if (madvise(page, size, MADV_WIPEONFORK) ||
	    !atomic_compare_exchange_strong(&query_fd_page, &expected, page)) {
		munmap(page, size);
		return expected;
	}
	return page;
}

/* Opens the maps anew unless another thread already replaced @stale. */
static int query_fd_open(atomic_int *slot, int stale)
{
	int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return -1;
	if (fd == 0) { /* 0 means "not open" in the slot */
		fd = fcntl(0, F_DUPFD_CLOEXEC, 3);
		close(0);
		if (fd < 0)
			return -1;
	}
	if (!atomic_compare_exchange_strong(slot, &stale, fd)) {
		close(fd);
		return stale;
	}
	return fd;
}

static int query_once(int fd, uintptr_t at, struct mapping *found)
{
	struct procmap_query_v1 query = {
		.size = sizeof(query),
		.query_addr = at,
		.query_flags = VMA_COVERING_OR_NEXT,
	};

	if (ioctl(fd, PROCMAP_QUERY_V1, &query))
		return -errno;
	found->start = query.vma_start;
	found->end = query.vma_end;
	found->access = (query.vma_flags & VMA_READABLE ? IMPORT_READ : 0) |
			(query.vma_flags & VMA_WRITABLE ? IMPORT_WRITE : 0);
	return 0;
}

/*
 * The first mapping that ends after @at: 0, -ENOENT if there is none, or
 * -EOPNOTSUPP.  A program may close descriptors that it does not know, and the
 * number may since be another file's: then the maps are opened once more, and
 * the number is left alone.
 */
static int query_mapping(uintptr_t at, struct mapping *found)
{
	atomic_int *slot = query_fd_slot();
	int fd, ret;

	if (!slot)
		return -EOPNOTSUPP;
	fd = atomic_load_explicit(slot, memory_order_acquire);
	ret = fd ? query_once(fd, at, found) : -EBADF;
	if (!ret || ret == -ENOENT)
		return ret;
	fd = query_fd_open(slot, fd);
	ret = fd < 0 ? -EOPNOTSUPP : query_once(fd, at, found);
	if (!ret || ret == -ENOENT)
		return ret;
	atomic_store_explicit(&query_missing, true, memory_order_relaxed);
	return -EOPNOTSUPP;
}

/* One line of the maps: "start-end rwxp ..." */
static bool line_parse(const char *line, struct mapping *found)
{
	char read, write;

	if (sscanf(line, "%lx-%lx %c%c", &found->start, &found->end, &read, &write) != 4)
		return false;
	found->access = (read == 'r' ? IMPORT_READ : 0) | (write == 'w' ? IMPORT_WRITE : 0);
	return true;
}

/* The state of a walk over the mappings of a range. */
struct walk {
	uintptr_t at, end; /* what is left to be found */
	unsigned int need, have;
};

/* 1: go on, 0: the range is covered, or a negative errno. */
static int walk_step(struct walk *walk, const struct mapping *m)
{
	if (m->start > walk->at)
		return log_errno(EFAULT, "host memory at %#lx is not mapped", walk->at);
	walk->have &= m->access;
	if (walk->need & ~m->access)
		return log_errno(EACCES, "host memory at %#lx is mapped without %s access",
				 walk->at,
				 walk->need & ~m->access & IMPORT_READ ? "read" : "write");
	walk->at = m->end;
	return walk->at < walk->end;
}

static int walk_file(struct walk *walk)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	struct mapping m = { 0 };
	char *line = NULL;
	size_t room = 0;
	int ret = 1;

	if (!maps)
		return log_errno(EIO, "cannot read /proc/self/maps: %m");
	while (ret > 0 && getline(&line, &room, maps) > 0)
		if (line_parse(line, &m) && m.end > walk->at)
			ret = walk_step(walk, &m);
	free(line);
	fclose(maps);
	return ret > 0 ? log_errno(EFAULT, "host memory at %#lx is not mapped", walk->at) : ret;
}

static int walk_queries(struct walk *walk)
{
	struct mapping m = { 0 };
	int ret;

	do {
		ret = query_mapping(walk->at, &m);
		if (ret == -ENOENT)
			return log_errno(EFAULT, "host memory at %#lx is not mapped", walk->at);
		if (ret)
			return ret;
		ret = walk_step(walk, &m);
	} while (ret > 0);
	return ret;
}

int maps_check(const void *addr, size_t size, unsigned int need, unsigned int *have)
{
	uintptr_t start = (uintptr_t)addr;
	struct walk walk = { start, start + size, need, IMPORT_READ | IMPORT_WRITE };
	int ret = -EOPNOTSUPP;

	if (walk.end < start)
		return log_errno(ERANGE, "%zu bytes at %p leave the address space", size, addr);
	if (!atomic_load_explicit(&query_missing, memory_order_relaxed))
		ret = walk_queries(&walk);
	if (ret == -EOPNOTSUPP)
		ret = walk_file(&walk);
	if (!ret)
		*have = walk.have;
	return ret;
}
