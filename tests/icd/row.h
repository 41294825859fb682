/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A row: kernels on the import "a", enqueued back to back on an in-order queue.
 *
 * On a slow machine the queue may idle in the middle of a row, and the layer then ends the row
 * early.  A test with an exact count of START therefore tries again.
 */
#ifndef TESTS_ICD_ROW_H
#define TESTS_ICD_ROW_H

#include "access.h"

#define ROW 20

void row_enqueue(struct run *r, int count);

/*
 * Holds the queue back: commands enqueued before row_let_go() are in the queue before START can
 * begin.
 */
cl_event row_hold_back(struct run *r);

void row_let_go(cl_event go);

/* Fails the test unless every kernel of the trace runs between a START and an END of "a". */
void row_expect_all_inside(int kernels);

/* Whether all kernels enqueued so far, three or more, are complete, and every START has its END. */
bool row_has_ended(void *unused);

/* An ordinary buffer of the driver. */
extern cl_mem row_plain;

#endif
