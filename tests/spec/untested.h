/* SPDX-License-Identifier: Apache-2.0 */
/* The sentences without a test, each with the reason. */
#ifndef TESTS_SPEC_UNTESTED_H
#define TESTS_SPEC_UNTESTED_H

#include <stdbool.h>

struct untested {
	const char *says; /* as TEST's second argument */
	const char *why;
	bool is_missing; /* a test is possible, and not written */
};

extern const struct untested untested[]; /* ends with a row without text */

#endif /* TESTS_SPEC_UNTESTED_H */
