/* SPDX-License-Identifier: Apache-2.0 */
/* The sentences without a test, each with the reason. */
#ifndef TESTS_SPEC_UNTESTED_H
#define TESTS_SPEC_UNTESTED_H

struct untested {
	const char *says; /* as TEST's second argument */
	const char *why;
};

extern const struct untested untested[]; /* ends with a row of NULLs */

#endif /* TESTS_SPEC_UNTESTED_H */
