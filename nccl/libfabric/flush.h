/* SPDX-License-Identifier: Apache-2.0 */
/* The pair of endpoints by which a device reads its own memory: flush.c. */
#ifndef NCCL_LIBFABRIC_FLUSH_H
#define NCCL_LIBFABRIC_FLUSH_H

#include "nccl/libfabric/handshake.h"

#include <time.h>

/* The read of a trial.  A read that does not end in time stays with the pair. */
struct flush_trial {
	struct fabric_operation read; /* first */
	struct flush_trial *next;
};

struct fabric_flush {
	struct fabric_flush *next; /* of the device's broken pairs */
	struct fabric_device *device;
	struct fid_eq *eq;
	struct fid_pep *listener; /* until the pair is connected */
	uint64_t id;		  /* of the reader's request */
	struct fabric_rail reader, target;
	uint64_t landing; /* where the bytes go */
	struct fid_mr *landing_mr;
	struct flush_trial *trials; /* with the device's flush_lock: given up */
};

/*
 * Connects two endpoints of the device.  0 or a negative errno; after an error the members that are set
 * have to be closed, too.
 */
int flush_pair_make(struct fabric_flush *flush);

/* The end of the time for the pair, for the read of a trial, and for the reads of a closed pair. */
time_t flush_pair_limit(void);

/* Gives the processor to other threads, and looks at the clock. */
bool flush_pair_is_overdue(time_t limit);

#endif /* NCCL_LIBFABRIC_FLUSH_H */
