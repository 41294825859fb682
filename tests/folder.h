/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A folder in /tmp for the files of a test program.  The program's first process makes the folder
 * before the first test, and removes the folder with all files at its end.  So nothing is left of a
 * test whose process dies, or ends without exit().
 */
#ifndef TESTS_FOLDER_H
#define TESTS_FOLDER_H

#include <stddef.h>

/* Writes the path of @name in the folder, and fails the test if there is no folder, or no room. */
void folder_path(const char *name, char *path, size_t room);

#endif
