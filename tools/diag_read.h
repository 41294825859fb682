/* SPDX-License-Identifier: Apache-2.0 */
/* Small files of sysfs and procfs, as they are below a folder. */
#ifndef TOOLS_DIAG_READ_H
#define TOOLS_DIAG_READ_H

#include <sys/types.h>

enum answer { UNKNOWN, NO, YES };

/* At most @size - 1 bytes, and ends them.  Returns how many, -1 if there is no such file. */
ssize_t read_bytes(const char *dir, const char *name, char *text, size_t size);

/* The first line, without its end; "" if there is none. */
const char *diag_read_line(const char *dir, const char *name, char *text, size_t size);

/* Hexadecimal; 0 if there is none. */
unsigned int read_number(const char *dir, const char *name);

/* The first word after @name in the same line, which it ends; "" if there is none. */
const char *read_word_after(char *text, const char *name);

int read_exists(const char *root, const char *name);

#endif
