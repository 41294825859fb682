/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gdmabuf against gdrcopy's gdrdrv, in the guest: the same GPU memory, pinned by the same
 * driver, which is the mock, and mapped for the CPU.  Ratios only: the guest is emulated.
 * See run-kmod-gdrdrv.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/gdmabuf.h>
#include <linux/types.h>
#include <linux/udmabuf.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "gdrdrv.h"
#include "mock.h"

enum { ROUNDS = 51, PAGE = 4096, MIB = 1 << 20 };

struct mapping {
	size_t size;
	int fd;
	gdr_hnd_t handle;
	unsigned char *bytes;
};

/* Who pins and maps. */
struct side {
	void (*pin)(struct mapping *m, uint64_t va);
	void (*map)(struct mapping *m);
	void (*unpin)(struct mapping *m);
};

static int gpu, gdmabuf, gdrdrv, udmabuf;

static _Noreturn void die(const char *what)
{
	fprintf(stderr, "bench/kmod-gdrdrv: %s: %s\n", what, strerror(errno));
	exit(1);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
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

static int open_device(const char *path)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);

	if (fd < 0)
		die(path);
	return fd;
}

static uint64_t gpu_alloc(size_t size, uint32_t flags)
{
	struct mock_alloc a = { .length = size, .flags = flags };

	if (ioctl(gpu, MOCK_ALLOC, &a))
		die("MOCK_ALLOC");
	return a.va;
}

static void gpu_free(uint64_t va)
{
	struct mock_free f = { .va = va };

	if (ioctl(gpu, MOCK_FREE, &f))
		die("MOCK_FREE");
}

static unsigned char *map(int fd, size_t size, off_t offset)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, offset);

	if (p == MAP_FAILED)
		die("mmap");
	return p;
}

static int export_gpu(uint64_t va, size_t size, uint32_t flags)
{
	struct gdmabuf_export e = {
		.size = sizeof(e),
		.flags = flags,
		.address = va,
		.length = size,
	};

	if (ioctl(gdmabuf, GDMABUF_EXPORT_GPU, &e))
		die("GDMABUF_EXPORT_GPU");
	return e.out_fd;
}

static void our_pin(struct mapping *m, uint64_t va)
{
	m->fd = export_gpu(va, m->size, 0);
}

static void our_revocable_pin(struct mapping *m, uint64_t va)
{
	m->fd = export_gpu(va, m->size, GDMABUF_REVOCABLE);
}

static void our_map(struct mapping *m)
{
	m->bytes = map(m->fd, m->size, 0);
}

static void our_unpin(struct mapping *m)
{
	close(m->fd);
}

static void their_pin(struct mapping *m, uint64_t va)
{
	struct GDRDRV_IOC_PIN_BUFFER_PARAMS p = { .addr = va, .size = m->size };

	if (ioctl(gdrdrv, GDRDRV_IOC_PIN_BUFFER, &p))
		die("GDRDRV_IOC_PIN_BUFFER");
	m->handle = p.handle;
}

static void their_map(struct mapping *m)
{
	m->bytes = map(gdrdrv, m->size, (off_t)m->handle * PAGE);
}

static void their_unpin(struct mapping *m)
{
	struct GDRDRV_IOC_UNPIN_BUFFER_PARAMS p = { .handle = m->handle };

	if (ioctl(gdrdrv, GDRDRV_IOC_UNPIN_BUFFER, &p))
		die("GDRDRV_IOC_UNPIN_BUFFER");
}

static const struct side ours = { our_pin, our_map, our_unpin };
static const struct side revocable = { our_revocable_pin, our_map, our_unpin };
static const struct side theirs = { their_pin, their_map, their_unpin };

static void touch(unsigned char *bytes, size_t size)
{
	for (size_t i = 0; i < size; i += PAGE)
		((volatile unsigned char *)bytes)[i] = 2;
}

/* Microseconds of one round, and what comes of some of them together. */
enum { PIN, MAP, TOUCH, UNMAP, UNPIN, PIN_MAP, UNMAP_UNPIN, MAP_TOUCH, TIMES };

