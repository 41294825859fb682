/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs each test in a process of its own, and judges how the process ended.
 *
 * Some faults are the driver's, and not the extension's.  If a test ended with a signal, with an OpenCL
 * error or with wrong bytes, the runner repeats the test on the driver's own buffers, without layers.
 * If the second run ends like the first, the test is skipped and the reason is printed.
 */
#ifndef TESTS_SPEC_RUNNER_H
#define TESTS_SPEC_RUNNER_H

#include "harness.h"
#include "run.h"

/* Runs the tests and prints TAP.  Returns the exit status of main.c's help. */
int run_tests(const struct run *run, struct test *const *tests, size_t count);

#endif /* TESTS_SPEC_RUNNER_H */
