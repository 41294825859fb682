/* SPDX-License-Identifier: Apache-2.0 */
/* Small files of sysfs and procfs, below a folder. */
#ifndef TOOLS_DIAG_READ_H
#define TOOLS_DIAG_READ_H

#include <sys/types.h>

enum answer { UNKNOWN, NO, YES };

/* Reads at most @size - 1 bytes and adds a zero.  Returns the number of bytes; -1: no file. */
ssize_t read_bytes(const char *dir, const char *name, char *text, size_t size);

/* The first line, without the newline; "" if the file has no line. */
const char *diag_read_line(const char *dir, const char *name, char *text, size_t size);

/* A hexadecimal number; 0 if the file has no number. */
unsigned int read_number(const char *dir, const char *name);

/* The first word after @name in the line, ended with a zero; "" if the line has no such word. */
const char *read_word_after(char *text, const char *name);

int read_exists(const char *root, const char *name);

#endif
