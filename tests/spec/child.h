/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_SPEC_CHILD_H
#define TESTS_SPEC_CHILD_H

#include "harness.h"
#include "run.h"

/*
 * Runs tests in the calling process and sends the results: with run->together all, else up to the first
 * test that does something.  With no test, sends what is to be tested, or why nothing can be.
 */
void child_run(const struct run *run, struct test *const *tests, size_t count);

#endif /* TESTS_SPEC_CHILD_H */
