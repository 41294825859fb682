/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels that read or write all of a buffer, in the device's own time, beside the copies which
 * importing saves.
 */
#include "bench.h"

#include <string.h>

#define GROUP "bandwidth"
#define SMALLEST (BENCH_SMALLEST << 8)
#define SHARE 0.25

/* The two ends of a pinned copy. */
struct pinned {
	void *host;
	uint64_t device;
	size_t size; /* 0: no buffer */
};

/* The buffers and racers of one size. */
struct field {
	struct memory memory[MEMORY_KINDS];
	cl_mem target; /* of clEnqueueWriteBuffer from plain memory */
	struct pinned pinned;
};

static double event_seconds(struct bench *b, cl_event event)
{
	cl_ulong start, end;

	bench_check(clFinish(b->timed), "clFinish");
	bench_check(clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_START, sizeof(start),
					    &start, NULL),
		    "clGetEventProfilingInfo");
	clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof(end), &end, NULL);
	clReleaseEvent(event);
	return (double)(end - start) * 1e-9;
}

static const char *read_all(struct bench *b, void *arg, double *seconds)
{
	struct memory *m = arg;
	cl_event event;

	memory_change(m);
	bench_poison(b);
	bench_sum_start(b, m->mem, m->size, b->timed, &event);
	seconds[0] = event_seconds(b, event);
	memory_expect(m, bench_sum_result(b, m->size));
	return NULL;
}

static void check_written(struct bench *b, const struct memory *m, uint32_t seed)
{
	for (int i = 0; i < 4; i++) {
		size_t index = bench_random() % (m->size / sizeof(uint32_t));
		uint32_t word;

		if (m->kind == MEMORY_DEVICE && !b->cuda)
			return;
		word = memory_word(b, m, index);
		if (word != (seed ^ (uint32_t)(index / 4)))
			bench_fatal("%s, %zu bytes: word %zu is not the word that the kernel wrote",
				    memory_names[m->kind], m->size, index);
	}
}

/* Another seed for each run, so that data of the run before is wrong. */
static const char *write_all(struct bench *b, void *arg, double *seconds)
{
	const struct memory *m = arg;
	const cl_ulong n = m->size / sizeof(cl_uint4);
	const size_t items = bench_items(b, m->size);
	const cl_uint seed = bench_random();
	cl_event event;

	clSetKernelArg(b->fill, 0, sizeof(m->mem), &m->mem);
	clSetKernelArg(b->fill, 1, sizeof(n), &n);
	clSetKernelArg(b->fill, 2, sizeof(seed), &seed);
	bench_check(clEnqueueNDRangeKernel(b->timed, b->fill, 1, NULL, &items, &b->local, 0, NULL,
					   &event),
		    "the kernel that writes");
	seconds[0] = event_seconds(b, event);
	check_written(b, m, seed);
	return NULL;
}

static const char *copy_pageable(struct bench *b, void *arg, double *seconds)
{
	struct field *f = arg;
	struct memory *m = &f->memory[MEMORY_PLAIN];
	const struct memory target = { .kind = MEMORY_NATIVE, .mem = f->target };
	const size_t index = memory_change(m);
	const double start = bench_now();

	bench_check(clEnqueueWriteBuffer(b->queue, f->target, CL_TRUE, 0, m->size, m->address, 0,
					 NULL, NULL),
		    "clEnqueueWriteBuffer");
	seconds[0] = bench_now() - start;
	if (memory_word(b, &target, index) != memory_word(b, m, index))
		bench_fatal("clEnqueueWriteBuffer of %zu bytes did not arrive", m->size);
	return NULL;
}

static const char *copy_pinned(struct bench *b, void *arg, double *seconds)
{
	const struct pinned *p = arg;
	const size_t last = p->size - sizeof(uint32_t);
	uint32_t *word = (uint32_t *)((char *)p->host + last), seen = 0;
	double start;
	int err;

	*word = bench_random();
	start = bench_now();
	err = bench_cuda_write(b->cuda, p->device, p->host, p->size);
	seconds[0] = bench_now() - start;
	if (err || bench_cuda_read(b->cuda, &seen, p->device + last, sizeof(seen)))
		return err ? "cuMemcpyHtoD failed" : "cuMemcpyDtoH failed";
	if (seen != *word)
		bench_fatal("the pinned copy of %zu bytes did not arrive", p->size);
	return NULL;
}

static void open_memory(struct bench *b, struct memory *m, enum memory_kind kind, size_t size)
{
	if (bench_memory_create(b, m, kind, size))
		return;
	if (memory_is_host(m))
		memory_fill(b, m);
	if (memory_create(b, m)) {
		bench_skip(GROUP, memory_names[kind], bench_memory_why(m));
		bench_memory_destroy(m);
		return;
	}
	if (!memory_is_host(m))
		memory_fill(b, m);
}

static void open_pinned(struct bench *b, struct pinned *p, size_t size)
{
	if (!b->cuda || bench_cuda_pinned(b->cuda, size, &p->host, &p->device))
		return;
	for (size_t i = 0; i < size / sizeof(*b->random); i++)
		((uint32_t *)p->host)[i] = b->random[i];
	p->size = size;
}

static void open_field(struct bench *b, struct field *f, size_t size)
{
	cl_int err;

	*f = (struct field){ 0 };
	for (int kind = 0; kind < MEMORY_KINDS; kind++)
		open_memory(b, &f->memory[kind], kind, size);
	f->target = clCreateBuffer(b->context, CL_MEM_READ_WRITE, size, NULL, &err);
	bench_check(err, "clCreateBuffer");
	open_pinned(b, &f->pinned, size);
}

