/* SPDX-License-Identifier: Apache-2.0 */
/* What kind of memory a mapping is: by its file's name where it has one. */
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "import.h"
#include "maps.h"

#define NAME_SIZE 64

/* The kernel's own tmpfs: memfd_create(), SysV and anonymous shared memory, GEM objects. */
static dev_t shmem_device(void)
{
	static _Atomic(dev_t) known;
	dev_t device = atomic_load_explicit(&known, memory_order_relaxed);
	struct stat st;
	int fd;

	if (device)
		return device;
	fd = memfd_create("climport", MFD_CLOEXEC);
	if (fd < 0)
		return 0;
	if (!fstat(fd, &st)) {
		device = st.st_dev;
		atomic_store_explicit(&known, device, memory_order_relaxed);
	}
	close(fd);
	return device;
}

static bool begins(const char *name, const char *with)
{
	return !strncmp(name, with, strlen(with));
}

enum import_kind maps_kind(const struct maps_mapping *m)
{
	char name[NAME_SIZE];

	if (!m->inode)
		return m->shared ? IMPORT_OTHER : IMPORT_ANONYMOUS;
	if (m->device == shmem_device())
		return m->shared ? IMPORT_SHMEM : IMPORT_FILE_PRIVATE;
	maps_name(m->start, name, sizeof(name));
	if (begins(name, "/dmabuf"))
		return IMPORT_OF_DMABUF;
	if (begins(name, "/dev/shm/"))
		return m->shared ? IMPORT_SHMEM : IMPORT_FILE_PRIVATE;
	if (name[0] != '/' || begins(name, "/dev/") || begins(name, "/anon_hugepage"))
		return IMPORT_OTHER;
	return m->shared ? IMPORT_FILE_SHARED : IMPORT_FILE_PRIVATE;
}
