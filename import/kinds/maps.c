/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PROCMAP_QUERY (Linux 6.11) answers for a mapping in an ioctl; older
 * kernels print /proc/self/maps, which costs by the number of mappings.
 *
 * Further ways know less or cost more: msync(MS_ASYNC) sees holes but not
 * protection, mincore() and MADV_POPULATE_* cost by the page
 * (docs/architecture.md has the figures).
 */
#include "import/kinds/maps.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "import/import.h"
#include "util/address.h"
#include "util/fork.h"
#include "util/log.h"
#include "util/thread.h"

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
#define VMA_SHARED 0x08
#define VMA_COVERING_OR_NEXT 0x10

#define NAME_ROOM PATH_MAX /* the kernel's limit */

/*
 * The descriptor of /proc/self/maps belongs to the process that opened the file, so the number
 * lives in a page that the kernel wipes in a child.  0 is "not open".
 *
 * The page is mapped when the library is loaded: a check that mapped the page could fill the very
 * hole that the check is about.
 */
struct query_file {
	atomic_int fd; /* 0: not open */
	/*
	 * Of @fd.  Wrong for a moment while two threads open the file, which is then opened again.
	 */
	_Atomic dev_t device;
	_Atomic ino_t inode;
};

static struct query_file *query_file; /* NULL: /proc/self/maps is read as text */
static atomic_bool query_missing;

__attribute__((constructor)) static void query_fd_prepare(void)
{
	query_file = fork_create_wiped_page();
}

/* 0 is no descriptor here. */
static int maps_query_fd_open(void)
{
	int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC), other;

	if (fd)
		return fd;
	other = fcntl(0, F_DUPFD_CLOEXEC, 3);
	close(0);
	return other;
}

/* Opens the maps anew unless a thread already replaced @stale.  Pairs with maps_query_descriptor(). */
static int maps_query_file_open(struct query_file *file, int stale)
{
	THREAD_NO_CANCEL();
	int fd = maps_query_fd_open();
	struct stat st;

	if (fd < 0)
		return -1;
	if (!fstat(fd, &st)) {
		atomic_store_explicit(&file->device, st.st_dev, memory_order_relaxed);
		atomic_store_explicit(&file->inode, st.st_ino, memory_order_relaxed);
	}
	if (atomic_compare_exchange_strong(&file->fd, &stale, fd))
		return fd;
	close(fd);
	return stale;
}

/* The number may be a new file's by now, even the maps of a parent or child. */
static bool maps_query_file_is_open(struct query_file *file, int fd)
{
	struct stat st;

	return fd && !fstat(fd, &st) &&
	       st.st_dev == atomic_load_explicit(&file->device, memory_order_relaxed) &&
	       st.st_ino == atomic_load_explicit(&file->inode, memory_order_relaxed);
}

/*
 * A descriptor of the maps, or -1.  A program may close the descriptor, and open a new file at the
 * number.  The maps are then opened once more, and the number is left alone.  Pairs with maps_query_file_open().
 */
static int maps_query_descriptor(void)
{
	struct query_file *file = query_file;
	int fd;

	if (!file || atomic_load_explicit(&query_missing, memory_order_relaxed))
		return -1;
	fd = atomic_load_explicit(&file->fd, memory_order_acquire);
	return maps_query_file_is_open(file, fd) ? fd : maps_query_file_open(file, fd);
}

/*
 * The first mapping with an end after @at: 0, -ENOENT without such a mapping, -ENAMETOOLONG, or -EOPNOTSUPP.  A kernel
 * without the query says ENOTTY or EINVAL; a lack of descriptors or memory is no answer, and a later call asks again.
 * @name: of NAME_ROOM bytes, or NULL
 */
static int maps_query_mapping(int fd, uintptr_t at, struct maps_mapping *found, char *name)
{
	struct procmap_query_v1 query = {
		.size = sizeof(query),
		.query_addr = at,
		.query_flags = VMA_COVERING_OR_NEXT,
		.vma_name_size = name ? NAME_ROOM : 0,
		.vma_name_addr = (uintptr_t)name,
	};

	if (fd < 0)
		return -EOPNOTSUPP;
	if (ioctl(fd, PROCMAP_QUERY_V1, &query)) {
		if (errno == ENOENT || errno == ENAMETOOLONG)
			return -errno;
		if (errno == ENOTTY || errno == EINVAL)
			atomic_store_explicit(&query_missing, true, memory_order_relaxed);
		return -EOPNOTSUPP;
	}
	if (name && !query.vma_name_size)
		name[0] = '\0';
	found->start = query.vma_start;
	found->end = query.vma_end;
	found->access = (query.vma_flags & VMA_READABLE ? IMPORT_READ : 0) |
			(query.vma_flags & VMA_WRITABLE ? IMPORT_WRITE : 0);
	found->device = makedev(query.dev_major, query.dev_minor);
	found->inode = query.inode;
	found->offset = query.vma_offset;
	found->shared = query.vma_flags & VMA_SHARED;
	return 0;
}

