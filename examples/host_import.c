/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of malloc(), used in place by a kernel: the kernel turns a picture into its negative, and
 * the program finds the negative in its own memory.  The program calls no write, read or map.
 *
 * For comparison the program also copies: with a new buffer for each picture, and with a buffer
 * that is kept.
 */
#include "session.h"
#include "timing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIDE = 4096, SIZE = SIDE * SIDE, ROUNDS = 31, LOCAL = 64 };

static const char source[] = "__kernel void negative(__global uchar16 *picture)\n"
			     "{\n"
			     "	size_t i = get_global_id(0);\n"
			     "	picture[i] = (uchar)255 - picture[i];\n"
			     "}\n";

struct demo {
	struct session cl;
	cl_kernel kernel;
	cl_mem kept;
	unsigned char *picture; /* of malloc() */
};

/* Rings; @inverted is 0, or 255 for the negative. */
static unsigned char example_ring(int x, int y, unsigned char inverted)
{
	return (unsigned char)((x * x + y * y) >> 12) ^ inverted;
}

static void example_draw(unsigned char *picture)
{
	for (int y = 0; y < SIDE; y++)
		for (int x = 0; x < SIDE; x++)
			*picture++ = example_ring(x, y, 0);
}

static void expect_picture(const unsigned char *picture, unsigned char inverted, const char *when)
{
	for (int y = 0; y < SIDE; y++)
		for (int x = 0; x < SIDE; x++)
			if (picture[y * SIDE + x] != example_ring(x, y, inverted))
				session_fail("%s: byte %d is %d, not %d", when, y * SIDE + x,
					     picture[y * SIDE + x], example_ring(x, y, inverted));
}

static void example_negate(struct demo *d, cl_mem mem)
{
	const size_t global = SIZE / 16, local = LOCAL;

	session_check(clSetKernelArg(d->kernel, 0, sizeof(mem), &mem), "clSetKernelArg");
	session_check(clEnqueueNDRangeKernel(d->cl.queue, d->kernel, 1, NULL, &global, &local, 0,
					     NULL, NULL),
		      "clEnqueueNDRangeKernel");
	session_check(clFinish(d->cl.queue), "clFinish");
}

static void example_run_imported(struct demo *d)
{
	cl_mem mem = session_import_host(&d->cl, CL_MEM_READ_WRITE, d->picture, SIZE);

	example_negate(d, mem);
	session_release(mem);
}

static void example_run_copied(struct demo *d, cl_mem mem)
{
	session_check(clEnqueueWriteBuffer(d->cl.queue, mem, CL_FALSE, 0, SIZE, d->picture, 0, NULL,
					   NULL),
		      "clEnqueueWriteBuffer");
	example_negate(d, mem);
	session_check(
		clEnqueueReadBuffer(d->cl.queue, mem, CL_TRUE, 0, SIZE, d->picture, 0, NULL, NULL),
		"clEnqueueReadBuffer");
}

static void copied_kept(struct demo *d)
{
	example_run_copied(d, d->kept);
}

static void copied_anew(struct demo *d)
{
	cl_mem mem = session_buffer(&d->cl, CL_MEM_READ_WRITE, SIZE, NULL);

	example_run_copied(d, mem);
	session_release(mem);
}

static const struct way {
	const char *name;
	void (*run)(struct demo *d);
} ways[] = {
	{ "clImportMemoryARM, release", example_run_imported },
	{ "write, read; the buffer is kept", copied_kept },
	{ "create, write, read, release", copied_anew },
};

enum { WAYS = sizeof(ways) / sizeof(ways[0]) };

/* An even number of negatives: the picture comes back. */
static void example_measure(struct demo *d, double times[WAYS][ROUNDS])
{
	for (int round = -1; round < ROUNDS; round++) { /* the first round warms up */
		for (int way = 0; way < WAYS; way++) {
			double start = timing_now();

			ways[way].run(d);
			if (round >= 0)
				times[way][round] = timing_now() - start;
			expect_picture(d->picture, (round + 1 + way) % 2 ? 0 : 255, ways[way].name);
		}
	}
}

/* Other work of the machine lengthens a round: the fastest has the least of it. */
static void example_print_times(double times[WAYS][ROUNDS])
{
	double fastest[WAYS], copied;

	printf("%d MiB, with the kernel, fastest of %d rounds in turns:\n", SIZE >> 20, ROUNDS);
	for (int way = 0; way < WAYS; way++) {
		fastest[way] = timing_min(times[way], ROUNDS);
		printf("  %-34s %8.2f ms  %5.2fx\n", ways[way].name, fastest[way] * 1e3,
		       fastest[way] / fastest[0]);
	}
	copied = fastest[1] < fastest[2] ? fastest[1] : fastest[2];
	printf("host import: ok, %d MiB of malloc(), zero copy %.1f times as fast as copying\n",
	       SIZE >> 20, copied / fastest[0]);
}

static void example_compare(struct demo *d)
{
	double times[WAYS][ROUNDS];

	d->kept = session_buffer(&d->cl, CL_MEM_READ_WRITE, SIZE, NULL);
	example_measure(d, times);
	session_release(d->kept);
	example_print_times(times);
}

/* The kernel's result is in the program's memory, and no call copied the result. */
static void show_zero_copy(struct demo *d)
{
	cl_mem mem = session_import_host(&d->cl, CL_MEM_READ_WRITE, d->picture, SIZE);

	example_negate(d, mem);
	expect_picture(d->picture, 255, "the kernel wrote into the program's memory");
	example_draw(d->picture);
	example_negate(d, mem);
	expect_picture(d->picture, 255, "the kernel read what the program wrote after the import");
	session_release(mem);
	example_draw(d->picture);
	printf("a kernel changed %d MiB at %p in place, twice: no map, read or write\n", SIZE >> 20,
	       (void *)d->picture);
}

int main(void)
{
	struct demo d = { .picture = malloc(SIZE) };

	session_program = "host import";
	if (!d.picture)
		session_fail("no memory");
	example_draw(d.picture);
	session_open(&d.cl, NULL);
	session_print(&d.cl);
	d.kernel = session_kernel(&d.cl, source, "negative");
	show_zero_copy(&d);
	example_compare(&d);
	clReleaseKernel(d.kernel);
	session_close(&d.cl);
	free(d.picture);
	return 0;
}
