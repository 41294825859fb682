/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The nodes of RM, and wrappers of libc's functions.  A node is a memfd, and an open node is an
 * open file of the memfd.  The offset of the open file is the number of the file.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <pthread.h>

#include "rm.h"

#define NAME "/memfd:fake-nvidia-"
#define DMABUF "/memfd:fake-dmabuf"
#define FILE_ROOM 128 /* bytes of a node for each file */

_Static_assert(sizeof(struct fake_opaque) <= FILE_ROOM, "an exported descriptor");

struct fake_rm fake_rm;

static struct fake_rm_file fake_rm_all_files[FAKE_RM_FILES];
static int fake_rm_nodes[1 + FAKE_RM_GPUS] = { -1, -1, -1, -1, -1 };
static atomic_flag fake_rm_is_locked = ATOMIC_FLAG_INIT;

/* No mutex: the thread sanitizer would take the fake's mutex for order between the threads. */
void fake_rm_lock(void)
{
	while (atomic_flag_test_and_set(&fake_rm_is_locked))
		sched_yield();
}

void fake_rm_unlock(void)
{
	atomic_flag_clear(&fake_rm_is_locked);
}

/* In a child.  The parent goes on to write into the memfds. */
static void fake_rm_forget_nodes(void)
{
	for (int i = 0; i <= FAKE_RM_GPUS; i++) {
		close(fake_rm_nodes[i]);
		fake_rm_nodes[i] = -1;
	}
	fake_rm_unlock();
}

__attribute__((constructor)) static void fake_rm_prepare_fork(void)
{
	pthread_atfork(fake_rm_lock, fake_rm_unlock, fake_rm_forget_nodes);
}

void fake_rm_note_misuse(const char *what)
{
	fprintf(stderr, "# fake RM: %s\n", what);
	fake_rm.misuses++;
}

bool fake_rm_take_error(const char *name)
{
	unsigned int n, last;

	fake_rm.calls++;
	if (!fake_rm.fail_call || (fake_rm.fail_name && strcmp(fake_rm.fail_name, name)))
		return false;
	n = atomic_fetch_add(&fake_rm.matched, 1) + 1;
	last = fake_rm.fail_call + (fake_rm.fail_times ? fake_rm.fail_times - 1 : 0);
	return n >= fake_rm.fail_call && n <= last;
}

static bool fake_rm_link_begins(int fd, const char *beginning, char *rest, size_t room)
{
	char path[32], target[128];
	ssize_t length;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	length = readlink(path, target, sizeof(target) - 1);
	if (length < 0)
		return false;
	target[length] = '\0';
	if (strncmp(target, beginning, strlen(beginning)))
		return false;
	snprintf(rest, room, "%.*s", (int)room - 1, target + strlen(beginning));
	return true;
}

/* The node of a descriptor, or -1. */
static int fake_rm_node_of(int fd)
{
	char rest[16];
	int saved = errno, node = -1;

	if (fd >= 0 && fake_rm_link_begins(fd, NAME, rest, sizeof(rest)))
		node = atoi(rest);
	errno = saved;
	return node;
}

struct fake_rm_file *fake_rm_file_first(void)
{
	return fake_rm_all_files;
}

off_t fake_rm_file_place(const struct fake_rm_file *file)
{
	return (file - fake_rm_all_files + 1) * FILE_ROOM;
}

/*
 * The offset of a descriptor, or -1.  A scan of all numbers asks for the offset before the node:
 * most numbers are not open, and the node's link takes far longer to read.
 */
static off_t fake_rm_offset_of(int fd)
{
	int saved = errno;
	off_t offset = lseek(fd, 0, SEEK_CUR);

	errno = saved;
	return offset;
}

struct fake_rm_file *fake_rm_file_get(int fd)
{
	off_t at = fake_rm_offset_of(fd);

	if (at < FILE_ROOM || fake_rm_node_of(fd) < 0)
		return NULL;
	return &fake_rm_all_files[at / FILE_ROOM - 1];
}

static void fake_rm_file_end(struct fake_rm_file *file)
{
	if (file->node == FAKE_RM_CONTROL)
		fake_rm_objects_end(file);
	fake_rm_memory_put(file->memory);
	*file = (struct fake_rm_file){ 0 };
}

/* A device node keeps the control node with which the device node is registered. */
void fake_rm_files_collect(void)
{
	static bool is_used[FAKE_RM_FILES]; /* guarded by the lock */

	memset(is_used, 0, sizeof(is_used));
	for (int fd = 0; fd < FAKE_RM_FILES; fd++) {
		struct fake_rm_file *file = fake_rm_file_get(fd);

		if (!file)
			continue;
		is_used[file - fake_rm_all_files] = true;
		if (file->control)
			is_used[file->control - fake_rm_all_files] = true;
	}
	for (int i = 0; i < FAKE_RM_FILES; i++)
		if (fake_rm_all_files[i].is_open && !is_used[i])
			fake_rm_file_end(&fake_rm_all_files[i]);
}

