/* SPDX-License-Identifier: Apache-2.0 */
/*
 * climport bench: what importing is worth on this machine.
 *
 * A race compares several cases, which run in turns, and reports medians and their spread.  Data is
 * random.
 * Results are poisoned before each run and checked after the run: wrong data ends the program.
 *
 * A part is a measurement that needs a process of its own, because the layer reads the environment
 * once: the program runs itself again, and the second process prints numbers for the first.
 */
#ifndef TOOLS_BENCH_H
#define TOOLS_BENCH_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <CL/climport.h>

#include "bench_figure.h"
#include "bench_verdict.h"
#include "plot.h"

#define BENCH_SMALLEST ((size_t)4096) /* sizes are a power of 4 times BENCH_SMALLEST */

enum bench_plot { PLOT_ONCE, PLOT_REUSE, PLOT_LATENCY, PLOT_BANDWIDTH, BENCH_PLOTS };

/* A series has its colour in every plot.  In the order of memory kinds, then the others. */
enum bench_series {
	SERIES_NATIVE,
	SERIES_DEVICE,
	SERIES_ALLOC,
	SERIES_PLAIN,
	SERIES_SMALL,
	SERIES_HUGE,
	SERIES_WRITE,
	SERIES_PINNED_COPY,
	SERIES_AGAIN,
	SERIES_WRITE_ONCE,
	SERIES_NATIVE_ALONE,
	SERIES_ALLOC_ALONE,
};

enum memory_kind {
	MEMORY_NATIVE, /* clCreateBuffer */
	MEMORY_DEVICE, /* climport_alloc(), exported as a dma-buf */
	MEMORY_HOST,   /* climport_alloc() */
	MEMORY_PLAIN,  /* mmap(), pages as the system gives them */
	MEMORY_SMALL,  /* mmap(), small pages */
	MEMORY_HUGE,   /* mmap(), transparent huge pages */
	MEMORY_KINDS,
};

struct bench_options {
	const char *platform, *device; /* a number, or a part of the name; NULL: the best */
	const char *json, *svg;	       /* files; NULL: none */
	size_t size;		       /* 0: the default */
	bool quick;
	const char *part; /* NULL, or the part that is printed instead of all groups */
};

struct bench {
	const struct bench_options *options;
	cl_platform_id platform;
	cl_device_id device;
	int number; /* of the device */
	cl_context context;
	cl_command_queue queue, timed; /* the second has profiling */
	cl_kernel sum, fill, copy, touch, nothing;
	size_t local, items; /* work-items of a group, and of all groups at most */
	cl_mem partial;	     /* the sums of the groups */
	__typeof__(&clImportMemoryARM) import;

	const char *way, *way_dmabuf; /* the method for host memory and for dma-bufs */
	const char *why;	      /* who makes it zero copy: the sentence of `climport info` */
	unsigned char uuid[CLIMPORT_UUID_SIZE];
	bool is_cuda; /* climport_alloc() needs the uuid, and imports pin */
	struct bench_cuda *cuda;
	const char *no_cuda; /* why cuda is NULL */

	uint32_t *random;	  /* of the largest size */
	bool lacks[MEMORY_KINDS]; /* refused once, so not tried again */
	size_t largest;
	double seconds; /* for all races */
	unsigned int rounds;

	struct bench_crossing once, again;
	struct bench_frames frames;
	unsigned int goals[3]; /* by enum bench_goal */
	unsigned int verdicts;

	FILE *json, *svg; /* may be NULL */
	bool json_more;
	const char *table_group; /* of the last row */
	struct plot plots[BENCH_PLOTS];
};

/*
 * Reads the command line; argv[0] is "bench".  Returns 0, or the exit status of a mistake that was
 * reported.
 */
int bench_parse(int argc, char **argv, struct bench_options *options);

/* Runs all groups.  The layer has to be in OPENCL_LAYERS.  Returns an exit status. */
int bench_command(const struct bench_options *options);

