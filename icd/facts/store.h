/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The records of the program's platforms: kept ones, or those that climport-probe makes now.  One thread at a
 * time looks for the record of a platform; others wait for it.
 *
 * A record that could be better is believed for an hour, since a library may be installed meanwhile.  Nothing
 * unknown is kept.
 */
#ifndef ICD_FACTS_STORE_H
#define ICD_FACTS_STORE_H

#include "icd/facts/facts.h"

enum facts_wait {
	FACTS_KEPT,   /* start no process */
	FACTS_QUERY,  /* ten seconds for climport-probe: a program only asks for names */
	FACTS_IMPORT, /* as long as climport-probe takes */
	FACTS_IMAGE, /* likewise, and images and large memory are tested: the first compilation of PoCL takes a second or two */
};

/**
 * facts_get - the record of a platform
 * @why: set to the reason if the record is unknown
 *
 * Returns the record, which stays until the process ends, or NULL: unknown now.  Queries ask
 * climport-probe once, imports again after a second at the earliest.  A handler of fork() does not wait for another thread.
 */
const struct facts_record *facts_get(cl_platform_id platform, enum facts_wait wait,
				     char why[FACTS_WHY_SIZE]);

/* The record is of other devices than there are: it is not believed any more. */
void facts_forget(cl_platform_id platform);

/* In climport-probe: keeps a record unless something in it is unknown. */
void facts_keep(cl_platform_id platform, const char *text);

#endif /* ICD_FACTS_STORE_H */
