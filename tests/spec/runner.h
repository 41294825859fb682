/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs tests in child processes.  A driver that crashes or hangs fails the test
 * that it does so in, and the next child goes on behind it.
 *
 * Not every fault is the extension's: a test that ended with a signal or with an
 * OpenCL error is run once more on the driver's own buffers, without layers.
 * Where that ends the same way the test is skipped, with this as the reason.
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
 * Runs the tests with these names, or all if there are none; prints TAP and the
 * summary.  Returns 0, 1 if a test failed, 77 if none ran, or what a sanitizer
 * made of a child's exit status.
 */
int run_tests(const struct target *target, int count, char **names);

/* Runs tests in this process, and prints TAP and a line about the target. */
int child_run(const struct target *target, struct test *const *tests, unsigned int count);

#endif /* TESTS_SPEC_RUNNER_H */