/* bench_cl.c: the device.  If the driver fails, each function exits with a message. */
void bench_choose(struct bench *b);
void bench_open(struct bench *b);
void bench_close(struct bench *b);
void bench_check(cl_int err, const char *what);
void bench_fatal(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
/* bench_fatal() for what the machine lacks: a part is left out, and the whole goes on. */
void bench_leave_out(const struct bench *b, const char *format, ...)
	__attribute__((format(printf, 2, 3), noreturn));

/* The sum of @size bytes, on the device: _start() enqueues, _result() waits. */
void bench_sum_start(struct bench *b, cl_mem mem, size_t size, cl_command_queue queue,
		     cl_event *event);
uint32_t bench_sum_result(struct bench *b, size_t size);
void bench_poison(struct bench *b);
size_t bench_items(const struct bench *b, size_t size); /* work-items for @size bytes */

/* bench_report.c: the JSON file, and what goes to the table as well. */
void bench_report_open(struct bench *b, const struct bench_options *options); /* the files */
void bench_report_begin(struct bench *b);
/* @goal: NULL, or a goal for NVIDIA's driver.  What was not measured is left out. */
void bench_report(struct bench *b, const char *group, const char *name, size_t size,
		  struct bench_figure figure, const char *unit, const char *goal);
void bench_report_end(struct bench *b, const struct bench_options *options);

/* bench_table.c: the table, and the progress on a terminal. */
void bench_table_begin(struct bench *b, const char *platform, const char *version,
		       const char *device, const char *driver);
void bench_table_row(struct bench *b, const char *group, const char *name, size_t size,
		     const struct bench_figure *figure, const char *unit, const char *goal);
void bench_skip(const char *group, const char *what, const char *why);
void bench_progress(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* bench_race.c */
#define BENCH_PHASES 3
#define BENCH_ROUNDS 61

struct racer {
	const char *name;
	/* Sets the seconds of each phase, and returns NULL; or why the racer is taken out. */
	const char *(*run)(struct bench *b, void *arg, double seconds[BENCH_PHASES]);
	void *arg;
	struct bench_figure figure[BENCH_PHASES]; /* set by bench_race(), in seconds */
};

/*
 * Takes @share of b->seconds, or up to three times as long if 3 rounds need the time.  A round to
 * warm up comes before.
 */
void bench_race(struct bench *b, struct racer *racers, size_t count, double share);
double bench_now(void); /* seconds */

/* bench_memory.c */
struct memory {
	enum memory_kind kind;
	size_t size;	 /* bytes in use; at most @capacity */
	size_t capacity; /* 0: no memory */
	void *address;
	void *mapping; /* of mmap(); NULL: another allocator's */
	size_t mapped;
	struct climport_dmabuf dmabuf;
	uint32_t sum; /* of the first @size bytes, once filled */
	cl_mem mem;   /* between create and release */
	cl_int err;   /* of memory_create() */
};

extern const char *const memory_names[MEMORY_KINDS];

/* 0, or the error of the call that failed, after a line in the table that names the call. */
int bench_memory_create(struct bench *b, struct memory *m, enum memory_kind kind, size_t size);
void bench_memory_destroy(struct memory *m);
bool memory_is_host(const struct memory *m);

/* Creates and releases the cl_mem, which may be inside the timed part. */
int memory_create(struct bench *b, struct memory *m);

/* Why memory_create() has just failed: a sentence, until the thread's next call of libclimport. */
const char *bench_memory_why(const struct memory *m);
void memory_release(struct memory *m);

/* Random data in the first m->size bytes.  Device memory needs the cl_mem. */
void memory_fill(struct bench *b, struct memory *m);
/*
 * Stores another word at a random place, so that an old result is wrong.  Returns the word's
 * index.  Does nothing to device memory.
 */
size_t memory_change(struct memory *m);
uint32_t memory_word(struct bench *b, const struct memory *m, size_t index);
void memory_expect(const struct memory *m, uint32_t sum);
uint32_t bench_random(void);
void bench_make_random(struct bench *b); /* the data of b->random */

/* bench_cuda.c: libcuda's copies and export, for comparison with imports. */
struct bench_cuda *bench_cuda_open(const unsigned char uuid[CLIMPORT_UUID_SIZE], const char **why);
int bench_cuda_pinned(struct bench_cuda *cuda, size_t size, void **host, uint64_t *device);
void bench_cuda_unpin(struct bench_cuda *cuda, void *host, uint64_t device);
int bench_cuda_write(struct bench_cuda *cuda, uint64_t device, const void *host, size_t size);
int bench_cuda_read(struct bench_cuda *cuda, void *host, uint64_t device, size_t size);
/* CUDA's own export: a descriptor, or a negative number. */
int bench_cuda_export(struct bench_cuda *cuda, uint64_t device, size_t size);

/* The groups: a file for each. */
void bench_bandwidth(struct bench *b);
void bench_once(struct bench *b); /* two groups: once, again */
void bench_frames(struct bench *b);
void bench_reuse(struct bench *b);
void bench_latency(struct bench *b);
void bench_launch(struct bench *b);
void bench_query(struct bench *b);
void bench_export(struct bench *b);

/* bench_part.c */
#define BENCH_LEFT_OUT 77 /* exit status of a part that the machine cannot run */

/*
 * Runs the part @part in a process with @set, NAME=VALUE, in its environment.  Returns how many
 * numbers came, @count at most: 0 if the machine cannot run the part, after a line in the table.
 */
size_t bench_part_run(struct bench *b, const char *part, const char *set, double *numbers,
		      size_t count);
void bench_part_print(double number); /* in the part */
/* A figure is BENCH_FIGURE_NUMBERS numbers. */
#define BENCH_FIGURE_NUMBERS ((size_t)4)
void bench_part_print_figure(const struct bench_figure *figure);
struct bench_figure bench_part_figure(const double numbers[BENCH_FIGURE_NUMBERS]);

/* The signals that end a process, unless the process holds them or handles them. */
const sigset_t *bench_part_ends(void);

/* The other side: prints the numbers of b->options->part.  Returns an exit status. */
int bench_part_command(struct bench *b);

/* Parts, by the file of their group. */
void bench_query_part(struct bench *b);
void bench_queries_part(struct bench *b);

#endif /* TOOLS_BENCH_H */
