/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text of others: names that come from drivers, devices, files, the kernel and the environment are
 * bytes of any kind.  A terminal obeys some of these bytes: ESC begins a command.
 */
#ifndef UTIL_UTF8_H
#define UTIL_UTF8_H

#include <stddef.h>

/* The bytes of the character that @text begins with: 1 to 4, or 0 if the bytes are no UTF-8. */
size_t utf8_length(const char *text);

/*
 * Makes a text safe to print in a line: a '?' stands for each control character, each character
 * that turns the direction of writing, each end of a line, and each byte that is no UTF-8.
 */
void utf8_make_printable(char *text);

#endif /* UTIL_UTF8_H */
