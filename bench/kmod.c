/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gdmabuf against udmabuf, in the guest: the same pages of one memfd as dma-bufs.
 * Ratios only: the guest is emulated.  See run-kmod.
 *
 * kmod [FILE]: figures for bench/run go to the file.
 */
#include <fcntl.h>
#include <limits.h>
#include <linux/gdmabuf.h>
#include <linux/udmabuf.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kmod.h"

struct memory {
	int memfd;
	size_t size;
	unsigned char *bytes;
};

static int gdmabuf, udmabuf;
static FILE *json;

static struct memory memory_new(size_t size, unsigned int huge)
{
	struct memory m = { .size = size };

	m.memfd = memfd_create("bench", MFD_CLOEXEC | MFD_ALLOW_SEALING | huge);
	if (m.memfd < 0 || ftruncate(m.memfd, (off_t)size) ||
	    fcntl(m.memfd, F_ADD_SEALS, F_SEAL_SHRINK))
		kmod_die("memfd");
	m.bytes = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, m.memfd, 0);
	if (m.bytes == MAP_FAILED)
		kmod_die("mmap of a memfd");
	memset(m.bytes, 1, size);
	return m;
}

static void udmabuf_memory_free(struct memory *m)
{
	munmap(m->bytes, m->size);
	close(m->memfd);
}

static int by_gdmabuf(const struct memory *m)
{
	struct gdmabuf_export e = {
		.size = sizeof(e),
		.address = (uintptr_t)m->bytes,
		.length = m->size,
	};

	if (ioctl(gdmabuf, GDMABUF_EXPORT_HOST, &e))
		kmod_die("GDMABUF_EXPORT_HOST");
	return e.out_fd;
}

static int by_udmabuf(const struct memory *m)
{
	struct udmabuf_create c = {
		.memfd = (__u32)m->memfd,
		.flags = UDMABUF_FLAGS_CLOEXEC,
		.size = m->size,
	};
	int fd = ioctl(udmabuf, UDMABUF_CREATE, &c);

	if (fd < 0)
		kmod_die("UDMABUF_CREATE");
	return fd;
}

/* Microseconds: to export, to map and write every page, to let go. */
enum { EXPORT, TOUCH, CLOSE, TIMES };

static void udmabuf_measure(const struct memory *m, int (*export)(const struct memory *m),
			    double t[TIMES][ROUNDS], int i)
{
	double start = kmod_now();
	int fd = export(m);
	volatile unsigned char *view;

	t[EXPORT][i] = kmod_now() - start;
	start = kmod_now();
	view = mmap(NULL, m->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (view == MAP_FAILED)
		kmod_die("mmap of a dma-buf");
	for (size_t at = 0; at < m->size; at += 4096)
		view[at] = 2;
	t[TOUCH][i] = kmod_now() - start;
	munmap((void *)(uintptr_t)view, m->size);
	start = kmod_now();
	close(fd);
	t[CLOSE][i] = kmod_now() - start;
}

/* The first in a round finds other caches than the second, so both take turns. */
static void udmabuf_compare(size_t size, unsigned int huge, const char *pages)
{
	static const char *const names[TIMES] = { "export", "map and touch", "close" };
	static double ours[TIMES][ROUNDS], theirs[TIMES][ROUNDS];
	struct memory m = memory_new(size, huge);

	for (int i = 0; i < ROUNDS; i++) {
		if (i % 2)
			udmabuf_measure(&m, by_gdmabuf, ours, i);
		udmabuf_measure(&m, by_udmabuf, theirs, i);
		if (i % 2 == 0)
			udmabuf_measure(&m, by_gdmabuf, ours, i);
	}
	printf("%6zu KiB, %s:", size >> 10, pages);
	for (int k = 0; k < TIMES; k++) {
		double a = kmod_best(ours[k]), b = kmod_best(theirs[k]);
		char name[64];

		printf("  %s %.1f us, %.2f of udmabuf's", names[k], a, a / b);
		snprintf(name, sizeof(name), "%s, %zu KiB, %s", names[k], size >> 10, pages);
		kmod_figure(json, "gdmabuf", name, a / b, "x udmabuf");
	}
	putchar('\n');
	udmabuf_memory_free(&m);
}

/* ---- the last close, in another process than the one that exported ---- */

static void send_dmabuf(int socket, int fd)
{
	char byte = 0, control[CMSG_SPACE(sizeof(int))] = "";
	struct iovec iov = { &byte, 1 };
	struct msghdr message = { .msg_iov = &iov,
				  .msg_iovlen = 1,
				  .msg_control = control,
				  .msg_controllen = sizeof(control) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&message);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(int));
	if (sendmsg(socket, &message, 0) != 1)
		kmod_die("sendmsg");
}

