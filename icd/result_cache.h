/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Results of self-tests that outlive the process: in $XDG_CACHE_HOME/climport/results, or in
 * ~/.cache/climport/results.  Where that cannot be written nothing is kept.  Processes may write
 * at once.
 */
#ifndef ICD_RESULT_CACHE_H
#define ICD_RESULT_CACHE_H

#include <stdbool.h>
#include <stddef.h>

/* @key and lines are text without newlines.  False: not known. */
bool result_cache_get(const char *key, char *line, size_t size);

/* The same, with the seconds since it was written. */
bool result_cache_get_age(const char *key, char *line, size_t size, long *age);

void result_cache_set(const char *key, const char *line);

#endif
