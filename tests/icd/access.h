/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the tests of dma-buf coherency: a fake dma-buf, and expectations on the order of
 * events.
 */
#ifndef TESTS_ICD_ACCESS_H
#define TESTS_ICD_ACCESS_H

#include "fixture.h"

#define SIZE 8192

struct buffer {
	int fd;
	cl_mem mem;
	unsigned char *seen; /* a second mapping of the dma-buf, for the host */
};

/*
 * Imports a new fake dma-buf called @name.  If @properties is NULL, the properties are {TYPE,
 * DMA_BUF}.
 */
struct buffer buffer_open(const char *name, const cl_import_properties_arm *properties);
void buffer_close(struct buffer *buffer);

extern const cl_import_properties_arm runtime_keeps[], application_keeps[];

/* A queue with profiling, the buffer "a", and a kernel on the buffer, on a fresh layer. */
struct run {
	cl_command_queue queue;
	struct buffer a;
	cl_kernel kernel;
	int mapped_before; /* fake dma-bufs that earlier tests left mapped */
};

#define OUT_OF_ORDER CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE

/* For TEST_EACH(): a row for each order of a queue. */
static const struct queue_kind {
	const char *name;
	cl_command_queue_properties properties;
} queue_kinds[] = { { "in_order", 0 }, { "out_of_order", OUT_OF_ORDER } };

/*
 * For TEST_EACH(): each order of a queue with and without a quirk of drivers.  The test sets the
 * quirk.
 */
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

/* For TEST_EACH(): the edges of a bracket. */
static const struct sync_edge {
	const char *name;
} sync_edges[] = { { "START" }, { "END" } };

/* For TEST_EACH(): whether the application asks for an event of the command. */
static const struct event_kind {
	const char *name;
	bool wanted;
} event_kinds[] = { { "without_event", false }, { "with_event", true } };

struct run run_open(cl_command_queue_properties properties);

/*
 * A run of version 1.1.0, which permits the host's commands, on an import whose consistency the
 * runtime keeps.  The queue has no profiling.
 */
struct run run_open_for_host(cl_command_queue_properties properties);
void run_close(struct run *r);

/* run_close() without fixture_close(). */
void run_release(struct run *r);

/* Fails the test unless @count entries of the trace begin with @what. */
void expect_count(const char *what, int count);

/* Fails the test unless imports were acquired @count times, and released each time. */
void expect_acquires(int count);

/*
 * Fails the test unless the trace has both texts, and the first @before precedes the first @after.
 */
void expect_order(const char *before, const char *after);

/*
 * Fails the test unless START of @name precedes the kernel and END follows the kernel, once each.
 */
void expect_bracket(const char *name, const char *kernel);

/* Fails the test if the trace has a START or an END of the buffer @name. */
void expect_no_sync(const char *name);

/* clEnqueueNDCountKernelINTEL. */
typedef cl_int(CL_API_CALL *enqueue_count_fn)(cl_command_queue queue, cl_kernel kernel,
					      cl_uint dims, const size_t *offset,
					      const size_t *count, const size_t *local, cl_uint num,
					      const cl_event *list, cl_event *event);
enqueue_count_fn access_find_count_function(void);

cl_event user_event_create(void);
void fixture_complete_event(cl_event event, cl_int status);

/* Sleeps long enough for a command to run if the command wrongly does not wait. */
void let_others_run(void);

#endif
