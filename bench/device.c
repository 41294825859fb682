/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What importing is worth on a device, for climport's developers: all of `climport bench`, and then
 * kernels that read each kind of memory, beside copies; launches; buffers that are made; exports.
 * docs/measured/figures makes tables of the JSON file.
 */
#include "tools/arguments.h"
#include "tools/bench.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)
#define TIMES 16     /* a call that is too short for the clock */
#define ROW 64	     /* kernels before a wait */
#define SECONDS 4    /* of a race */
#define DMA_BUF_FD 1 /* CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD */

enum kind { NATIVE, DEVICE, ALLOC, PLAIN, SMALL, HUGE_PAGES, KINDS };
#define SHORT_KINDS SMALL /* where small and huge pages make no difference */

static const char *const kind_names[KINDS] = {
	[NATIVE] = "native buffer",
	[DEVICE] = "imported device memory",
	[ALLOC] = "imported climport_alloc memory",
	[PLAIN] = "imported plain host memory",
	[SMALL] = "imported small host pages",
	[HUGE_PAGES] = "imported huge host pages",
};

static struct {
	int (*init)(unsigned int flags);
	int (*retain)(void **context, int device);
	int (*set_current)(void *context);
	int (*alloc)(uint64_t *address, size_t size);
	int (*free)(uint64_t address);
	int (*host_alloc)(void **address, size_t size, unsigned int flags);
	int (*host_free)(void *address);
	int (*to_device)(uint64_t to, const void *from, size_t size);
	int (*export)(void *handle, uint64_t address, size_t size, int type, unsigned long long);
	bool is_there;
} cuda;

static void measure_leave_out(const char *what, const char *why)
{
	printf("%s: left out, %s\n", what, why);
}

/* The first device, which has to be the one that is measured. */
static void measure_open_cuda(struct bench *b)
{
	static const char *const names[] = {
		"cuInit",
		"cuDevicePrimaryCtxRetain",
		"cuCtxSetCurrent",
		"cuMemAlloc_v2",
		"cuMemFree_v2",
		"cuMemHostAlloc",
		"cuMemFreeHost",
		"cuMemcpyHtoD_v2",
		"cuMemGetHandleForAddressRange",
	};
	void *library = b->host.by_uuid ? dlopen("libcuda.so.1", RTLD_NOW) : NULL, *context;
	void **slots = (void **)&cuda;

	for (size_t i = 0; library && i < sizeof(names) / sizeof(names[0]); i++) {
		slots[i] = dlsym(library, names[i]);
		if (!slots[i])
			library = NULL;
	}
	cuda.is_there = library && !cuda.init(0) && !cuda.retain(&context, 0) &&
			!cuda.set_current(context);
	if (!cuda.is_there)
		measure_leave_out("what CUDA has", "this is no device of CUDA's");
}

static int measure_alloc(struct bench *b, struct bench_memory *m, enum kind kind, size_t size)
{
	const size_t huge = 2 * MIB;

	if (kind == NATIVE)
		return 0;
	if (kind == ALLOC)
		return bench_memory_alloc(b, m, size);
	if (kind == DEVICE)
		return climport_alloc(CLIMPORT_DEVICE, size, 0, b->host.uuid, &m->address) ||
		       bench_memory_export(m);
	bench_memory_map(m, kind == HUGE_PAGES ? size + huge : size);
	if (kind == HUGE_PAGES)
		m->address = (void *)(((uintptr_t)m->address + huge - 1) & ~(huge - 1));
	m->mapped = m->size = size;
	if (kind != PLAIN)
		madvise(m->address, size, kind == SMALL ? MADV_NOHUGEPAGE : MADV_HUGEPAGE);
	return 0;
}

/* Memory with data, and with a buffer of it.  False: left out. */
static bool measure_open(struct bench *b, struct bench_memory *m, enum kind kind, size_t size)
{
	*m = (struct bench_memory){ .size = size, .dmabuf.fd = -1 };
	if (kind == DEVICE && !cuda.is_there)
		return false;
	if (measure_alloc(b, m, kind, size) || bench_memory_import(b, m)) {
		measure_leave_out(kind_names[kind], climport_last_error());
		bench_memory_free(m);
		*m = (struct bench_memory){ .dmabuf.fd = -1 };
		return false;
	}
	m->sum = b->random_sum;
	if (kind == NATIVE)
		bench_check(clEnqueueWriteBuffer(b->queue, m->mem, CL_TRUE, 0, size, b->random, 0,
						 NULL, NULL),
			    "clEnqueueWriteBuffer");
	else if (kind != DEVICE)
		bench_memory_fill(b, m);
	else if (cuda.to_device((uintptr_t)m->address, b->random, size))
		bench_fatal("CUDA does not write its memory");
	return true;
}

static void measure_close(struct bench_memory *m)
{
	if (m->mem)
		bench_memory_release(m);
	bench_memory_free(m);
}

