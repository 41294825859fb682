/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records outlive the process, in $XDG_CACHE_HOME/climport/results or ~/.cache/climport/results: a file for each key
 * (probe/identity.h).  If the folder cannot be written, no record is kept.  Several processes may write at once.
 */
#ifndef ICD_FACTS_KEPT_H
#define ICD_FACTS_KEPT_H

#include <stdbool.h>

#include "icd/facts/facts.h"

/*
 * Returns a record, which the caller frees, or NULL: none is kept, or another user could have written it, or the
 * driver died under other limits.
 * @is_recent: it was written less than an hour ago, or in the hour to come if the clock was set back; or no other can
 *	be written
 */
struct facts_record *kept_read(unsigned long long key, bool *is_recent);

/* In climport-probe. */
void kept_write(unsigned long long key, const struct facts_record *record);

#endif /* ICD_FACTS_KEPT_H */
