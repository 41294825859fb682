/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gdmabuf against gdrcopy's gdrdrv, in the guest: the same GPU memory, pinned by the same
 * function of the driver (the mock) and mapped for the CPU.  Ratios only: the guest is emulated.
 * See run-kmod-gdrdrv.
 *
 * kmod-gdrdrv [FILE]: figures for bench/run go to the file.
 */
#include <fcntl.h>
#include <linux/gdmabuf.h>
#include <linux/types.h>
#include <linux/udmabuf.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "gdrdrv.h"
#include "kmod.h"
#include "mock.h"

enum { PAGE = 4096, MIB = 1 << 20 };

struct mapping {
	size_t size;
	int fd;
	gdr_hnd_t handle;
	unsigned char *bytes;
};

/* The module that pins and maps. */
struct side {
	const char *name;
	void (*pin)(struct mapping *m, uint64_t va);
	void (*map)(struct mapping *m);
	void (*unpin)(struct mapping *m);
};

static int gpu, gdmabuf, gdrdrv, udmabuf;
static FILE *json;

static int open_device(const char *path)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);

	if (fd < 0)
		kmod_die(path);
	return fd;
}

static uint64_t gpu_alloc(size_t size, uint32_t flags)
{
	struct mock_alloc a = { .length = size, .flags = flags };

	if (ioctl(gpu, MOCK_ALLOC, &a))
		kmod_die("MOCK_ALLOC");
	return a.va;
}

static void gpu_free(uint64_t va)
{
	struct mock_free f = { .va = va };

	if (ioctl(gpu, MOCK_FREE, &f))
		kmod_die("MOCK_FREE");
}

static unsigned char *gdrdrv_map(int fd, size_t size, off_t offset)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, offset);

	if (p == MAP_FAILED)
		kmod_die("mmap");
	return p;
}

static void our_pin(struct mapping *m, uint64_t va)
{
	struct gdmabuf_export e = {
		.size = sizeof(e),
		.address = va,
		.length = m->size,
	};

	if (ioctl(gdmabuf, GDMABUF_EXPORT_GPU, &e))
		kmod_die("GDMABUF_EXPORT_GPU");
	m->fd = e.out_fd;
}

static void our_map(struct mapping *m)
{
	m->bytes = gdrdrv_map(m->fd, m->size, 0);
}

static void our_unpin(struct mapping *m)
{
	close(m->fd);
}

static void their_pin(struct mapping *m, uint64_t va)
{
	struct GDRDRV_IOC_PIN_BUFFER_PARAMS p = { .addr = va, .size = m->size };

	if (ioctl(gdrdrv, GDRDRV_IOC_PIN_BUFFER, &p))
		kmod_die("GDRDRV_IOC_PIN_BUFFER");
	m->handle = p.handle;
}

static void their_map(struct mapping *m)
{
	m->bytes = gdrdrv_map(gdrdrv, m->size, (off_t)m->handle * PAGE);
}

static void their_unpin(struct mapping *m)
{
	struct GDRDRV_IOC_UNPIN_BUFFER_PARAMS p = { .handle = m->handle };

	if (ioctl(gdrdrv, GDRDRV_IOC_UNPIN_BUFFER, &p))
		kmod_die("GDRDRV_IOC_UNPIN_BUFFER");
}

enum { THEIRS, OURS, SIDES };

static const struct side sides[SIDES] = {
	[THEIRS] = { "gdrdrv", their_pin, their_map, their_unpin },
	[OURS] = { "gdmabuf", our_pin, our_map, our_unpin },
};

static void gdrdrv_touch(unsigned char *bytes, size_t size)
{
	for (size_t i = 0; i < size; i += PAGE)
		((volatile unsigned char *)bytes)[i] = 2;
}

/* Microseconds of one round, and sums of some steps. */
enum { PIN, MAP, TOUCH, UNMAP, UNPIN, PIN_MAP, PIN_MAP_TOUCH, UNMAP_UNPIN, TIMES };

static const char *const time_names[TIMES] = {
	"pin", "map", "touch", "unmap", "unpin", "pin+map", "pin+map+touch", "unmap+unpin",
};

