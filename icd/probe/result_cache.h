/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Results of self-tests outlive the process, in $XDG_CACHE_HOME/climport/results or in
 * ~/.cache/climport/results.  If the folder cannot be written, no result is kept.  Several
 * processes may write at once.
 */
#ifndef ICD_PROBE_RESULT_CACHE_H
#define ICD_PROBE_RESULT_CACHE_H

#include <stdbool.h>
#include <stddef.h>

/*
 * @key is text without newlines; a result is text.  False: not known.  @is_recent: the result was written less than
 * an hour ago, or in the hour to come if the clock was set back.  Bad news is believed for an hour: a library may be
 * installed meanwhile.
 */
bool result_cache_get_recent(const char *key, char *line, size_t size, bool *is_recent);

void result_cache_set(const char *key, const char *line);

/* Forgets the result of a key, if there is one. */
void result_cache_remove(const char *key);

#endif
