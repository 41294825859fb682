/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slab: the cost of climport_alloc() and climport_free() in a CUDA slab, for docs/libclimport.md.
 *
 * A part of a slab that has other parts, and the only part of a slab; with and without a primary
 * context of the program's.  Prints medians in microseconds.  For a machine with an NVIDIA GPU.
 */
#include <CL/climport.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define TIMES 41
#define FEW 5 /* where a context comes and goes */
#define SIZE 4096

/* CUDA's functions for a primary context of the program's. */
static int (*slab_cuda_retain)(void **context, int device);
static int (*slab_cuda_release)(int device);

static unsigned char slab_uuid[CLIMPORT_UUID_SIZE];

static void slab_die(const char *what)
{
	fprintf(stderr, "slab: %s: %s\n", what, climport_last_error());
	exit(1);
}

static double slab_now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e6 + t.tv_nsec / 1e3;
}

static int slab_compare(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static double slab_median(double *values, int count)
{
	qsort(values, count, sizeof(*values), slab_compare);
	return values[count / 2];
}

static void slab_measure(unsigned int kind, int count, const char *name)
{
	double alloc[TIMES] = { 0 }, give_back[TIMES] = { 0 }, start;
	void *p;

	for (int i = 0; i < count; i++) {
		start = slab_now_us();
		if (climport_alloc(kind, SIZE, 0, slab_uuid, &p))
			slab_die(name);
		alloc[i] = slab_now_us() - start;
		start = slab_now_us();
		climport_free(p);
		give_back[i] = slab_now_us() - start;
	}
	printf("%-6s %-58s alloc %10.2f us, free %10.2f us\n",
	       kind == CLIMPORT_HOST ? "host" : "device", name, slab_median(alloc, count),
	       slab_median(give_back, count));
}

static void slab_measure_kind(unsigned int kind)
{
	void *context, *first;

	slab_measure(kind, FEW, "only part, no other primary context");
	if (slab_cuda_retain(&context, 0))
		slab_die("primary context");
	slab_measure(kind, TIMES, "only part, the program has the primary context");
	if (climport_alloc(kind, SIZE, 0, slab_uuid, &first))
		slab_die("memory");
	slab_measure(kind, TIMES, "a part of a slab with other parts");
	climport_free(first);
	slab_cuda_release(0);
}

static void slab_open_cuda(void)
{
	void *cuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	int (*init)(unsigned int), (*uuid)(void *, int);

	if (!cuda)
		slab_die("no libcuda");
	init = (__typeof__(init))dlsym(cuda, "cuInit");
	uuid = (__typeof__(uuid))dlsym(cuda, "cuDeviceGetUuid");
	slab_cuda_retain = (__typeof__(slab_cuda_retain))dlsym(cuda, "cuDevicePrimaryCtxRetain");
	slab_cuda_release =
		(__typeof__(slab_cuda_release))dlsym(cuda, "cuDevicePrimaryCtxRelease_v2");
	if (!init || !uuid || !slab_cuda_retain || !slab_cuda_release || init(0) ||
	    uuid(slab_uuid, 0))
		slab_die("libcuda does not work");
}

int main(void)
{
	slab_open_cuda();
	slab_measure_kind(CLIMPORT_DEVICE);
	slab_measure_kind(CLIMPORT_HOST);
	return 0;
}
