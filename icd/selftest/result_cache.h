/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Results of self-tests that outlive the process: in $XDG_CACHE_HOME/climport/results, or in
 * ~/.cache/climport/results.  Where that cannot be written nothing is kept.  Processes may write
 * at once.
 */
#ifndef ICD_SELFTEST_RESULT_CACHE_H
#define ICD_SELFTEST_RESULT_CACHE_H

#include <stdbool.h>
#include <stddef.h>

/* @key and lines are text without newlines.  False: not known. */
bool result_cache_get(const char *key, char *line, size_t size);

/*
 * The same.  @is_recent: it was written less than an hour ago, or in the hour to come by a clock
 * that was set back since.  Bad news is believed so long: a library may be installed meanwhile.
 */
bool result_cache_get_recent(const char *key, char *line, size_t size, bool *is_recent);

void result_cache_set(const char *key, const char *line);

#endif