static struct fake_rm_file *fake_rm_file_find_free(void)
{
	for (int i = 0; i < FAKE_RM_FILES; i++)
		if (!fake_rm_all_files[i].is_open)
			return &fake_rm_all_files[i];
	return NULL;
}

/* The descriptor of a node that is opened by its path.  The program may have closed the number. */
static int fake_rm_node_prepare(int node)
{
	char name[32];
	int fd;

	if (fake_rm_node_of(fake_rm_nodes[node]) == node)
		return fake_rm_nodes[node];
	snprintf(name, sizeof(name), "fake-nvidia-%d", node);
	fd = memfd_create(name, MFD_CLOEXEC);
	if (fd >= 0)
		fake_rm_nodes[node] = fd;
	return fd;
}

static int fake_rm_file_open(int node, int flags)
{
	struct fake_rm_file *file = fake_rm_file_find_free();
	const struct fake_opaque none = { 0 };
	char path[32];
	int fd;

	if (!file) {
		fake_rm_files_collect();
		file = fake_rm_file_find_free();
	}
	fd = fake_rm_node_prepare(node);
	if (!file || fd < 0)
		return -1;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	fd = (int)syscall(SYS_openat, AT_FDCWD, path, flags);
	if (fd < 0)
		return -1;
	*file = (struct fake_rm_file){ .is_open = true, .node = node };
	lseek(fd, fake_rm_file_place(file), SEEK_SET);
	if (pwrite(fd, &none, sizeof(none), fake_rm_file_place(file)) != sizeof(none))
		abort();
	return fd;
}

/* The node of a path; -1: the path is no node, -2: the node is missing. */
static int fake_rm_node_by_path(const char *path)
{
	unsigned int minor;
	char end;

	if (!strcmp(path, RM_CONTROL_NODE))
		return fake_rm.is_present ? FAKE_RM_CONTROL : -2;
	if (sscanf(path, RM_DEVICE_NODE "%c", &minor, &end) != 1)
		return -1;
	for (unsigned int i = 0; fake_rm.is_present && i < fake_rm.gpu_count; i++)
		if (fake_rm.gpu[i].minor == minor && !fake_rm.gpu[i].no_node)
			return (int)i + 1;
	return -2;
}

static void fake_rm_call_hook(const char *name)
{
	if (fake_rm.hook_name && !strcmp(fake_rm.hook_name, name))
		fake_rm.hook();
}

static int fake_rm_open(int node, int flags)
{
	const char *name = node == FAKE_RM_CONTROL ? "open control" : "open device";
	int fd;

	if (node == -2) {
		fake_rm.calls++;
		errno = ENOENT;
		return -1;
	}
	fake_rm_call_hook(name);
	if (fake_rm_take_error(name)) {
		errno = fake_rm.fail_errno;
		return -1;
	}
	fake_rm_lock();
	fd = fake_rm_file_open(node, flags);
	fake_rm_unlock();
	return fd;
}

FAKE_RM_API int openat(int directory, const char *path, int flags, ...)
{
	int node = fake_rm_node_by_path(path);
	va_list args;
	mode_t mode;

	if (node != -1)
		return fake_rm_open(node, flags);
	va_start(args, flags);
	mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(args, mode_t) : 0;
	va_end(args);
	return (int)syscall(SYS_openat, directory, path, flags, mode);
}

FAKE_RM_API int open(const char *path, int flags, ...)
{
	va_list args;
	mode_t mode;

	va_start(args, flags);
	mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(args, mode_t) : 0;
	va_end(args);
	return openat(AT_FDCWD, path, flags, mode);
}

static int fake_rm_ioctl_next(int fd, unsigned long request, void *parameters)
{
	int (*next)(int, unsigned long, ...) =
		(int (*)(int, unsigned long, ...))dlsym(RTLD_NEXT, "ioctl");

	return next(fd, request, parameters);
}

/* The names of the calls, for the tests. */
static const char *fake_rm_call_name(unsigned long request, const void *parameters)
{
	const struct rm_allocation *allocation = parameters;

	switch (request) {
	case RM_ALLOCATE:
		return allocation->class == RM_CLASS_CLIENT   ? "client"
		       : allocation->class == RM_CLASS_DEVICE ? "device"
							      : "attach";
	case RM_ALLOCATE_HOST_MEMORY:
		return "pin";
	case RM_CONTROL:
		return ((const struct rm_control *)parameters)->command == RM_GET_UUID_INFO
			       ? "uuid"
			       : "export";
	case RM_CARD_INFO:
		return "cards";
	case RM_REGISTER_FD:
		return "register";
	case RM_FREE:
		return "free";
	case RM_VERSION:
		return "version";
	default:
		return "unknown";
	}
}

