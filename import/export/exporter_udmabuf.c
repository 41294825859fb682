/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of the host as dma-bufs of udmabuf, where the process may not open /dev/gdmabuf: shared
 * mappings of a memfd that is sealed against shrinking.  climport seals no memfd of the program's: the
 * program could not shrink the file any more.
 *
 * A mapping names no descriptor, so the file's descriptor is looked for among the process's.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "import/export/exporter.h"
#include "import/export/gdmabuf.h"
#include "import/kinds/maps.h"
#include "import/kinds/udmabuf.h"
#include "util/log.h"

/* The part of a file that is mapped at a range. */
struct mapped_file {
	dev_t device;
	uint64_t inode;
	uint64_t offset; /* of the range's first page */
	uint64_t size;	 /* that the walk has seen; 0: nothing */
	uintptr_t start; /* of the range's first page */
};

bool exporter_udmabuf_takes(const struct export_request *request)
{
	return request->memory.kind != CUDA_DEVICE && !(request->options & EXPORT_READ_ONLY) &&
	       !gdmabuf_is_available() && udmabuf_is_available();
}

/* Whether the mapping goes on in the file where the mapping before has ended. */
static bool mapped_file_goes_on(const struct mapped_file *file, const struct maps_mapping *m)
{
	return m->device == file->device && m->inode == file->inode &&
	       m->offset == file->offset + file->size;
}

/* -EOPNOTSUPP, not logged: for another exporter. */
static int mapped_file_visit(const struct maps_mapping *m, void *arg)
{
	struct mapped_file *file = arg;
	uint64_t before = file->start > m->start ? file->start - m->start : 0;

	if (!m->shared || !m->inode || !(m->access & IMPORT_WRITE))
		return -EOPNOTSUPP;
	if (!file->size) {
		file->device = m->device;
		file->inode = m->inode;
		file->offset = m->offset + before;
	} else if (!mapped_file_goes_on(file, m)) {
		return -EOPNOTSUPP;
	}
	file->size += m->end - m->start - before;
	return 0;
}

static bool mapped_file_is(const struct mapped_file *file, int fd)
{
	struct stat st;

	return !fstat(fd, &st) && st.st_dev == file->device && st.st_ino == file->inode;
}

/* A duplicate of @fd, if the file is a memfd of the mapping; or a negative errno. */
static int mapped_file_duplicate(const struct mapped_file *file, int fd)
{
	int own = fcntl(fd, F_DUPFD_CLOEXEC, 3);

	if (own < 0)
		return -errno;
	if (mapped_file_is(file, own) && fcntl(own, F_GET_SEALS) >= 0)
		return own;
	close(own);
	return -ENOENT;
}

/* The process's descriptor of the file, duplicated; -ENOENT: there is none. */
static int mapped_file_open(const struct mapped_file *file)
{
	DIR *descriptors = opendir("/proc/self/fd");
	const struct dirent *entry;
	int fd = -ENOENT;

	if (!descriptors)
		return -errno;
	while (fd < 0 && fd != -EMFILE && (entry = readdir(descriptors))) {
		int number = atoi(entry->d_name);

		if (*entry->d_name != '.' && mapped_file_is(file, number))
			fd = mapped_file_duplicate(file, number);
	}
	closedir(descriptors);
	return fd;
}

/* The error of an export without gdmabuf. */
static int exporter_udmabuf_errno(void)
{
	return access("/dev/gdmabuf", F_OK) ? ENXIO : EACCES;
}

static int exporter_udmabuf_failed(int memfd, size_t size, int error)
{
	int seals = fcntl(memfd, F_GET_SEALS);

	if (error != EINVAL)
		return log_errno(error, "udmabuf of %zu bytes: %s", size, log_strerror(error));
	if (!(seals & F_SEAL_SHRINK))
		return log_errno(exporter_udmabuf_errno(),
				 "no module gdmabuf, and udmabuf takes a memfd with F_SEAL_SHRINK");
	if (seals >= 0 && seals & F_SEAL_WRITE)
		return log_errno(exporter_udmabuf_errno(),
				 "no module gdmabuf, and udmabuf takes no memfd with F_SEAL_WRITE");
	return log_errno(exporter_udmabuf_errno(),
			 "no module gdmabuf, and udmabuf refuses %zu bytes (its limit is the "
			 "parameter udmabuf.size_limit_mb)",
			 size);
}

static int exporter_udmabuf_make(const struct mapped_file *file, size_t offset, size_t size,
				 int memfd, struct export_range *out)
{
	struct export_range made = {
		.fd = udmabuf_create(memfd, file->offset, size),
		.offset = offset,
		.whole = size,
	};

	if (made.fd < 0)
		return exporter_udmabuf_failed(memfd, size, -made.fd);
	*out = made;
	return 0;
}

int exporter_udmabuf_export(const struct export_request *request, struct export_range *out)
{
	uintptr_t mask = (uintptr_t)sysconf(_SC_PAGESIZE) - 1;
	struct mapped_file file = { .start = request->address & ~mask };
	size_t offset = request->address - file.start,
	       size = (offset + request->size + mask) & ~mask;
	int memfd, ret;

	if (maps_for_each((void *)file.start, size, mapped_file_visit, &file))
		return -ENOENT;
	memfd = mapped_file_open(&file);
	if (memfd < 0)
		return -ENOENT;
	ret = exporter_udmabuf_make(&file, offset, size, memfd, out);
	close(memfd);
	return ret;
}