static void gdrdrv_measure(const struct side *side, uint64_t va, size_t size,
			   double t[TIMES][ROUNDS], int i)
{
	struct mapping m = { .size = size };
	double at[6];

	at[0] = kmod_now();
	side->pin(&m, va);
	at[1] = kmod_now();
	side->map(&m);
	at[2] = kmod_now();
	gdrdrv_touch(m.bytes, size);
	at[3] = kmod_now();
	munmap(m.bytes, size);
	at[4] = kmod_now();
	side->unpin(&m);
	at[5] = kmod_now();
	for (int k = PIN; k <= UNPIN; k++)
		t[k][i] = at[k + 1] - at[k];
	t[PIN_MAP][i] = at[2] - at[0];
	t[PIN_MAP_TOUCH][i] = at[3] - at[0];
	t[UNMAP_UNPIN][i] = at[5] - at[3];
}

static void gdrdrv_print_times(const struct side *side, const double t[TIMES],
			       const double base[TIMES])
{
	printf("    %-10s", side->name);
	for (int k = PIN; k < TIMES; k++) {
		printf(" %9.1f", t[k]);
		if (t != base)
			printf(" (%5.2f)", t[k] / base[k]);
		else
			printf("%8s", "");
	}
	putchar('\n');
}

static void write_figures(const char *what, const struct side *side, const double t[TIMES],
			  const double base[TIMES])
{
	char name[96];

	for (int k = PIN_MAP; k < TIMES; k++) {
		snprintf(name, sizeof(name), "%s, %s, %s", side->name, time_names[k], what);
		kmod_figure(json, "gdrdrv", name, t[k] / base[k], "x gdrdrv");
	}
}

/* The first in a round finds other caches than the second, so both take turns. */
static void gdrdrv_compare(size_t size, uint32_t flags, unsigned int delay_us)
{
	static double v[SIDES][TIMES][ROUNDS];
	double bests[SIDES][TIMES];
	struct mock_config config = { .delay_us = delay_us };
	uint64_t va = gpu_alloc(size, flags);
	char what[64];

	if (ioctl(gpu, MOCK_CONFIG, &config))
		kmod_die("MOCK_CONFIG");
	for (int i = 0; i < ROUNDS; i++)
		for (int k = 0; k < SIDES; k++)
			gdrdrv_measure(&sides[(i + k) % SIDES], va, size, v[(i + k) % SIDES], i);
	snprintf(what, sizeof(what), "%zu KiB%s%s", size >> 10,
		 flags & MOCK_SCATTER ? " scattered" : "", delay_us ? ", pins of 1 ms" : "");
	puts(what);
	for (int s = 0; s < SIDES; s++) {
		for (int k = 0; k < TIMES; k++)
			bests[s][k] = kmod_best(v[s][k]);
		gdrdrv_print_times(&sides[s], bests[s], bests[THEIRS]);
		if (s != THEIRS)
			write_figures(what, &sides[s], bests[s], bests[THEIRS]);
	}
	gpu_free(va);
}

static void compare_all(unsigned int delay_us)
{
	printf("%14s", "");
	for (int k = 0; k < TIMES; k++)
		printf(" %9s        ", time_names[k]);
	putchar('\n');
	gdrdrv_compare(64 << 10, 0, delay_us);
	gdrdrv_compare(MIB, 0, delay_us);
	for (size_t size = 16 * MIB; size <= 256 * (size_t)MIB; size *= 4)
		gdrdrv_compare(size, 0, delay_us);
	gdrdrv_compare(16 * MIB, MOCK_SCATTER, delay_us);
}

static double gdrdrv_copy(void *to, const void *from, size_t size)
{
	double start = kmod_now();

	memcpy(to, from, size);
	return kmod_now() - start;
}

