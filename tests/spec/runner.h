/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs tests in child processes.  If the driver crashes or hangs, the running test fails, and a new
 * child continues with the next test.
 *
 * Some faults are the driver's, and not the extension's.  If a test ended with a signal or with an
 * OpenCL error, the runner repeats the test on the driver's own buffers, without layers.  If the
 * second run ends like the first, the test is skipped and the reason is printed.
 */
#ifndef TESTS_SPEC_RUNNER_H
#define TESTS_SPEC_RUNNER_H

#include "harness.h"
#include "spec.h"

struct target {
	const char *platform; /* as in spec_open() */
	unsigned int device;
	bool plain; /* clCreateBuffer() stands in for clImportMemoryARM() */
};

/*
 * Runs the tests @names, or all tests if @count is 0; prints TAP and a summary.  Returns 0; 1 if a
 * test failed; 77 if every test was skipped; or the exit status that a sanitizer gave a child.
 */
int run_tests(const struct target *target, int count, char **names);

/* Runs tests in the calling process, and prints TAP and a line about the target. */
int child_run(const struct target *target, struct test *const *tests, unsigned int count);

#endif /* TESTS_SPEC_RUNNER_H */
