/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_SPEC_CHOOSE_H
#define TESTS_SPEC_CHOOSE_H

#include "harness.h"

/*
 * The tests whose names match one of the patterns of the shell, or all tests if @count is 0, in the order
 * of the files.  *@chosen is the caller's.  Returns the number of tests; 0, with a message, if a
 * pattern matches none.
 */
size_t choose_tests(int count, char **patterns, struct test ***chosen);

#endif /* TESTS_SPEC_CHOOSE_H */
