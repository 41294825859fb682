/* SPDX-License-Identifier: Apache-2.0 */
#include "fake_gdmabuf.h"

#include <errno.h>
#include <linux/gdmabuf.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define PAGE ((size_t)sysconf(_SC_PAGESIZE))
#define GPU_PAGE 65536
#define WATCHES 128
#define DESCRIPTORS 1024
#define DEVICE "gdmabuf-device"
#define OWNER (PAGE - 4) /* offset of the opener's process id in the device's file */

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __real_ioctl(int fd, unsigned long request, void *arg);
int __wrap_ioctl(int fd, unsigned long request, void *arg);

struct fake_gdmabuf fake_gdmabuf;

struct watch {
	uint64_t address, length; /* length 0: no watch */
	uint32_t generation;	  /* even; the word of a stale watch is odd */
};

static pthread_mutex_t fake_lock = PTHREAD_MUTEX_INITIALIZER; /* all below */
static struct watch watches[WATCHES];
static int last_device = -1;
static uint32_t process = 1; /* as fake_gdmabuf_child() counts */

void fake_gdmabuf_child(void)
{
	process++;
}

static bool fake_descriptor_is(int fd, const char *name)
{
	char path[64], target[128] = "";

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return readlink(path, target, sizeof(target) - 1) > 0 && strstr(target, name);
}

bool fake_gdmabuf_is_device(int fd)
{
	return fake_descriptor_is(fd, DEVICE);
}

bool fake_gdmabuf_is_own(int fd)
{
	uint32_t owner = 0;

	return pread(fd, &owner, sizeof(owner), OWNER) == sizeof(owner) && owner == process;
}

static void fake_gdmabuf_put_word(int fd, uint32_t word, off_t at)
{
	if (pwrite(fd, &word, sizeof(word), at) != sizeof(word))
		abort();
}

void fake_gdmabuf_set_own(int fd)
{
	fake_gdmabuf_put_word(fd, process, OWNER);
}

static int fake_gdmabuf_set_errno(int error)
{
	errno = error;
	return -1;
}

int __wrap_open(const char *path, int flags, ...)
{
	int fd;

	if (strcmp(path, "/dev/gdmabuf"))
		return __real_open(path, flags, 0);
	if (fake_gdmabuf.open_error)
		return fake_gdmabuf_set_errno(fake_gdmabuf.open_error);
	fd = memfd_create(DEVICE, MFD_CLOEXEC);
	if (fd < 0)
		return -1;
	if (ftruncate(fd, PAGE))
		abort();
	fake_gdmabuf_set_own(fd);
	pthread_mutex_lock(&fake_lock);
	fake_gdmabuf.opens++;
	memset(watches, 0, sizeof(watches));
	pthread_mutex_unlock(&fake_lock);
	return fd;
}

static int fake_gdmabuf_answer_caps(struct gdmabuf_caps *caps)
{
	caps->out_host_page_size = PAGE;
	caps->out_gpu_page_size = fake_gdmabuf.has_gpu ? GPU_PAGE : 0;
	caps->out_watches = WATCHES;
	return 0;
}

/* A dma-buf counts once, however many descriptors it has. */
uint64_t fake_gdmabuf_pinned(void)
{
	static ino_t seen[DESCRIPTORS];
	uint64_t bytes = 0;
	int count = 0, i;
	struct stat st;

	for (int fd = 3; fd < DESCRIPTORS; fd++) {
		if (!fake_descriptor_is(fd, "gdmabuf-host") || fstat(fd, &st))
			continue;
		for (i = 0; i < count && seen[i] != st.st_ino;)
			i++;
		if (i < count)
			continue;
		seen[count++] = st.st_ino;
		bytes += (uint64_t)st.st_size;
	}
	return bytes;
}

static int fake_gdmabuf_export(bool is_gpu, struct gdmabuf_export *e)
{
	if (fake_gdmabuf.error)
		return fake_gdmabuf_set_errno(fake_gdmabuf.error);
	if (!is_gpu && fake_gdmabuf.host_error)
		return fake_gdmabuf_set_errno(fake_gdmabuf.host_error);
	if (!is_gpu && fake_gdmabuf.memlock &&
	    fake_gdmabuf_pinned() + e->length > fake_gdmabuf.memlock)
		return fake_gdmabuf_set_errno(EDQUOT);
	e->out_fd = memfd_create(is_gpu ? "gdmabuf-gpu" : "gdmabuf-host", MFD_CLOEXEC);
	if (e->out_fd < 0)
		return -1;
	if (ftruncate(e->out_fd, (off_t)e->length))
		abort();
	fake_gdmabuf.flags = e->flags;
	fake_gdmabuf.exports++;
	return 0;
}

