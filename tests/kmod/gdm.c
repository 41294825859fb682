/* SPDX-License-Identifier: Apache-2.0 */
#include "gdm.h"
#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

void gdm_need_huge_pages(void)
{
	if (HUGE_PAGE > 64 << 20)
		test_skip("huge pages have %zu MiB here, too much for the guest", HUGE_PAGE >> 20);
}

int gdm_open(void)
{
	int ctx = open("/dev/gdmabuf", O_RDWR | O_CLOEXEC);

	if (ctx < 0)
		test_skip("/dev/gdmabuf: %s", strerror(errno));
	return ctx;
}

int gdm_call(int ctx, unsigned long request, void *arg)
{
	return ioctl(ctx, request, arg) ? -errno : 0;
}

static int gdm_export_range(int ctx, unsigned long request, uint64_t address, size_t length,
			    uint32_t flags, int *fd)
{
	struct gdmabuf_export e = {
		.size = sizeof(e),
		.flags = flags,
		.address = address,
		.length = length,
	};
	int err = gdm_call(ctx, request, &e);

	if (err)
		return err;
	if (fd)
		*fd = e.out_fd;
	else
		close(e.out_fd);
	return 0;
}

int gdm_export_host(int ctx, const void *address, size_t length, uint32_t flags, int *fd)
{
	return gdm_export_range(ctx, GDMABUF_EXPORT_HOST, (uintptr_t)address, length, flags, fd);
}

int gdm_export_gpu(int ctx, uint64_t address, size_t length, uint32_t flags, int *fd)
{
	return gdm_export_range(ctx, GDMABUF_EXPORT_GPU, address, length, flags, fd);
}

int gdm_watch_host(int ctx, const void *address, size_t length, struct gdm_watch *watch)
{
	struct gdmabuf_watch_host w = {
		.size = sizeof(w),
		.address = (uintptr_t)address,
		.length = length,
	};
	int err = gdm_call(ctx, GDMABUF_WATCH_HOST, &w);

	if (!err)
		*watch = (struct gdm_watch){ w.out_slot, w.out_generation };
	return err;
}

int gdm_unwatch(int ctx, const struct gdm_watch *watch)
{
	struct gdmabuf_watch_id id = {
		.size = sizeof(id),
		.slot = watch->slot,
		.generation = watch->generation,
	};

	return gdm_call(ctx, GDMABUF_UNWATCH_HOST, &id);
}

const volatile uint32_t *gdm_status(int ctx)
{
	void *p = mmap(NULL, STATUS_BYTES, PROT_READ, MAP_SHARED, ctx, 0);

	EXPECT(p != MAP_FAILED);
	return p;
}

int gdm_is_current(const volatile uint32_t *status, const struct gdm_watch *watch)
{
	return status[watch->slot] == watch->generation;
}

unsigned char pattern_at(size_t i)
{
	return (unsigned char)(i * 131 + (i >> 8) * 17 + (i >> 16) * 7 + 1);
}

void pattern_fill(void *bytes, size_t length)
{
	for (size_t i = 0; i < length; i++)
		((volatile unsigned char *)bytes)[i] = pattern_at(i);
}

size_t pattern_mismatches(const void *bytes, size_t length)
{
	size_t n = 0;

	for (size_t i = 0; i < length; i++)
		n += ((const volatile unsigned char *)bytes)[i] != pattern_at(i);
	return n;
}

unsigned char *pages_new(size_t length, int fill)
{
	void *p = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	EXPECT(p != MAP_FAILED);
	if (fill)
		pattern_fill(p, length);
	return p;
}

static long anonymous_huge_kib(void)
{
	FILE *f = fopen("/proc/self/smaps_rollup", "r");
	char line[128];
	long kib = 0;

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "AnonHugePages: %ld", &kib) == 1)
			break;
	if (f)
		fclose(f);
	return kib;
}

unsigned char *huge_pages_new(size_t n, int fill)
{
	uintptr_t p = (uintptr_t)pages_new((n + 1) * HUGE_PAGE, 0);
	unsigned char *huge = (void *)((p + HUGE_PAGE - 1) & -(uintptr_t)HUGE_PAGE);
	int fd = open("/sys/kernel/mm/transparent_hugepage/enabled", O_WRONLY | O_CLOEXEC);
	long before = anonymous_huge_kib();

	if (fd < 0 || write(fd, "madvise", 7) != 7 || close(fd) ||
	    madvise(huge, n * HUGE_PAGE, MADV_HUGEPAGE))
		return NULL;
	for (size_t i = 0; i < n; i++)
		huge[i * HUGE_PAGE] = 0;
	if (anonymous_huge_kib() - before != (long)(n * HUGE_PAGE >> 10))
		return NULL;
	if (fill)
		pattern_fill(huge, n * HUGE_PAGE);
	return huge;
}

unsigned char *dmabuf_map(int fd, size_t length, int prot)
{
	void *p = mmap(NULL, length, prot, MAP_SHARED, fd, 0);

	return p == MAP_FAILED ? NULL : p;
}

int in_child(void (*body)(void *arg), void *arg)
{
	int status;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	EXPECT(pid >= 0);
	if (!pid) {
		body(arg);
		_exit(0);
	}
	EXPECT_EQ(waitpid(pid, &status, 0), pid);
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

void become_user(size_t memlock)
{
	struct rlimit limit = { memlock, memlock };

	if (setrlimit(RLIMIT_MEMLOCK, &limit) || setgid(1000) || setuid(1000))
		_exit(99);
}

void send_fd(int socket, int fd)
{
	char byte = 0, control[CMSG_SPACE(sizeof(int))] = "";
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(int));
	EXPECT_EQ(sendmsg(socket, &msg, 0), 1);
}

int receive_fd(int socket)
{
	char byte, control[CMSG_SPACE(sizeof(int))];
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};
	int fd;

	EXPECT_EQ(recvmsg(socket, &msg, 0), 1);
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(int));
	return fd;
}

long long gdm_read_total(const char *total)
{
	FILE *f = fopen("/sys/kernel/debug/gdmabuf", "re");
	char line[128], name[64];
	long long value = -1;

	if (!f)
		close(gdm_open());
	EXPECT(f);
	while (value < 0 && fgets(line, sizeof(line), f))
		if (sscanf(line, "%63[^:]:\t%lld", name, &value) != 2 || strcmp(name, total))
			value = -1;
	fclose(f);
	return value;
}

long long gdm_pinned_pages(void)
{
	FILE *f = fopen("/proc/sys/vm/stat_refresh", "we");
	long long value, pinned = 0;
	char name[64];

	/* The write adds each processor's counts to the sum. */
	EXPECT(f && fputs("1", f) >= 0 && !fclose(f));
	f = fopen("/proc/vmstat", "re");
	EXPECT(f);
	while (fscanf(f, "%63s %lld", name, &value) == 2) {
		if (!strcmp(name, "nr_foll_pin_acquired"))
			pinned += value;
		if (!strcmp(name, "nr_foll_pin_released"))
			pinned -= value;
	}
	fclose(f);
	return pinned;
}

int gdm_module_users(const char *module)
{
	char path[64];
	FILE *f;
	int n = -1;

	snprintf(path, sizeof(path), "/sys/module/%s/refcnt", module);
	f = fopen(path, "re");
	EXPECT(f && fscanf(f, "%d", &n) == 1);
	fclose(f);
	return n;
}