static void measure(const struct side *side, uint64_t va, size_t size, double t[TIMES][ROUNDS],
		    int i)
{
	struct mapping m = { .size = size };
	double at[6];

	at[0] = now();
	side->pin(&m, va);
	at[1] = now();
	side->map(&m);
	at[2] = now();
	touch(m.bytes, size);
	at[3] = now();
	munmap(m.bytes, size);
	at[4] = now();
	side->unpin(&m);
	at[5] = now();
	for (int k = PIN; k <= UNPIN; k++)
		t[k][i] = at[k + 1] - at[k];
	t[PIN_MAP][i] = at[2] - at[0];
	t[UNMAP_UNPIN][i] = at[5] - at[3];
	t[MAP_TOUCH][i] = at[3] - at[1];
}

static void print_ratio(const char *what, double a, double b)
{
	printf("  %s %8.1f/%8.1f us = %4.2f", what, a, b, a / b);
}

/* Whoever is first in a round finds other caches than who is second: they take turns. */
static void compare(size_t size, uint32_t flags)
{
	static double a[TIMES][ROUNDS], b[TIMES][ROUNDS];
	uint64_t va = gpu_alloc(size, flags);

	for (int i = 0; i < ROUNDS; i++) {
		if (i % 2)
			measure(&ours, va, size, a, i);
		measure(&theirs, va, size, b, i);
		if (i % 2 == 0)
			measure(&ours, va, size, a, i);
	}
	printf("%6zu KiB%s", size >> 10, flags & MOCK_SCATTER ? " scattered" : "          ");
	print_ratio("pin+map", median(a[PIN_MAP]), median(b[PIN_MAP]));
	print_ratio("touch", median(a[TOUCH]), median(b[TOUCH]));
	print_ratio("unmap+unpin", median(a[UNMAP_UNPIN]), median(b[UNMAP_UNPIN]));
	printf("\n%21s", "");
	print_ratio("(pin", median(a[PIN]), median(b[PIN]));
	print_ratio("map", median(a[MAP]), median(b[MAP]));
	print_ratio("unmap", median(a[UNMAP]), median(b[UNMAP]));
	print_ratio("unpin", median(a[UNPIN]), median(b[UNPIN]));
	printf(")\n");
	gpu_free(va);
}

static double copy(void *to, const void *from, size_t size)
{
	double start = now();

	memcpy(to, from, size);
	return now() - start;
}

static void bandwidth(void)
{
	enum { WRITTEN = 16 * MIB, READ = MIB };
	static double v[4][ROUNDS];
	uint64_t va = gpu_alloc(WRITTEN, 0);
	struct mapping a = { .size = WRITTEN }, b = { .size = WRITTEN };
	unsigned char *memory = malloc(WRITTEN);

	if (!memory)
		die("malloc");
	memset(memory, 3, WRITTEN);
	our_pin(&a, va);
	our_map(&a);
	their_pin(&b, va);
	their_map(&b);
	for (int i = 0; i < ROUNDS; i++) {
		int first = i % 2;

		/* What a first copy leaves in the caches counts for neither. */
		for (int k = 0; k < 2; k++)
			v[first ^ k][i] = copy(first ^ k ? b.bytes : a.bytes, memory, WRITTEN);
		for (int k = 0; k < 2; k++) {
			copy(memory, first ^ k ? b.bytes : a.bytes, READ);
			v[2 + (first ^ k)][i] = copy(memory, first ^ k ? b.bytes : a.bytes, READ);
		}
	}
	if (memcmp(a.bytes, b.bytes, WRITTEN))
		die("not the same memory");
	for (int k = 0; k < 4; k++)
		median(v[k]);
	printf("bandwidth of ours / theirs: write of %d MiB %4.2f (%.0f MB/s), read of %d MiB "
	       "%4.2f (%.0f MB/s)\n",
	       WRITTEN / MIB, v[1][ROUNDS / 2] / v[0][ROUNDS / 2], WRITTEN / v[0][ROUNDS / 2],
	       READ / MIB, v[3][ROUNDS / 2] / v[2][ROUNDS / 2], READ / v[2][ROUNDS / 2]);
	munmap(a.bytes, WRITTEN);
	munmap(b.bytes, WRITTEN);
	our_unpin(&a);
	their_unpin(&b);
	gpu_free(va);
	free(memory);
}

