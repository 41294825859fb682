/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The proof behind the answers for a platform (takes.h): tests all devices of the platform.  In a probe
 * process each device is a part of the proof (probe/interface.h), and the result is kept.
 */
#ifndef ICD_QUERIES_TAKES_PROOF_H
#define ICD_QUERIES_TAKES_PROOF_H

#include <stdbool.h>

#include "icd/objects/device.h"
#include "icd/probe/proof.h"
#include "icd/queries/takes.h"

/*
 * The process that asks waits two seconds at most.  A slower probe goes on, and the result is kept for the
 * next process: the test of a device has ten seconds, or a minute if it is compiled, and all tests together
 * have a minute.
 */
extern const struct proof takes_proof;

/* The bits of a record (support.h); 0 for NULL. */
unsigned int takes_of_record(const struct device *device);

/* Tests all devices in the calling process.  False: a result of the moment, not to be kept. */
bool takes_test(cl_platform_id platform, struct takes *t);

#endif /* ICD_QUERIES_TAKES_PROOF_H */