static int fake_gdmabuf_answer_export(bool is_gpu, struct gdmabuf_export *e)
{
	int ret;

	if (fake_gdmabuf.exporting)
		fake_gdmabuf.exporting();
	pthread_mutex_lock(&fake_lock);
	ret = fake_gdmabuf_export(is_gpu, e);
	pthread_mutex_unlock(&fake_lock);
	return ret;
}

static int fake_gdmabuf_watch(int device, struct gdmabuf_watch_host *w)
{
	uint32_t slot = 0;

	if (fake_gdmabuf.watch_error)
		return fake_gdmabuf_set_errno(fake_gdmabuf.watch_error);
	while (slot < WATCHES && watches[slot].length)
		slot++;
	if (slot == WATCHES)
		return fake_gdmabuf_set_errno(EDQUOT);
	watches[slot] = (struct watch){ w->address, w->length, watches[slot].generation + 2 };
	w->out_slot = slot;
	w->out_generation = watches[slot].generation;
	last_device = device;
	fake_gdmabuf_put_word(device, w->out_generation, slot * 4);
	fake_gdmabuf.watches++;
	return 0;
}

static int fake_gdmabuf_answer_watch(int device, struct gdmabuf_watch_host *w)
{
	int ret;

	if (fake_gdmabuf.watching)
		fake_gdmabuf.watching();
	pthread_mutex_lock(&fake_lock);
	ret = fake_gdmabuf_watch(device, w);
	pthread_mutex_unlock(&fake_lock);
	return ret;
}

void fake_gdmabuf_change(const void *address, uint64_t length)
{
	uint64_t first = (uintptr_t)address;

	pthread_mutex_lock(&fake_lock);
	for (uint32_t slot = 0; slot < WATCHES; slot++)
		if (watches[slot].length && first < watches[slot].address + watches[slot].length &&
		    watches[slot].address < first + length)
			fake_gdmabuf_put_word(last_device, watches[slot].generation | 1, slot * 4);
	pthread_mutex_unlock(&fake_lock);
}

static int fake_gdmabuf_unwatch(int device, const struct gdmabuf_watch_id *id)
{
	if (id->slot >= WATCHES || !watches[id->slot].length ||
	    watches[id->slot].generation != id->generation)
		return fake_gdmabuf_set_errno(ENOENT);
	watches[id->slot].length = 0;
	fake_gdmabuf_put_word(device, id->generation | 1, id->slot * 4);
	fake_gdmabuf.watches--;
	return 0;
}

static int fake_gdmabuf_answer_unwatch(int device, const struct gdmabuf_watch_id *id)
{
	int ret;

	pthread_mutex_lock(&fake_lock);
	ret = fake_gdmabuf_unwatch(device, id);
	pthread_mutex_unlock(&fake_lock);
	return ret;
}

int __wrap_ioctl(int fd, unsigned long request, void *arg)
{
	if (request < GDMABUF_CAPS || request > GDMABUF_UNWATCH_HOST)
		return __real_ioctl(fd, request, arg);
	fake_gdmabuf.calls++;
	if (!fake_gdmabuf_is_device(fd))
		return fake_gdmabuf_set_errno(ENOTTY);
	if (!fake_gdmabuf_is_own(fd))
		return fake_gdmabuf_set_errno(EACCES);
	switch (request) {
	case GDMABUF_CAPS:
		return fake_gdmabuf_answer_caps(arg);
	case GDMABUF_EXPORT_HOST:
		return fake_gdmabuf_answer_export(false, arg);
	case GDMABUF_EXPORT_GPU:
		return fake_gdmabuf_answer_export(true, arg);
	case GDMABUF_WATCH_HOST:
		return fake_gdmabuf_answer_watch(fd, arg);
	default:
		return fake_gdmabuf_answer_unwatch(fd, arg);
	}
}
