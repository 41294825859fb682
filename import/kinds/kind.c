/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kind of memory of a mapping: by the file system of the mapped file, else by the name of the
 * mapping.  The kernel is asked once for each file, as far as the table has room.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "import/import.h"
#include "import/kinds/maps.h"

#define REMEMBERED_BITS 8 /* of the number of files in the table */

enum store {
	NOT_KNOWN,
	ON_DISK,
	ON_TMPFS,
	ON_HUGETLBFS,
	IN_DMABUF,
	ZEROS, /* /dev/zero: a private mapping is of no file */
	ELSEWHERE,
	STORE_BITS = 3,
};

/* The device of the kernel's own tmpfs or hugetlbfs, which is mounted nowhere; 0: unknown. */
static dev_t kind_own_device(unsigned int flags, _Atomic(dev_t) *known)
{
	dev_t device = atomic_load_explicit(known, memory_order_relaxed);
	struct stat st;
	int fd;

	if (device)
		return device;
	fd = memfd_create("climport", MFD_CLOEXEC | flags);
	if (fd < 0)
		return 0;
	if (!fstat(fd, &st)) {
		device = st.st_dev;
		atomic_store_explicit(known, device, memory_order_relaxed);
	}
	close(fd);
	return device;
}

/* memfd_create(), SysV and anonymous shared memory, GEM objects. */
static dev_t kind_shmem_device(void)
{
	static _Atomic(dev_t) known;

	return kind_own_device(0, &known);
}

static dev_t kind_huge_device(void)
{
	static _Atomic(dev_t) known;

	return kind_own_device(MFD_HUGETLB, &known);
}

static bool kind_begins_with(const char *name, const char *with)
{
	return !strncmp(name, with, strlen(with));
}

/* By the name of a file system type. */
static enum store kind_store_of_type(const char *type)
{
	static const char *const elsewhere[] = { "sysfs",   "proc",	  "debugfs",
						 "tracefs", "securityfs", "configfs" };

	if (!strcmp(type, "tmpfs") || !strcmp(type, "devtmpfs") || !strcmp(type, "ramfs"))
		return ON_TMPFS;
	if (!strcmp(type, "hugetlbfs"))
		return ON_HUGETLBFS;
	for (size_t i = 0; i < sizeof(elsewhere) / sizeof(elsewhere[0]); i++)
		if (!strcmp(type, elsewhere[i]))
			return ELSEWHERE;
	return ON_DISK;
}

/*
 * "36 35 98:0 /root /at options fields - type source options": proc_pid_mountinfo(5).  A file of
 * an overlay is on a device that may be mounted nowhere.
 */
static enum store kind_store_of_device(dev_t device)
{
	FILE *mounts = fopen("/proc/self/mountinfo", "re");
	enum store found = major(device) ? ON_DISK : ELSEWHERE;
	char *line = NULL, type[64];
	size_t room = 0;

	while (mounts && getline(&line, &room, mounts) > 0) {
		const char *after = strstr(line, " - ");
		unsigned int device_major, device_minor;

		if (!after || sscanf(line, "%*d %*d %u:%u", &device_major, &device_minor) != 2 ||
		    makedev(device_major, device_minor) != device ||
		    sscanf(after, " - %63s", type) != 1)
			continue;
		found = kind_store_of_type(type);
		break;
	}
	free(line);
	if (mounts)
		fclose(mounts);
	return found;
}

/* Whether a name leads to something that is no plain file; a missing file counts as plain. */
static bool kind_is_special(const char *name)
{
	struct stat st;

	return !stat(name, &st) && !S_ISREG(st.st_mode);
}

static enum store kind_store_of_name(const char *name, dev_t device)
{
	if (kind_begins_with(name, "/dmabuf"))
		return IN_DMABUF;
	if (!strcmp(name, "/dev/zero"))
		return ZEROS;
	if (name[0] != '/' || kind_is_special(name))
		return ELSEWHERE;
	if (kind_begins_with(name, "/dev/") && !kind_begins_with(name, "/dev/shm/") &&
	    access(name, F_OK))
		return ELSEWHERE; /* perhaps a device without its node */
	return kind_store_of_device(device);
}

static enum store kind_store_find(const struct maps_mapping *m)
{
	enum store store;
	char *name;

	if (m->device == kind_shmem_device())
		return ON_TMPFS;
	if (m->device == kind_huge_device())
		return ON_HUGETLBFS;
	name = maps_name(m->start);
	store = name ? kind_store_of_name(name, m->device) : NOT_KNOWN;
	free(name);
	return store;
}

static uint64_t kind_file_hash(const struct maps_mapping *m)
{
	uint64_t h = (uint64_t)m->device * 0x9e3779b97f4a7c15 ^ m->inode;

	h = (h ^ h >> 31) * 0xbf58476d1ce4e5b9;
	return h ^ h >> 29;
}

/* A word for each file: the place, and as much of the hash as fits. */
static enum store kind_store_of(const struct maps_mapping *m)
{
	static _Atomic(uint64_t) remembered[1 << REMEMBERED_BITS];
	const uint64_t hash = kind_file_hash(m);
	_Atomic(uint64_t) *slot = &remembered[hash >> (64 - REMEMBERED_BITS)];
	const uint64_t word = atomic_load_explicit(slot, memory_order_relaxed);
	enum store store;

	if (word && word >> STORE_BITS == hash << STORE_BITS >> STORE_BITS)
		return (enum store)(word & ((1 << STORE_BITS) - 1));
	store = kind_store_find(m);
	if (store != NOT_KNOWN)
		atomic_store_explicit(slot, hash << STORE_BITS | store, memory_order_relaxed);
	return store;
}

enum import_kind maps_kind_of_file(const struct maps_mapping *m)
{
	switch (kind_store_of(m)) {
	case ON_DISK:
		return m->shared ? IMPORT_FILE_SHARED : IMPORT_FILE_PRIVATE;
	case ON_TMPFS:
		return m->shared ? IMPORT_SHMEM : IMPORT_SHMEM_PRIVATE;
	case ON_HUGETLBFS:
		return m->shared ? IMPORT_HUGE_SHARED : IMPORT_HUGE;
	case IN_DMABUF:
		return IMPORT_OF_DMABUF;
	case ZEROS:
		return m->shared ? IMPORT_OTHER : IMPORT_ANONYMOUS;
	default:
		return IMPORT_OTHER;
	}
}
