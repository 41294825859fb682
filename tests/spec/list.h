/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_SPEC_LIST_H
#define TESTS_SPEC_LIST_H

/*
 * Prints each sentence as "ID sentence", and indented below the names of the tests, or the reason
 * why no test is possible.  Returns 0, or 1 if a sentence has both or an ID has two sentences.
 */
int print_list(void);

#endif /* TESTS_SPEC_LIST_H */