static void gdrdrv_bandwidth(void)
{
	enum { WRITTEN = 16 * MIB, READ = MIB };
	static double v[4][ROUNDS];
	double t[4];
	uint64_t va = gpu_alloc(WRITTEN, 0);
	struct mapping a = { .size = WRITTEN }, b = { .size = WRITTEN };
	unsigned char *memory = malloc(WRITTEN);

	if (!memory)
		kmod_die("malloc");
	memset(memory, 3, WRITTEN);
	our_pin(&a, va);
	our_map(&a);
	their_pin(&b, va);
	their_map(&b);
	for (int i = 0; i < ROUNDS; i++) {
		int first = i % 2;

		/* A copy first, so that both find warm caches. */
		for (int k = 0; k < 2; k++)
			v[first ^ k][i] =
				gdrdrv_copy(first ^ k ? b.bytes : a.bytes, memory, WRITTEN);
		for (int k = 0; k < 2; k++) {
			gdrdrv_copy(memory, first ^ k ? b.bytes : a.bytes, READ);
			v[2 + (first ^ k)][i] =
				gdrdrv_copy(memory, first ^ k ? b.bytes : a.bytes, READ);
		}
	}
	if (memcmp(a.bytes, b.bytes, WRITTEN))
		kmod_die("not the same memory");
	for (int k = 0; k < 4; k++)
		t[k] = kmod_best(v[k]);
	kmod_figure(json, "gdrdrv", "bandwidth, write", t[1] / t[0], "x gdrdrv");
	kmod_figure(json, "gdrdrv", "bandwidth, read", t[3] / t[2], "x gdrdrv");
	printf("bandwidth of ours / theirs: write of %d MiB %4.2f (%.0f MB/s), read of %d MiB "
	       "%4.2f (%.0f MB/s)\n",
	       WRITTEN / MIB, t[1] / t[0], WRITTEN / t[0], READ / MIB, t[3] / t[2], READ / t[2]);
	munmap(a.bytes, WRITTEN);
	munmap(b.bytes, WRITTEN);
	our_unpin(&a);
	their_unpin(&b);
	gpu_free(va);
	free(memory);
}

static long gdrdrv_faults(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_minflt + usage.ru_majflt;
}

/* mmap() of a dma-buf and a write to each page. */
static double first_touch(int fd, size_t size, long *nr_faults)
{
	long before = gdrdrv_faults();
	double start = kmod_now(), t;
	unsigned char *bytes = gdrdrv_map(fd, size, 0);

	gdrdrv_touch(bytes, size);
	t = kmod_now() - start;
	*nr_faults = gdrdrv_faults() - before;
	munmap(bytes, size);
	return t;
}

static int udmabuf_new(size_t size)
{
	struct udmabuf_create c = { .flags = UDMABUF_FLAGS_CLOEXEC, .size = size };
	int memfd = memfd_create("bench", MFD_CLOEXEC | MFD_ALLOW_SEALING), fd;
	unsigned char *bytes;

	if (memfd < 0 || ftruncate(memfd, (off_t)size) || fcntl(memfd, F_ADD_SEALS, F_SEAL_SHRINK))
		kmod_die("memfd");
	bytes = gdrdrv_map(memfd, size, 0);
	gdrdrv_touch(bytes, size);
	munmap(bytes, size);
	c.memfd = (__u32)memfd;
	fd = ioctl(udmabuf, UDMABUF_CREATE, &c);
	if (fd < 0)
		kmod_die("UDMABUF_CREATE");
	close(memfd);
	return fd;
}

static void compare_touch(size_t size)
{
	static const char *const names[] = { "gdmabuf", "udmabuf, by faults" };
	static double v[2][ROUNDS];
	double t[2];
	uint64_t va = gpu_alloc(size, 0);
	struct mapping ours = { .size = size };
	long nr_faults[2];
	int fd[2];

	our_pin(&ours, va);
	fd[0] = ours.fd;
	fd[1] = udmabuf_new(size);
	for (int i = 0; i < ROUNDS; i++)
		for (int k = 0; k < 2; k++)
			v[k][i] = first_touch(fd[k], size, &nr_faults[k]);
	for (int k = 0; k < 2; k++)
		t[k] = kmod_best(v[k]);
	printf("%6zu KiB mmap and first touch:", size >> 10);
	for (int k = 0; k < 2; k++) {
		printf("  %s %.0f us, %ld faults", names[k], t[k], nr_faults[k]);
		close(fd[k]);
	}
	printf(", 1/%.1f of udmabuf's\n", t[1] / t[0]);
	gpu_free(va);
}

int main(int argc, char **argv)
{
	static const struct mock_config works;

	setvbuf(stdout, NULL, _IOLBF, 0);
	json = figures_open(argc, argv);
	gpu = open_device("/dev/gdmabuf_mock");
	gdmabuf = open_device("/dev/gdmabuf");
	gdrdrv = open_device("/dev/gdrdrv");
	udmabuf = open_device("/dev/udmabuf");
	printf("microseconds, best of %d, and in brackets times gdrdrv's; a pin costs nothing\n",
	       ROUNDS);
	compare_all(0);
	puts("the same; a pin takes 1 ms, about what one of the real driver does");
	compare_all(1000);
	if (ioctl(gpu, MOCK_CONFIG, &works))
		kmod_die("MOCK_CONFIG");
	gdrdrv_bandwidth();
	compare_touch(64 * (size_t)MIB);
	figures_close(json);
	return 0;
}
