/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gdmabuf against udmabuf, in the guest: the same pages of one memfd as dma-bufs.
 * Ratios only: the guest is emulated.  See run-kmod.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/gdmabuf.h>
#include <linux/udmabuf.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 101 };

struct memory {
	int memfd;
	size_t size;
	unsigned char *bytes;
};

static int gdmabuf, udmabuf;

static _Noreturn void die(const char *what)
{
	fprintf(stderr, "bench/kmod: %s: %s\n", what, strerror(errno));
	exit(1);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static struct memory memory_new(size_t size, unsigned int huge)
{
	struct memory m = { .size = size };

	m.memfd = memfd_create("bench", MFD_CLOEXEC | MFD_ALLOW_SEALING | huge);
	if (m.memfd < 0 || ftruncate(m.memfd, (off_t)size) ||
	    fcntl(m.memfd, F_ADD_SEALS, F_SEAL_SHRINK))
		die("memfd");
	m.bytes = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, m.memfd, 0);
	if (m.bytes == MAP_FAILED)
		die("mmap of a memfd");
	memset(m.bytes, 1, size);
	return m;
}

static void memory_free(struct memory *m)
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
		die("GDMABUF_EXPORT_HOST");
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
		die("UDMABUF_CREATE");
	return fd;
}

/* Microseconds: to export, to map and write every page, to let go. */
struct times {
	double export, touch, close;
};

static struct times measure(const struct memory *m, int (*export)(const struct memory *m))
{
	struct times t;
	double start = now();
	int fd = export(m);
	volatile unsigned char *view;

	t.export = now() - start;
	start = now();
	view = mmap(NULL, m->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (view == MAP_FAILED)
		die("mmap of a dma-buf");
	for (size_t i = 0; i < m->size; i += 4096)
		view[i] = 2;
	t.touch = now() - start;
	munmap((void *)(uintptr_t)view, m->size);
	start = now();
	close(fd);
	t.close = now() - start;
	return t;
}

static int order(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *v)
{
	qsort(v, ROUNDS, sizeof(*v), order);
	return v[ROUNDS / 2];
}

static void compare(size_t size, unsigned int huge, const char *pages)
{
	static double v[6][ROUNDS];
	struct memory m = memory_new(size, huge);

	for (int i = 0; i < ROUNDS; i++) {
		struct times ours = measure(&m, by_gdmabuf), theirs = measure(&m, by_udmabuf);

		v[0][i] = ours.export;
		v[1][i] = theirs.export;
		v[2][i] = ours.touch;
		v[3][i] = theirs.touch;
		v[4][i] = ours.close;
		v[5][i] = theirs.close;
	}
	printf("%8zu KiB, %s:  export %7.1f us, %5.2f of udmabuf's   map and touch %5.2f   close "
	       "%5.2f\n",
	       size >> 10, pages, median(v[0]), v[0][ROUNDS / 2] / median(v[1]),
	       median(v[2]) / median(v[3]), median(v[4]) / median(v[5]));
	memory_free(&m);
}

static double empty_ioctl(void)
{
	static double v[ROUNDS];
	struct gdmabuf_caps caps = { .size = sizeof(caps) };

	for (int i = 0; i < ROUNDS; i++) {
		double start = now();

		if (ioctl(gdmabuf, GDMABUF_CAPS, &caps))
			die("GDMABUF_CAPS");
		v[i] = now() - start;
	}
	return median(v);
}

static void hit(size_t size)
{
	static double v[ROUNDS];
	struct memory m = memory_new(size, 0);
	int first = by_gdmabuf(&m);

	for (int i = 0; i < ROUNDS; i++) {
		double start = now();
		int fd = by_gdmabuf(&m);

		v[i] = now() - start;
		close(fd);
	}
	printf("%8zu KiB, pinned already: export %.1f us; an ioctl that does nothing %.1f us\n",
	       size >> 10, median(v), empty_ioctl());
	close(first);
	memory_free(&m);
}

int main(void)
{
	gdmabuf = open("/dev/gdmabuf", O_RDWR | O_CLOEXEC);
	udmabuf = open("/dev/udmabuf", O_RDWR | O_CLOEXEC);
	if (gdmabuf < 0 || udmabuf < 0)
		die(gdmabuf < 0 ? "/dev/gdmabuf" : "/dev/udmabuf");
	puts("the same pages of a memfd, medians; less than 1 is faster than udmabuf");
	for (size_t size = 64 << 10; size <= 64 << 20; size *= 4)
		compare(size, 0, "4 KiB pages");
	compare(64 << 20, 0, "4 KiB pages");
	for (size_t size = 2 << 20; size <= 64 << 20; size *= 4)
		compare(size, MFD_HUGETLB | (21u << 26), "2 MiB pages");
	hit(64 << 10);
	hit(64 << 20);
	return 0;
}