static int receive_dmabuf(int socket)
{
	char byte, control[CMSG_SPACE(sizeof(int))];
	struct iovec iov = { &byte, 1 };
	struct msghdr message = { .msg_iov = &iov,
				  .msg_iovlen = 1,
				  .msg_control = control,
				  .msg_controllen = sizeof(control) };
	int fd;

	if (recvmsg(socket, &message, 0) != 1)
		kmod_die("recvmsg");
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(int));
	return fd;
}

static void *exporter_thread(void *arg)
{
	pause();
	return arg;
}

/* A process with so many threads exports, sends and closes a dma-buf for each byte that comes. */
static _Noreturn void exporter_run(int socket, int threads)
{
	struct memory m = memory_new(64 << 10, 0);
	pthread_attr_t small;
	pthread_t thread;
	char byte;

	gdmabuf = open("/dev/gdmabuf", O_RDWR | O_CLOEXEC);
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, PTHREAD_STACK_MIN);
	for (int i = 1; i < threads; i++)
		if (pthread_create(&thread, &small, exporter_thread, NULL))
			kmod_die("pthread_create");
	while (read(socket, &byte, 1) == 1) {
		int fd = by_gdmabuf(&m);

		send_dmabuf(socket, fd);
		close(fd);
		if (write(socket, &byte, 1) != 1)
			break;
	}
	_exit(0);
}

/* Microseconds. */
static double close_elsewhere(int threads)
{
	static double v[ROUNDS];
	int sockets[2];
	char byte = 0;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, sockets))
		kmod_die("socketpair");
	pid = fork();
	if (!pid) {
		close(sockets[0]);
		exporter_run(sockets[1], threads);
	}
	close(sockets[1]);
	for (int i = 0; i < ROUNDS; i++) {
		double start;
		int fd;

		if (write(sockets[0], &byte, 1) != 1)
			kmod_die("the exporter");
		fd = receive_dmabuf(sockets[0]);
		if (read(sockets[0], &byte, 1) != 1)
			kmod_die("the exporter");
		start = kmod_now();
		close(fd);
		v[i] = kmod_now() - start;
	}
	close(sockets[0]);
	waitpid(pid, NULL, 0);
	return kmod_best(v);
}

static void compare_close_elsewhere(void)
{
	double one = close_elsewhere(1), many = close_elsewhere(1000);

	printf("    64 KiB, the last close in another process: %.1f us, with 1,000 threads in the "
	       "exporter %.1f us\n",
	       one, many);
	kmod_figure(json, "gdmabuf", "last close elsewhere, 1,000 threads in the exporter",
		    many / one, "x one thread");
}

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	json = figures_open(argc, argv);
	gdmabuf = open("/dev/gdmabuf", O_RDWR | O_CLOEXEC);
	udmabuf = open("/dev/udmabuf", O_RDWR | O_CLOEXEC);
	if (gdmabuf < 0 || udmabuf < 0)
		kmod_die(gdmabuf < 0 ? "/dev/gdmabuf" : "/dev/udmabuf");
	puts("the same pages of a memfd, best of 51; less than 1 is faster than udmabuf");
	for (size_t size = 64 << 10; size <= 64 << 20; size *= 4)
		udmabuf_compare(size, 0, "4 KiB pages");
	for (size_t size = 2 << 20; size <= 64 << 20; size *= 4)
		udmabuf_compare(size, MFD_HUGETLB | (21u << 26), "2 MiB pages");
	compare_close_elsewhere();
	figures_close(json);
	return 0;
}
