/* SPDX-License-Identifier: Apache-2.0 */
#include "import/nvidia/vulkan/pinnable.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "import/import.h"
#include "import/kinds/maps.h"
#include "util/log.h"

static bool pinnable_starts_with(const char *text, const char *start)
{
	return !strncmp(text, start, strlen(start));
}

/* Where memfds, SysV segments and shared anonymous memory live; 0: unknown. */
static dev_t pinnable_shmem_device(void)
{
	static _Atomic(dev_t) known; /* every thread writes one value */
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

/* One line of mountinfo: "36 35 major:minor root place options [fields] - type ..." */
static bool pinnable_is_memory_mount(const char *line, dev_t device)
{
	const char *type = strstr(line, " - ");
	unsigned int major, minor;

	return type && sscanf(line, "%*d %*d %u:%u", &major, &minor) == 2 &&
	       makedev(major, minor) == device &&
	       (pinnable_starts_with(type, " - tmpfs ") ||
		pinnable_starts_with(type, " - hugetlbfs "));
}

static bool pinnable_is_memory_filesystem(dev_t device)
{
	FILE *mounts = fopen("/proc/self/mountinfo", "re");
	char *line = NULL;
	size_t room = 0;
	bool found = false;

	if (!mounts)
		return false;
	while (!found && getline(&line, &room, mounts) > 0)
		found = pinnable_is_memory_mount(line, device);
	free(line);
	fclose(mounts);
	return found;
}

/* Containers keep the nodes of devices in a tmpfs. */
static bool pinnable_is_node(const char *name)
{
	struct stat st;

	return !stat(name, &st) && !S_ISREG(st.st_mode);
}

/* The kernel's own mounts of hugetlbfs are in no list; a private /dev/zero is anonymous. */
static bool pinnable_is_memory_name(const char *name)
{
	return pinnable_starts_with(name, "/anon_hugepage") ||
	       pinnable_starts_with(name, "/memfd:") || pinnable_starts_with(name, "/SYSV") ||
	       !strcmp(name, "/dev/zero");
}

static int pinnable_check_file(const struct maps_mapping *m)
{
	char *name;
	int ret = 0;

	if (m->device == pinnable_shmem_device())
		return 0;
	name = maps_name(m->start);
	if (!name)
		return log_errno(ENOMEM, "there is no memory to name a mapping");
	if (!pinnable_is_memory_name(name) &&
	    (!pinnable_is_memory_filesystem(m->device) || pinnable_is_node(name)))
		ret = log_errno(
			EOPNOTSUPP,
			"host memory at %#lx is a mapping of %s, which this device cannot pin",
			m->start, name);
	free(name);
	return ret;
}

static int pinnable_check_one(const struct maps_mapping *m, void *arg)
{
	char *name;
	int ret;

	(void)arg;
	if (m->access & IMPORT_WRITE)
		return m->inode ? pinnable_check_file(m) : 0;
	name = maps_name(m->start);
	ret = log_errno(EOPNOTSUPP,
			"host memory at %#lx (%s) is mapped without write access, which "
			"this device needs to pin it",
			m->start, name && name[0] ? name : "anonymous");
	free(name);
	return ret;
}

int pinnable_check(const void *addr, size_t size)
{
	return maps_for_each(addr, size, pinnable_check_one, NULL);
}
