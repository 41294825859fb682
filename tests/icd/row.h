/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A row: kernels on the import "a" that are enqueued one after the other on an in-order queue.
 *
 * Where this machine is slow a row may idle in the middle, and be ended there: what is counted
 * exactly is tried again.
 */
#ifndef TESTS_ICD_ROW_H
#define TESTS_ICD_ROW_H

#include "access.h"

#define ROW 20

void row_enqueue(struct run *r, int count);

/* What is enqueued meanwhile is in the queue before START can begin. */
cl_event row_hold_back(struct run *r);

void row_let_go(cl_event go);

/* Every kernel of the trace is between a START and an END of "a". */
void row_expect_all_inside(int kernels);

typedef cl_int(CL_API_CALL *row_enqueue_count_fn)(cl_command_queue queue, cl_kernel kernel,
						  cl_uint dims, const size_t *offset,
						  const size_t *count, const size_t *local,
						  cl_uint num, const cl_event *list,
						  cl_event *event);

row_enqueue_count_fn row_find_count_function(void);

/* All kernels enqueued so far, three or more, are complete, and so are their brackets. */
bool row_has_ended(void *unused);

/* Ways to observe that a kernel is complete; @row_plain is a buffer of the driver. */
extern cl_mem row_plain;

#endif