static bool measure_is_left_out(const struct bench_case *c)
{
	if (!c->why)
		return false;
	measure_leave_out(c->name, c->why);
	free(c->why);
	return true;
}

static void measure_print(struct bench *b, const char *group, const char *name, size_t size,
			  struct bench_figure f, const char *unit)
{
	char bytes[32];

	printf("%-41s %8s %10.4g %-4s %5.0f%% %4u\n", name, size_format(bytes, size), f.value, unit,
	       (f.high - f.low) / f.value * 100, f.runs);
	fflush(stdout);
	bench_report_figure(b, group, name, size, f, unit);
}

static void measure_report(struct bench *b, const char *group, const struct bench_case *c,
			   size_t size)
{
	if (measure_is_left_out(c))
		return;
	measure_print(b, group, c->name, size, bench_figure_times(c->figure, 1e6), "us");
}

static double measure_read(struct bench *b, void *arg)
{
	struct bench_memory *m = arg;
	double start;

	bench_poison(b);
	start = bench_now();
	for (int i = 0; i < TIMES; i++)
		bench_sum_start(b, m->mem, m->size);
	bench_memory_expect(b, m);
	return (bench_now() - start) / TIMES;
}

static double measure_write(struct bench *b, void *arg)
{
	struct bench_memory *m = arg;
	const double start = bench_now();

	bench_check(clEnqueueWriteBuffer(b->queue, m->mem, CL_TRUE, 0, m->size, b->random, 0, NULL,
					 NULL),
		    "clEnqueueWriteBuffer");
	return bench_now() - start;
}

struct pinned {
	void *host;
	uint64_t device;
	size_t size;
};

static double measure_write_pinned(struct bench *b, void *arg)
{
	const struct pinned *p = arg;
	const double start = bench_now();

	(void)b;
	return cuda.to_device(p->device, p->host, p->size) ? NAN : bench_now() - start;
}

static void measure_bandwidth(struct bench *b)
{
	static char names[KINDS][64];
	struct pinned pinned = { .size = b->largest };
	struct bench_case cases[KINDS + 2];
	struct bench_memory memory[KINDS];
	size_t count = 0;

	for (enum kind kind = NATIVE; kind < KINDS; kind++) {
		if (!measure_open(b, &memory[kind], kind, b->largest))
			continue;
		snprintf(names[kind], sizeof(names[kind]), "read: %s", kind_names[kind]);
		cases[count++] = (struct bench_case){ .name = names[kind],
						      .run = measure_read,
						      .arg = &memory[kind] };
	}
	cases[count++] = (struct bench_case){ .name = "pageable clEnqueueWriteBuffer",
					      .run = measure_write,
					      .arg = &memory[NATIVE] };
	if (cuda.is_there && !cuda.host_alloc(&pinned.host, pinned.size, 0) &&
	    !cuda.alloc(&pinned.device, pinned.size))
		cases[count++] = (struct bench_case){ .name = "pinned cuMemcpyHtoD",
						      .run = measure_write_pinned,
						      .arg = &pinned };
	bench_race(b, cases, count, 3 * SECONDS);
	for (size_t i = 0; i < count; i++) {
		struct bench_figure bytes = cases[i].figure;

		if (measure_is_left_out(&cases[i]))
			continue;
		bytes.value = bytes.low = bytes.high = (double)b->largest * 1e-9;
		measure_print(b, "bandwidth", cases[i].name, b->largest,
			      bench_figure_ratio(bytes, cases[i].figure), "GB/s");
	}
	for (enum kind kind = NATIVE; kind < KINDS; kind++)
		measure_close(&memory[kind]);
	if (pinned.device)
		cuda.free(pinned.device);
	if (pinned.host)
		cuda.host_free(pinned.host);
}

/* A small kernel. */
static void measure_enqueue(struct bench *b, const struct bench_memory *m)
{
	bench_sum_start(b, m->mem, sizeof(cl_uint4));
}

static double measure_launch(struct bench *b, void *arg)
{
	const double start = bench_now();

	for (int i = 0; i < TIMES; i++) {
		measure_enqueue(b, arg);
		bench_check(clFinish(b->queue), "clFinish");
	}
	return (bench_now() - start) / TIMES;
}

static double measure_launch_row(struct bench *b, void *arg)
{
	const double start = bench_now();

	for (int i = 0; i < ROW; i++)
		measure_enqueue(b, arg);
	bench_check(clFinish(b->queue), "clFinish");
	return (bench_now() - start) / ROW;
}

static double measure_create(struct bench *b, void *arg)
{
	double seconds = 0;

	for (int i = 0; i < TIMES; i++) {
		const double start = bench_now();

		if (bench_memory_import(b, arg))
			return NAN;
		seconds += bench_now() - start;
		bench_memory_release(arg);
	}
	return seconds / TIMES;
}

