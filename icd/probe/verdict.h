/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Verdicts: the results of proofs of a device, which are kept as those of other self-tests are.  A device
 * that passed stays proved for the driver, the device and the machine; a failure is believed for an hour.
 *
 * The process that asks never runs such a proof itself: the driver may not survive.
 */
#ifndef ICD_PROBE_VERDICT_H
#define ICD_PROBE_VERDICT_H

#include <stdbool.h>
#include <stddef.h>

#include "icd/probe/proof.h"

#define VERDICT_WHY_SIZE 160 /* bytes, of a reason in a sentence */

enum verdict {
	VERDICT_PASSED,
	VERDICT_FAILED, /* the driver dies, hangs, or does something wrong */
	VERDICT_UNKNOWN, /* nothing can be proved at the moment: for want of memory, or of a process */
	VERDICT_UNANSWERED, /* a probe process was asked, and what became of it says nothing */
};

/**
 * verdict_get - the kept verdict, or that of a probe process
 * @words: for the proof
 * @why: set unless the device passed: the reason, a clause for people
 */
enum verdict verdict_get(cl_device_id device, const struct proof *proof, const char *words,
			 char why[VERDICT_WHY_SIZE]);

/* The answer of a probe process.  @why: "" for VERDICT_PASSED.  False: no room. */
bool verdict_format(enum verdict verdict, const char *why, char *answer, size_t size);

#endif /* ICD_PROBE_VERDICT_H */
