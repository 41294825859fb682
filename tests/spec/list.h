/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_SPEC_LIST_H
#define TESTS_SPEC_LIST_H

/*
 * Prints each sentence as "ID sentence", and indented below it the names of its
 * tests or the reason why it has none.  Returns 0, or 1 if a sentence has both,
 * or one ID two sentences.
 */
int print_list(void);

#endif /* TESTS_SPEC_LIST_H */