static void close_field(struct bench *b, struct field *f)
{
	for (int kind = 0; kind < MEMORY_KINDS; kind++) {
		if (f->memory[kind].mem)
			memory_release(&f->memory[kind]);
		bench_memory_destroy(&f->memory[kind]);
	}
	clReleaseMemObject(f->target);
	if (f->pinned.size)
		bench_cuda_unpin(b->cuda, f->pinned.host, f->pinned.device);
}

/* Adds a racer for each memory.  Returns the number of racers. */
static size_t bandwidth_enter(struct field *f, struct racer *racers,
			      const char *(*run)(struct bench *, void *, double *))
{
	size_t count = 0;

	for (int kind = 0; kind < MEMORY_KINDS; kind++)
		if (f->memory[kind].mem)
			racers[count++] = (struct racer){ .name = memory_names[kind],
							  .run = run,
							  .arg = &f->memory[kind] };
	return count;
}

static struct bench_figure speed_of(const struct racer *racers, size_t count, const char *name,
				    size_t size)
{
	const struct bench_figure bytes = bench_figure_known((double)size * 1e-9);

	for (size_t i = 0; i < count; i++)
		if (!strcmp(racers[i].name, name))
			return bench_figure_ratio(bytes, racers[i].figure[0]);
	return bench_figure_nothing();
}

static enum bench_series bandwidth_series(const struct racer *racer)
{
	if (racer->run == copy_pageable)
		return SERIES_WRITE;
	if (racer->run == copy_pinned)
		return SERIES_PINNED_COPY;
	for (unsigned int kind = 0; kind < MEMORY_KINDS; kind++)
		if (racer->name == memory_names[kind])
			return (enum bench_series)kind;
	return SERIES_NATIVE;
}

static void bandwidth_report(struct bench *b, const struct racer *racers, size_t count,
			     const char *verb, size_t size)
{
	char name[96];

	for (size_t i = 0; i < count; i++) {
		const bool copies = racers[i].run == copy_pageable || racers[i].run == copy_pinned;
		const struct bench_figure speed = speed_of(racers, count, racers[i].name, size);

		snprintf(name, sizeof(name), "%s%s", copies ? "" : verb, racers[i].name);
		bench_report(b, GROUP, name, size, speed, "GB/s", NULL);
		if (racers[i].run != write_all)
			plot_add(&b->plots[PLOT_BANDWIDTH], bandwidth_series(&racers[i]),
				 racers[i].name, (double)size, speed.value);
	}
}

/* The goals are for the largest size. */
static void report_ratios(struct bench *b, const struct racer *racers, size_t count, size_t size)
{
	static const char pinned[] = "pinned cuMemcpyHtoD";
	static const char pageable[] = "pageable clEnqueueWriteBuffer";
	const struct {
		const char *name, *of, *to, *goal;
	} ratios[] = {
		{ "  read: device import / native", memory_names[MEMORY_DEVICE],
		  memory_names[MEMORY_NATIVE], ">= 0.99" },
		{ "  read: climport_alloc / pinned copy", memory_names[MEMORY_HOST], pinned,
		  ">= 0.92" },
		{ "  read: plain host / pinned copy", memory_names[MEMORY_PLAIN], pinned,
		  ">= 0.90" },
		{ "  read: small host pages / pinned copy", memory_names[MEMORY_SMALL], pinned,
		  ">= 0.90" },
		{ "  read: huge host pages / pinned copy", memory_names[MEMORY_HUGE], pinned,
		  ">= 0.92" },
		{ "  read: climport_alloc / pageable write", memory_names[MEMORY_HOST], pageable,
		  ">= 4" },
		{ "  read: plain host / pageable write", memory_names[MEMORY_PLAIN], pageable,
		  ">= 4" },
	};

	for (size_t i = 0; i < sizeof(ratios) / sizeof(ratios[0]); i++)
		bench_report(b, GROUP, ratios[i].name, size,
			     bench_figure_ratio(speed_of(racers, count, ratios[i].of, size),
						speed_of(racers, count, ratios[i].to, size)),
			     "x", size == b->largest ? ratios[i].goal : NULL);
}

static void bandwidth_measure_one(struct bench *b, size_t size, double share)
{
	struct racer racers[MEMORY_KINDS + 2];
	struct field f;
	char text[32];
	size_t count;

	bench_size_text(text, size);
	bench_progress("kernels on %s", text);
	open_field(b, &f, size);
	count = bandwidth_enter(&f, racers, read_all);
	racers[count++] = (struct racer){ .name = "pageable clEnqueueWriteBuffer",
					  .run = copy_pageable,
					  .arg = &f };
	if (f.pinned.size)
		racers[count++] = (struct racer){ .name = "pinned cuMemcpyHtoD",
						  .run = copy_pinned,
						  .arg = &f.pinned };
	bench_race(b, racers, count, share / 2);
	bandwidth_report(b, racers, count, "read: ", size);
	report_ratios(b, racers, count, size);
	count = bandwidth_enter(&f, racers, write_all);
	bench_race(b, racers, count, share / 2);
	bandwidth_report(b, racers, count, "write: ", size);
	close_field(b, &f);
}

void bench_bandwidth(struct bench *b)
{
	const size_t first = b->largest < SMALLEST ? b->largest : SMALLEST;
	int steps = 0;

	b->plots[PLOT_BANDWIDTH] =
		(struct plot){ .title = "A kernel that reads all of it, and copies",
			       .x_label = "size",
			       .y_label = "GB/s (more is better)",
			       .bytes = true };
	if (!b->cuda)
		bench_skip(GROUP, "pinned cuMemcpyHtoD", b->no_cuda);
	for (size_t size = first; size <= b->largest; size *= 4)
		steps++;
	for (size_t size = first; size <= b->largest; size *= 4)
		bandwidth_measure_one(b, size, SHARE / steps);
}
