/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of dma-buf coherency share: a fake dma-buf, and the order of what happened. */
#ifndef TESTS_ICD_ACCESS_H
#define TESTS_ICD_ACCESS_H

#include "fixture.h"

#define SIZE 8192

struct buffer {
	int fd;
	cl_mem mem;
	unsigned char *seen; /* another mapping of it */
};

/* An import of a new fake dma-buf called @name; properties NULL are {TYPE, DMA_BUF}. */
struct buffer buffer_open(const char *name, const cl_import_properties_arm *properties);
void buffer_close(struct buffer *buffer);

extern const cl_import_properties_arm runtime_keeps[], application_keeps[];

/* A queue with profiling, the buffer "a", and a kernel on it, on a fresh layer. */
struct run {
	cl_command_queue queue;
	struct buffer a;
	cl_kernel kernel;
};

#define OUT_OF_ORDER CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE

/* For TEST_EACH(): in order and out of order. */
static const struct queue_kind {
	const char *name;
	cl_command_queue_properties properties;
} queue_kinds[] = { { "in_order", 0 }, { "out_of_order", OUT_OF_ORDER } };

/* Each with and without a quirk of drivers that the test names. */
static const struct driver_kind {
	const char *name;
	cl_command_queue_properties properties;
	bool quirk;
} driver_kinds[] = {
	{ "in_order", 0, false },
	{ "out_of_order", OUT_OF_ORDER, false },
	{ "in_order_quirk", 0, true },
	{ "out_of_order_quirk", OUT_OF_ORDER, true },
};

struct run run_open(cl_command_queue_properties properties);
void run_close(struct run *r);

/* run_close() without fixture_close(). */
void run_release(struct run *r);

/* How often @what is in the trace. */
void expect_count(const char *what, int count);

/* The first @before comes before the first @after, and both are there. */
void expect_order(const char *before, const char *after);

/* START name before the kernel, END after it, once each. */
void expect_bracket(const char *name, const char *kernel);

/* Nothing of the buffer @name. */
void expect_no_sync(const char *name);

cl_event user_event_create(void);
void fixture_complete_event(cl_event event, cl_int status);

/* Long enough for what wrongly does not wait to happen. */
void let_others_run(void);

#endif
