/* SPDX-License-Identifier: Apache-2.0 */
/*
 * climport bench: what importing is worth on this machine.
 *
 * What is compared runs in turns within one race, and is reported as medians.  Data is random,
 * results are poisoned before each run and checked after it: wrong data ends the program.
 */
#ifndef TOOLS_BENCH_H
#define TOOLS_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <CL/climport.h>

#include "plot.h"

#define BENCH_SMALLEST ((size_t)4096) /* sizes are this times a power of 4 */

enum bench_plot { PLOT_ONCE, PLOT_REUSE, PLOT_LATENCY, PLOT_BANDWIDTH, BENCH_PLOTS };

enum memory_kind {
	MEMORY_NATIVE, /* clCreateBuffer */
	MEMORY_DEVICE, /* climport_alloc(), exported as a dma-buf */
	MEMORY_HOST,   /* climport_alloc() */
	MEMORY_PLAIN,  /* mmap() */
	MEMORY_KINDS,
};

struct bench_options {
	const char *platform, *json, *svg; /* NULL: any, none, none */
	int device;			   /* -1: the best */
	size_t size;			   /* 0: the default */
	bool quick;
};

struct bench {
	cl_platform_id platform;
	cl_device_id device;
	cl_context context;
	cl_command_queue queue, timed; /* the second has profiling */
	cl_kernel sum, fill, copy, touch, nothing;
	size_t local, items; /* work-items of a group, and of all groups at most */
	cl_mem partial;	     /* the sums of the groups */
	__typeof__(&clImportMemoryARM) import;

	const char *way, *way_dmabuf; /* of host memory and dma-bufs */
	unsigned char uuid[CLIMPORT_UUID_SIZE];
	bool is_cuda; /* climport_alloc() needs the uuid */
	struct bench_cuda *cuda;
	const char *no_cuda; /* why cuda is NULL */

	uint32_t *random;	  /* of the largest size */
	bool lacks[MEMORY_KINDS]; /* was refused once, and is not tried again */
	size_t largest;
	double seconds; /* for all races */
	unsigned int rounds;

	FILE *json, *svg; /* may be NULL */
	bool json_more;
	struct plot plots[BENCH_PLOTS];
};

/* Measures all.  The layer has to be in OPENCL_LAYERS.  Exit status. */
int bench_command(const struct bench_options *options);

/* bench_cl.c: the device.  All exit with a message when the driver fails. */
void bench_choose(struct bench *b, const struct bench_options *options);
void bench_open(struct bench *b);
void bench_close(struct bench *b);
void bench_check(cl_int err, const char *what);
void bench_fatal(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

/* The sum of @size bytes, on the device.  The first enqueues, the second waits for the result. */
void bench_sum_start(struct bench *b, cl_mem mem, size_t size, cl_command_queue queue,
		     cl_event *event);
uint32_t bench_sum_result(struct bench *b, size_t size);
void bench_poison(struct bench *b);
size_t bench_items(const struct bench *b, size_t size); /* work-items for that many bytes */

/* bench_report.c: the table, the JSON file and the progress on a terminal. */
void bench_report_begin(struct bench *b, const struct bench_options *options);
/* @goal: NULL, or "<= 1.5" or ">= 4" for NVIDIA's driver.  A @value that is NAN is left out. */
void bench_report(struct bench *b, const char *group, const char *name, size_t size, double value,
		  const char *unit, const char *goal);
void bench_skip(const char *group, const char *what, const char *why);
void bench_progress(const char *format, ...) __attribute__((format(printf, 1, 2)));
void bench_report_end(struct bench *b, const struct bench_options *options);
void bench_size_text(char text[32], size_t size);

/* bench_race.c */
#define BENCH_PHASES 3
#define BENCH_ROUNDS 61

struct racer {
	const char *name;
	/* Seconds of each phase; a negative errno or OpenCL error takes it out of the race. */
	int (*run)(struct bench *b, void *arg, double seconds[BENCH_PHASES]);
	void *arg;
	double median[BENCH_PHASES]; /* set by bench_race(); NAN if it failed */
};

/*
 * @share of b->seconds, and up to three times that if it is not enough for 3 rounds.  One comes
 * before, to warm up.
 */
void bench_race(struct bench *b, struct racer *racers, size_t count, double share);
double bench_now(void); /* seconds */

/* bench_memory.c */
struct memory {
	enum memory_kind kind;
	size_t size;	 /* that is used; at most that of bench_memory_create() */
	size_t capacity; /* 0: there is none */
	void *address;
	struct climport_dmabuf dmabuf;
	uint32_t sum; /* of the first @size bytes, once filled */
	cl_mem mem;   /* between create and release */
};

extern const char *const memory_names[MEMORY_KINDS];

/* 0, or what the failing call returned, after a line that says so in the table. */
int bench_memory_create(struct bench *b, struct memory *m, enum memory_kind kind, size_t size);
void bench_memory_destroy(struct memory *m);
bool memory_is_host(const struct memory *m);

/* The cl_mem, which may be part of what is timed. */
int memory_create(struct bench *b, struct memory *m);
void memory_release(struct memory *m);

/* Random data in the first m->size bytes; needs the cl_mem unless it is the host's. */
void memory_fill(struct bench *b, struct memory *m);
/*
 * Another word at a random place, which a result of before does not know.  Its index.  Nothing
 * but for host memory.
 */
size_t memory_change(struct memory *m);
uint32_t memory_word(struct bench *b, const struct memory *m, size_t index);
void memory_expect(const struct memory *m, uint32_t sum);
uint32_t bench_random(void);

/* bench_cuda.c: libcuda, for what imports are compared with. */
struct bench_cuda *bench_cuda_open(const unsigned char uuid[CLIMPORT_UUID_SIZE], const char **why);
int bench_cuda_pinned(struct bench_cuda *cuda, size_t size, void **host, uint64_t *device);
void bench_cuda_unpin(struct bench_cuda *cuda, void *host, uint64_t device);
int bench_cuda_write(struct bench_cuda *cuda, uint64_t device, const void *host, size_t size);
int bench_cuda_read(struct bench_cuda *cuda, void *host, uint64_t device, size_t size);
/* CUDA's own export: a descriptor, or a negative number. */
int bench_cuda_export(struct bench_cuda *cuda, uint64_t device, size_t size);

/* The groups; each is a file. */
void bench_bandwidth(struct bench *b);
void bench_once(struct bench *b);
void bench_reuse(struct bench *b);
void bench_latency(struct bench *b);
void bench_launch(struct bench *b);
void bench_export(struct bench *b);

#endif /* TOOLS_BENCH_H */
