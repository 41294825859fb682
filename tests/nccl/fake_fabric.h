/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libfabric with one device of the provider verbs, in the process of the test.  Endpoints connect to one
 * another; reads of a peer's memory do what the test says.  The clock runs fast, so that no test waits.
 */
#ifndef TESTS_NCCL_FAKE_FABRIC_H
#define TESTS_NCCL_FAKE_FABRIC_H

#include "nccl/libfabric/fabric.h"

enum fake_reads {
	FAKE_READS_END,
	FAKE_READS_FAIL, /* with an error in the queue of completions */
	FAKE_READS_FULL, /* the endpoint has no room for a read */
	FAKE_READS_HELD, /* a read does not end, until its endpoint is shut or closed */
	FAKE_READS_LOST, /* a read does not end, whatever happens to its endpoint */
};

/* The plugin's libfabric from now on, and what reads do.  Forgets what was counted. */
void fake_fabric_install(enum fake_reads reads);
void fake_fabric_set_reads(enum fake_reads reads);

/* Ends all reads that have not ended, also those of closed endpoints. */
void fake_fabric_end_reads(void);

int fake_fabric_pairs(void);	    /* made so far */
int fake_fabric_open(void);	    /* endpoints that are open */
int fake_fabric_reads_closed(void); /* reads that were posted to closed endpoints */
int fake_fabric_reads_shut(void); /* ... to endpoints that are shut, which end with the endpoint */

#endif /* TESTS_NCCL_FAKE_FABRIC_H */
