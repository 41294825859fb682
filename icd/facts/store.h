/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The records of the program's platforms: kept ones, or those that climport-probe makes now.  A thread of climport's
 * waits for climport-probe, and the callers for that thread, as long as the table in docs/architecture.md says.  What
 * comes later is there for later calls.
 *
 * Records outlive the process, in $XDG_CACHE_HOME/climport/results or ~/.cache/climport/results: a file for each key
 * (probe/identity.h).  If the folder cannot be written, no record is kept.  Several processes may write at once.
 *
 * A record that could be better is made anew after an hour, since a library may be installed meanwhile.  Until the
 * new one is there, the old one serves.  Nothing unknown is kept.
 */
#ifndef ICD_FACTS_STORE_H
#define ICD_FACTS_STORE_H

#include "icd/facts/facts.h"

enum facts_wait {
	FACTS_KEPT,  /* start no process */
	FACTS_QUERY, /* a program only asks for names */
	FACTS_IMPORT,
	FACTS_IMAGE, /* images and large memory are tested, too: the first compilation of PoCL takes a second or two */
};

/**
 * facts_get - the record of a platform
 * @why: set to the reason if the record is unknown
 *
 * Returns the record, which stays until the process ends, or NULL: unknown now.  Queries ask
 * climport-probe once, imports again after a second at the earliest.  A handler of fork() does not wait.
 * With CLIMPORT_PROBE=here the caller makes the record (queries/make_facts.c).
 */
const struct facts_record *facts_get(cl_platform_id platform, enum facts_wait wait,
				     char why[FACTS_WHY_SIZE]);

/* @record is of other devices than there are: it is not believed any more. */
void facts_forget(cl_platform_id platform, const struct facts_record *record);

/* See probe_ask(), for the calling process: no record is kept. */
size_t facts_make_here(cl_platform_id platform, bool with_images, struct facts_record *record);

/* In climport-probe. */
void kept_write(unsigned long long key, const struct facts_record *record);

#endif /* ICD_FACTS_STORE_H */