static void fake_rm_set_status(unsigned long request, void *parameters, uint32_t status)
{
	struct rm_allocation *allocation = parameters;

	if (request == RM_ALLOCATE_HOST_MEMORY)
		((struct rm_host_memory *)parameters)->status = status;
	else if (request == RM_CONTROL)
		((struct rm_control *)parameters)->status = status;
	else if (request == RM_FREE)
		((struct rm_release *)parameters)->status = status;
	else if (request == RM_ALLOCATE && fake_rm.release.has_early_status)
		allocation->size = status;
	else if (request == RM_ALLOCATE)
		allocation->status = status;
}

static int fake_rm_node_ioctl(int fd, unsigned long request, void *parameters)
{
	const char *name = fake_rm_call_name(request, parameters);
	struct fake_rm_file *file;
	int error = 0;

	fake_rm_call_hook(name);
	if (fake_rm_take_error(name)) {
		if (!fake_rm.fail_errno)
			fake_rm_set_status(request, parameters, fake_rm.fail_status);
		errno = fake_rm.fail_errno;
		return errno ? -1 : 0;
	}
	fake_rm_lock();
	file = fake_rm_file_get(fd);
	error = file ? fake_rm_answer(file, request, parameters) : EBADF;
	fake_rm_unlock();
	if (error > 0) {
		errno = error;
		return -1;
	}
	fake_rm_set_status(request, parameters, (uint32_t)-error);
	return 0;
}

FAKE_RM_API int ioctl(int fd, unsigned long request, ...)
{
	va_list args;
	void *parameters;

	va_start(args, request);
	parameters = va_arg(args, void *);
	va_end(args);
	if (_IOC_TYPE(request) != 'F' || fake_rm_node_of(fd) < 0)
		return fake_rm_ioctl_next(fd, request, parameters);
	return fake_rm_node_ioctl(fd, request, parameters);
}

/* /proc/self/fdinfo of fake dma-bufs. */
FAKE_RM_API FILE *fopen(const char *path, const char *mode)
{
	FILE *(*next)(const char *, const char *) = (FILE * (*)(const char *, const char *))
		dlsym(RTLD_NEXT, "fopen");
	char rest[64];
	FILE *info;
	int fd;

	if (!fake_rm.exporter || sscanf(path, "/proc/self/fdinfo/%d", &fd) != 1 ||
	    !fake_rm_link_begins(fd, DMABUF, rest, sizeof(rest)))
		return next(path, mode);
	info = tmpfile();
	if (!info)
		return NULL;
	fprintf(info, "pos:\t0\nflags:\t02000002\nsize:\t4096\ncount:\t1\nexp_name:\t%s\n",
		fake_rm.exporter);
	rewind(info);
	return info;
}

void fake_rm_reset(unsigned int gpus)
{
	fake_rm_lock();
	fake_rm_files_collect();
	memset(&fake_rm, 0, sizeof(fake_rm));
	fake_rm.is_present = true;
	fake_rm.release.version = "580.159.04";
	fake_rm.gpu_count = gpus;
	for (unsigned int i = 0; i < FAKE_RM_GPUS; i++)
		fake_rm.gpu[i] = (struct fake_rm_gpu){ .uuid = { (unsigned char)(i + 1) },
						       .id = 0x100 * (i + 1),
						       .minor = FAKE_RM_GPUS - i,
						       .instance = i + 10 };
	for (unsigned int i = 0; i <= gpus; i++)
		fake_rm_node_prepare((int)i);
	fake_rm_unlock();
}

/*
 * Each byte of the first GPU's UUID, for programs that do not know of the fake: the fake is present.
 * FAKE_RM_EXPORTER is the exporter of dma-bufs.
 */
__attribute__((constructor)) static void fake_rm_take_environment(void)
{
	const char *byte = getenv("FAKE_RM_UUID");

	if (!byte)
		return;
	fake_rm_reset(1);
	memset(fake_rm.gpu[0].uuid, (int)strtoul(byte, NULL, 16), sizeof(fake_rm.gpu[0].uuid));
	fake_rm.exporter = getenv("FAKE_RM_EXPORTER");
}

struct fake_rm_held fake_rm_held(void)
{
	struct fake_rm_held held = { 0 };

	fake_rm_lock();
	fake_rm_files_collect();
	for (int i = 0; i < FAKE_RM_FILES; i++)
		held.files += fake_rm_all_files[i].is_open;
	fake_rm_objects_count(&held);
	fake_rm_unlock();
	return held;
}

int fake_rm_files(int node)
{
	int count = 0;

	fake_rm_lock();
	fake_rm_files_collect();
	for (int i = 0; i < FAKE_RM_FILES; i++)
		count += fake_rm_all_files[i].is_open && fake_rm_all_files[i].node == node;
	fake_rm_unlock();
	return count;
}

int fake_rm_descriptor(int node)
{
	for (int fd = 0; fd < FAKE_RM_FILES; fd++)
		if (fake_rm_offset_of(fd) > 0 && fake_rm_node_of(fd) == node)
			return fd;
	return -1;
}