static void hit(size_t size)
{
	static double v[2][ROUNDS];
	struct gdmabuf_caps caps = { .size = sizeof(caps) };
	uint64_t va = gpu_alloc(size, 0);
	int first = export_gpu(va, size, 0);

	for (int i = 0; i < ROUNDS; i++) {
		double start = now(), middle;
		int fd = export_gpu(va, size, 0);

		middle = now();
		if (ioctl(gdmabuf, GDMABUF_CAPS, &caps))
			die("GDMABUF_CAPS");
		v[0][i] = middle - start;
		v[1][i] = now() - middle;
		close(fd);
	}
	median(v[0]);
	median(v[1]);
	printf("%6zu KiB pinned already: export %.1f us, empty ioctl %.1f us, difference %.1f us\n",
	       size >> 10, v[0][ROUNDS / 2], v[1][ROUNDS / 2], v[0][ROUNDS / 2] - v[1][ROUNDS / 2]);
	close(first);
	gpu_free(va);
}

static long faults(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_minflt + usage.ru_majflt;
}

/* mmap() of a dma-buf and a write to each page. */
static double first_touch(int fd, size_t size, long *nr_faults)
{
	long before = faults();
	double start = now(), t;
	unsigned char *bytes = map(fd, size, 0);

	touch(bytes, size);
	t = now() - start;
	*nr_faults = faults() - before;
	munmap(bytes, size);
	return t;
}

static int udmabuf_new(size_t size)
{
	struct udmabuf_create c = { .flags = UDMABUF_FLAGS_CLOEXEC, .size = size };
	int memfd = memfd_create("bench", MFD_CLOEXEC | MFD_ALLOW_SEALING), fd;
	unsigned char *bytes;

	if (memfd < 0 || ftruncate(memfd, (off_t)size) || fcntl(memfd, F_ADD_SEALS, F_SEAL_SHRINK))
		die("memfd");
	bytes = map(memfd, size, 0);
	touch(bytes, size);
	munmap(bytes, size);
	c.memfd = (__u32)memfd;
	fd = ioctl(udmabuf, UDMABUF_CREATE, &c);
	if (fd < 0)
		die("UDMABUF_CREATE");
	close(memfd);
	return fd;
}

static void compare_touch(size_t size)
{
	static const char *const names[] = { "held", "revocable", "udmabuf, by faults" };
	static double v[3][ROUNDS];
	uint64_t va = gpu_alloc(size, 0);
	struct mapping held = { .size = size }, lent = { .size = size };
	long nr_faults[3];
	int fd[3];

	ours.pin(&held, va);
	revocable.pin(&lent, va);
	fd[0] = held.fd;
	fd[1] = lent.fd;
	fd[2] = udmabuf_new(size);
	for (int i = 0; i < ROUNDS; i++)
		for (int k = 0; k < 3; k++)
			v[k][i] = first_touch(fd[k], size, &nr_faults[k]);
	for (int k = 0; k < 3; k++)
		median(v[k]);
	printf("%6zu KiB mmap and first touch:", size >> 10);
	for (int k = 0; k < 3; k++) {
		printf("  %s %.0f us, %ld faults", names[k], v[k][ROUNDS / 2], nr_faults[k]);
		if (k < 2)
			printf(", 1/%.1f of udmabuf's", v[2][ROUNDS / 2] / v[k][ROUNDS / 2]);
		close(fd[k]);
	}
	printf("\n");
	gpu_free(va);
}

int main(void)
{
	static const struct mock_config works;

	setvbuf(stdout, NULL, _IOLBF, 0);
	gpu = open_device("/dev/gdmabuf_mock");
	gdmabuf = open_device("/dev/gdmabuf");
	gdrdrv = open_device("/dev/gdrdrv");
	udmabuf = open_device("/dev/udmabuf");
	if (ioctl(gpu, MOCK_CONFIG, &works))
		die("MOCK_CONFIG");
	printf("gdmabuf/gdrdrv, medians of %d; times below 1, bandwidth above 1: gdmabuf is "
	       "better\n",
	       ROUNDS);
	compare(64 << 10, 0);
	for (size_t size = MIB; size <= 256 * (size_t)MIB; size *= 4)
		if (size != 4 * MIB)
			compare(size, 0);
	compare(16 * MIB, MOCK_SCATTER);
	bandwidth();
	hit(64 << 10);
	hit(64 * MIB);
	compare_touch(64 * (size_t)MIB);
	return 0;
}