/* One line of the maps: "start-end rwxp offset major:minor inode   name" */
static bool maps_line_parse(const char *line, struct maps_mapping *found, int *name_at)
{
	unsigned int major, minor;
	char read, write, shared;

	if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %c%c%*c%c %" SCNx64 " %x:%x %" SCNu64 " %n",
		   &found->start, &found->end, &read, &write, &shared, &found->offset, &major,
		   &minor, &found->inode, name_at) != 9)
		return false;
	found->access = (read == 'r' ? IMPORT_READ : 0) | (write == 'w' ? IMPORT_WRITE : 0);
	found->device = makedev(major, minor);
	found->shared = shared == 's';
	return true;
}

/* The state of a walk over the mappings of a range. */
struct walk {
	uintptr_t at, end; /* the rest of the range */
	int (*visit)(const struct maps_mapping *mapping, void *arg);
	void *arg;
};

/* 1: go on, 0: the range is covered, or a negative errno. */
static int maps_walk_step(struct walk *walk, const struct maps_mapping *m)
{
	int ret;

	if (m->start > walk->at)
		return log_errno(EFAULT, "host memory at %#" PRIxPTR " is not mapped", walk->at);
	ret = walk->visit(m, walk->arg);
	walk->at = m->end;
	return ret ? ret : walk->at < walk->end;
}

static int maps_walk_file(struct walk *walk)
{
	THREAD_NO_CANCEL();
	FILE *maps = fopen("/proc/self/maps", "re");
	struct maps_mapping m = { 0 };
	char *line = NULL;
	size_t room = 0;
	int ret = 1, name;

	if (!maps)
		return log_errno(errno == EMFILE || errno == ENFILE ? errno : EIO,
				 "cannot read /proc/self/maps: %m");
	while (ret > 0 && getline(&line, &room, maps) > 0)
		if (maps_line_parse(line, &m, &name) && m.end > walk->at)
			ret = maps_walk_step(walk, &m);
	free(line);
	fclose(maps);
	return ret > 0 ? log_errno(EFAULT, "host memory at %#" PRIxPTR " is not mapped", walk->at)
		       : ret;
}

int maps_for_each(const void *addr, size_t size,
		  int (*visit)(const struct maps_mapping *mapping, void *arg), void *arg)
{
	uintptr_t start = address_of(addr);
	struct walk walk = { start, start + size, visit, arg };
	struct maps_mapping m = { 0 };
	int fd, ret;

	if ((uintptr_t)addr + size < (uintptr_t)addr)
		return log_errno(ERANGE, "%#zx bytes at %p exceed the address space", size, addr);
	fd = maps_query_descriptor();
	do {
		ret = maps_query_mapping(fd, walk.at, &m, NULL);
		if (ret == -EOPNOTSUPP)
			return maps_walk_file(&walk);
		if (ret)
			return log_errno(EFAULT, "host memory at %#" PRIxPTR " is not mapped",
					 walk.at);
		ret = maps_walk_step(&walk, &m);
	} while (ret > 0);
	return ret;
}

struct wish {
	unsigned int need, have, kinds, mappings;
	bool wants_kinds;
};

static int maps_check_one(const struct maps_mapping *m, void *arg)
{
	struct wish *wish = arg;
	unsigned int lacks = wish->need & ~m->access;

	wish->have &= m->access;
	if (wish->mappings++)
		wish->kinds |= 1u << IMPORT_SEVERAL;
	if (wish->wants_kinds)
		wish->kinds |= 1u << maps_kind(m) |
			       (m->access & IMPORT_WRITE ? 0u : 1u << IMPORT_UNWRITABLE);
	if (lacks)
		return log_errno(EACCES, "host memory at %#" PRIxPTR " is mapped without %s access",
				 m->start, lacks & IMPORT_READ ? "read" : "write");
	return 0;
}

int maps_check(const void *addr, size_t size, unsigned int need, unsigned int *have,
	       unsigned int *kinds)
{
	struct wish wish = {
		.need = need,
		.have = IMPORT_READ | IMPORT_WRITE,
		.wants_kinds = kinds,
	};
	int ret = maps_for_each(addr, size, maps_check_one, &wish);

	if (ret)
		return ret;
	*have = wish.have;
	if (kinds)
		*kinds = wish.kinds;
	return 0;
}

static void maps_name_from_file(uintptr_t addr, char *name)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	struct maps_mapping m;
	char *line = NULL;
	size_t room = 0;
	ssize_t length;
	int at;

	while (maps && (length = getline(&line, &room, maps)) > 0) {
		if (!maps_line_parse(line, &m, &at) || m.end <= addr)
			continue;
		line[length - 1] = '\0';
		if (m.start <= addr)
			snprintf(name, NAME_ROOM, "%s", line + at);
		break;
	}
	free(line);
	if (maps)
		fclose(maps);
}

char *maps_name(uintptr_t addr)
{
	char *name = calloc(1, NAME_ROOM);
	struct maps_mapping m = { 0 };
	int ret;

	if (!name)
		return NULL;
	ret = maps_query_mapping(maps_query_descriptor(), addr, &m, name);
	if (ret == -EOPNOTSUPP || ret == -ENAMETOOLONG)
		maps_name_from_file(addr, name);
	else if (ret || m.start > addr)
		name[0] = '\0';
	return name;
}