/* A driver may put work off until the first kernel, as NVIDIA's clCreateBuffer does. */
static double measure_create_use(struct bench *b, void *arg)
{
	const double start = bench_now();
	double seconds;

	if (bench_memory_import(b, arg))
		return NAN;
	measure_enqueue(b, arg);
	bench_check(clFinish(b->queue), "clFinish");
	seconds = bench_now() - start;
	bench_memory_release(arg);
	return seconds;
}

/* Two races on one memory of each kind; with @keeps on buffers that are kept. */
static void measure_times(struct bench *b, const char *group, size_t size, bool keeps,
			  const char *const labels[2],
			  double (*const runs[2])(struct bench *b, void *arg))
{
	struct bench_memory memory[SHORT_KINDS];
	struct bench_case cases[SHORT_KINDS];
	char names[SHORT_KINDS][64];

	bench_begin_size(b, size);
	for (int run = 0; run < 2; run++) {
		size_t count = 0;

		for (enum kind kind = NATIVE; kind < SHORT_KINDS; kind++) {
			struct bench_memory *m = &memory[kind];

			if (!measure_open(b, m, kind, size))
				continue;
			if (!keeps)
				bench_memory_release(m);
			snprintf(names[kind], sizeof(names[kind]), "%s: %s", labels[run],
				 kind_names[kind]);
			cases[count++] = (struct bench_case){ .name = names[kind],
							      .run = runs[run],
							      .arg = m };
		}
		bench_race(b, cases, count, SECONDS);
		for (size_t i = 0; i < count; i++) {
			measure_report(b, group, &cases[i], size);
			measure_close(cases[i].arg);
		}
	}
}

struct export
{
	void *address;
	size_t size;
	uint64_t flags;
};

static double measure_export_cuda(struct bench *b, void *arg)
{
	const struct export *e = arg;
	const double start = bench_now();
	double seconds;
	int fd;

	(void)b;
	if (cuda.export(&fd, (uintptr_t)e->address, e->size, DMA_BUF_FD, 0))
		return NAN;
	seconds = bench_now() - start;
	close(fd);
	return seconds;
}

static double measure_export(struct bench *b, void *arg)
{
	const struct export *e = arg;
	const double start = bench_now();
	struct climport_dmabuf dmabuf;
	double seconds;

	(void)b;
	if (climport_export_dmabuf(e->address, e->size, e->flags, &dmabuf, sizeof(dmabuf)))
		return NAN;
	seconds = bench_now() - start;
	close(dmabuf.fd);
	return seconds;
}

static double measure_register(struct bench *b, void *arg)
{
	struct climport_registration registration;
	const struct export *e = arg;
	const double start = bench_now();

	(void)b;
	for (int i = 0; i < 1000; i++) {
		if (climport_register(e->address, e->size, 0, &registration, sizeof(registration)))
			return NAN;
		climport_unregister(&registration);
	}
	return (bench_now() - start) / 1000;
}

/* The kept export comes last: a plain one would find it as well. */
static void measure_exports(struct bench *b)
{
	struct export once = { .size = b->largest }, kept;
	struct bench_case cases[] = {
		{ .name = "cuMemGetHandleForAddressRange",
		  .run = measure_export_cuda,
		  .arg = &once },
		{ .name = "climport_export_dmabuf", .run = measure_export, .arg = &once },
		{ .name = "climport_export_dmabuf, kept", .run = measure_export, .arg = &kept },
		{ .name = "climport_register and unregister",
		  .run = measure_register,
		  .arg = &kept },
	};

	if (!cuda.is_there ||
	    climport_alloc(CLIMPORT_DEVICE, once.size, 0, b->host.uuid, &once.address))
		return;
	kept = once;
	kept.flags = CLIMPORT_KEEP;
	bench_race(b, cases, 2, SECONDS);
	bench_race(b, cases + 2, 2, SECONDS);
	climport_invalidate(kept.address, kept.size);
	for (size_t i = 0; i < 4; i++)
		measure_report(b, "export", &cases[i], once.size);
	climport_free(once.address);
}

static void measure_more(struct bench *b)
{
	static const char *const launches[] = { "enqueue + finish", "one of a row" },
				 *const creations[] = { "create", "create + kernel" };
	static double (*const launch[])(struct bench *,
					void *) = { measure_launch, measure_launch_row },
					     (*const create[])(struct bench *,
							       void *) = { measure_create,
									   measure_create_use };

	measure_open_cuda(b);
	bench_begin_size(b, b->largest);
	measure_bandwidth(b);
	measure_times(b, "launch", 64 << 10, true, launches, launch);
	measure_times(b, "latency", MIB, false, creations, create);
	measure_times(b, "latency", b->largest, false, creations, create);
	measure_exports(b);
}

int main(int argc, char **argv)
{
	return bench_command(argc, argv, measure_more);
}
