/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of words with a space between, as OpenCL has them of extensions. */
#ifndef TESTS_TEXT_H
#define TESTS_TEXT_H

int text_count_word(const char *list, const char *word);

#endif
