/* SPDX-License-Identifier: Apache-2.0 */
/*
 * climport bench: does importing win on this device, from which size on, and how sure is that?
 *
 * A race runs cases in turns and gives the median and the spread of each.  Data is random and new for
 * each run, results are poisoned, and a wrong sum ends the program.  bench/device.c measures more, for
 * climport's developers, with the same parts.
 *
 * If the driver fails, each function exits with a message.
 */
#ifndef TOOLS_BENCH_H
#define TOOLS_BENCH_H

#include <CL/climport.h>

#include "bench_verdict.h"
#include "json.h"

struct bench_options {
	const char *platform, *device; /* a number, or a part of the name; NULL: the best */
	const char *json;	       /* a file; NULL: none */
	const char *size;	       /* of the largest memory; NULL: the default */
	bool quick;
};

#define BENCH_SIZES 32

struct bench {
	struct bench_options options;
	cl_platform_id platform;
	cl_device_id device;
	char platform_name[256], device_name[256], driver[256];
	struct climport_import_info host, dma_buf;
	cl_context context;
	cl_command_queue queue;
	cl_kernel kernel;    /* the sum of a buffer */
	size_t local, items; /* work-items of a group, and of all groups at most */
	cl_mem partial;	     /* the sums of the groups */

	size_t largest;
	uint32_t *random;    /* of the largest size */
	uint32_t random_sum; /* of as many bytes as bench_begin_size() was told */
	double seconds;	     /* for all races */
	unsigned int rounds;

	struct bench_row rows[BENCH_SIZES];
	size_t row_count;
	char *lacks[BENCH_WAYS]; /* why a way is left out; NULL: it is not */
	struct json json;	 /* out is NULL: no file */
};

/*
 * The command.  argv[0] is "bench", and the layer has to be in OPENCL_LAYERS.  @more, which may be
 * NULL, measures more before the verdict.  Returns an exit status.
 */
int bench_command(int argc, char **argv, void (*more)(struct bench *b));

#define BENCH_CASES 8
#define BENCH_ROUNDS 61

struct bench_case {
	const char *name;
	/* Returns seconds; NAN with libclimport's sentence: the case leaves the race. */
	double (*run)(struct bench *b, void *arg);
	void *arg;
	struct bench_figure figure; /* set by bench_race(), in seconds */
	char *why; /* the case left: libclimport's sentence, which the caller frees */
};

/* Takes @seconds, or three times as long if BENCH_FEWEST rounds need the time. */
void bench_race(struct bench *b, struct bench_case *cases, size_t count, double seconds);
double bench_now(void); /* seconds */

/* bench_device.c */
void bench_choose(struct bench *b);
void bench_open(struct bench *b);
void bench_close(struct bench *b);
void bench_fatal(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
void bench_check(cl_int err, const char *what);

/* The sum of @size bytes, by a kernel: _start() enqueues, _result() waits. */
void bench_poison(struct bench *b);
void bench_sum_start(struct bench *b, cl_mem mem, size_t size);
uint32_t bench_sum_result(struct bench *b, size_t size);

/* bench_memory.c */
struct bench_memory {
	void *address; /* NULL: a buffer of the driver's own */
	size_t size;
	size_t mapped;		       /* bytes of mmap(); 0: of climport_alloc() */
	struct climport_dmabuf dmabuf; /* fd < 0: imported by the address */
	uint32_t sum;		       /* of the data, once filled */
	cl_mem mem; /* between bench_memory_import() and bench_memory_release() */
};

/* Each returns 0, or a negative errno with libclimport's sentence. */
int bench_memory_map(struct bench_memory *m, size_t size);
int bench_memory_alloc(struct bench *b, struct bench_memory *m, size_t size);
int bench_memory_export(struct bench_memory *m); /* as a dma-buf, which is imported from now on */
int bench_memory_import(struct bench *b, struct bench_memory *m);

void bench_memory_release(struct bench_memory *m);
void bench_memory_free(struct bench_memory *m); /* also if nothing was allocated */

/* Before memory of @size bytes is filled. */
void bench_begin_size(struct bench *b, size_t size);
void bench_memory_fill(struct bench *b, struct bench_memory *m);
void bench_memory_expect(struct bench *b, const struct bench_memory *m);

/* bench_report.c: what is printed at the end, and the JSON file, which is written meanwhile. */
void bench_report_open(struct bench *b);
void bench_report_begin(struct bench *b);
/* For the file.  What was not measured is left out. */
void bench_report_figure(struct bench *b, const char *group, const char *name, size_t size,
			 struct bench_figure figure, const char *unit);
void bench_report_row(struct bench *b, const struct bench_row *row);
void bench_report_end(struct bench *b);

#endif /* TOOLS_BENCH_H */
