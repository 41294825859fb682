/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of words separated by spaces, like OpenCL's extension strings. */
#ifndef TESTS_TEXT_H
#define TESTS_TEXT_H

int text_count_word(const char *list, const char *word);

#endif
