/* SPDX-License-Identifier: Apache-2.0 */
/* Counts the results of a run, and prints TAP: a line for each test, and the summary. */
#ifndef TESTS_SPEC_TALLY_H
#define TESTS_SPEC_TALLY_H

#include "harness.h"

/*
 * Prints and counts a result.  @why is the reason of a skip.  @details are lines, each with an end;
 * printed below the result, behind "# ".
 */
void tally_add(const struct test *test, enum test_result result, const char *why,
	       const char *details);

/* Prints the plan, the reasons of skips, the sentences, @about and the numbers. */
void tally_print(struct test *const *tests, size_t count, const char *about);

/* 0 if tests passed and none failed, 1 if a test failed, 77 if none did either. */
int tally_status(void);

#endif /* TESTS_SPEC_TALLY_H */
