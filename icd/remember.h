/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines that outlive the process: $XDG_CACHE_HOME/climport, or ~/.cache/climport.  Where that
 * cannot be written nothing is remembered.
 */
#ifndef ICD_REMEMBER_H
#define ICD_REMEMBER_H

#include <stdbool.h>
#include <stddef.h>

/* @key and lines are text without newlines.  False: not known. */
bool remember_get(const char *key, char *line, size_t size);
void remember_set(const char *key, const char *line);

#endif
