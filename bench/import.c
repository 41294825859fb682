/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Import and release of populated host memory, against clCreateBuffer with
 * CL_MEM_USE_HOST_PTR and release; and the kernel's time to answer whether a
 * range is mapped, which is the difference.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bench.h"

#define ROUNDS 9
#define CALLS 20000
#define LARGEST ((size_t)1 << 30)

/* linux/fs.h of 6.11 */
struct procmap_query_v1 {
	uint64_t size, query_flags, query_addr, answer[6];
	uint32_t more[4];
	uint64_t addresses[2];
};

enum way { CREATE, IMPORT, GETPPID, PROCMAP, MSYNC, WAYS };

static void import_measure_once(enum way way, struct bench *b, unsigned char *memory, size_t size,
				int maps)
{
	struct procmap_query_v1 query = { .size = sizeof(query), .query_addr = (uintptr_t)memory };
	cl_int err;

	switch (way) {
	case CREATE:
		clReleaseMemObject(clCreateBuffer(
			b->context, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, size, memory, &err));
		break;
	case IMPORT:
		clReleaseMemObject(
			b->import(b->context, CL_MEM_READ_WRITE, NULL, memory, size, &err));
		break;
	case GETPPID:
		getppid();
		break;
	case PROCMAP:
		ioctl(maps, _IOWR('f', 17, struct procmap_query_v1), &query);
		break;
	case MSYNC:
		msync(memory, size, MS_ASYNC);
		break;
	case WAYS:
		break;
	}
}

static void import_measure(struct bench *b, unsigned char *memory, size_t size, int maps,
			   double *best)
{
	for (int round = 0; round < ROUNDS; round++)
		for (int way = 0; way < WAYS; way++) {
			double start = now_ns(), each;

			for (int i = 0; i < CALLS; i++)
				import_measure_once(way, b, memory, size, maps);
			each = (now_ns() - start) / CALLS;
			if (!best[way] || each < best[way])
				best[way] = each;
		}
}

static void report_size(size_t size, const double *best)
{
	char name[64];
	const char *unit = size >> 30 ? "GiB" : size >> 20 ? "MiB" : "KiB";
	size_t n = size >> 30 ? size >> 30 : size >> 20 ? size >> 20 : size >> 10;

	snprintf(name, sizeof(name), "import+release, %zu %s", n, unit);
	bench_figure("import", name, best[IMPORT] / best[CREATE], "x create+release", "at most 2");
	snprintf(name, sizeof(name), "  without the mapping check, %zu %s", n, unit);
	bench_figure("import", name, (best[IMPORT] - best[PROCMAP]) / best[CREATE],
		     "x create+release", NULL);
	snprintf(name, sizeof(name), "  ioctl PROCMAP_QUERY, %zu %s", n, unit);
	bench_figure("import", name, best[PROCMAP] / best[CREATE], "x create+release", NULL);
	snprintf(name, sizeof(name), "  msync(MS_ASYNC), %zu %s", n, unit);
	bench_figure("import", name, best[MSYNC] / best[CREATE], "x create+release", NULL);
	snprintf(name, sizeof(name), "  the cheapest system call, %zu %s", n, unit);
	bench_figure("import", name, best[GETPPID] / best[CREATE], "x create+release", NULL);
}

void bench_import(struct bench *b)
{
	unsigned char *memory =
		mmap(NULL, LARGEST, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int maps = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);

	if (memory == MAP_FAILED) {
		fprintf(stderr, "bench: no memory for 1 GiB: %m\n");
		exit(1);
	}
	memset(memory, 1, LARGEST);
	for (size_t size = 4096; size <= LARGEST; size *= 64) {
		double best[WAYS] = { 0 };

		import_measure(b, memory, size, maps, best);
		report_size(size, best);
	}
	munmap(memory, LARGEST);
	close(maps);
}
