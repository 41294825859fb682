/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Proofs: self-tests that run in a probe process (probe.h), because a driver may crash or hang.
 * The process that asks lives on.
 *
 * A proof has a name, by which the probe process finds the proof among method_ops.proofs of all
 * methods.  The process that asks describes the test in words; the answer is a line.
 */
#ifndef ICD_PROBE_PROOF_H
#define ICD_PROBE_PROOF_H

#include <stdbool.h>
#include <stddef.h>

#include "icd/cl_compat.h"
#include "icd/probe/probe.h"

struct proof {
	const char *name;	  /* a word */
	unsigned int patience_ms; /* how long the process that asks waits */

	/*
	 * In the probe process: runs the test that @words describe, and sets @answer to a line.  False:
	 * no answer.  A probe process ends after a minute; alarm() shortens the time.
	 */
	bool (*run)(cl_platform_id platform, const char *words, char *answer, size_t size);
};

/**
 * proof_ask - have a proof run in a probe process
 * @words: for the proof; fewer than PROBE_REQUEST_SIZE bytes with the proof's name
 * @line: set to the answer, or to the reason for a missing answer
 *
 * PROBE_NOT_MADE, PROBE_LOST and PROBE_NO_PLATFORM say nothing about the driver: the caller may run the test
 * itself.
 */
enum probe_end proof_ask(cl_platform_id platform, const struct proof *proof, const char *words,
			 char line[PROBE_LINE_SIZE]);

/* The same for the record of a platform (facts/facts.h).  @text: set to the record, or to the reason. */
enum probe_end proof_ask_facts(cl_platform_id platform, bool with_images, unsigned int patience_ms,
			       char *text, size_t size);

/* Whether the name has @length characters, and is @name's beginning. */
bool proof_is_named(const struct proof *proof, const char *name, size_t length);

/*
 * In the probe process: whether @key, of the process that asks, is the platform's.  The key also has the
 * environment's part of the keys of results (identity.h), which the probe process takes over.
 */
bool proof_is_platform(cl_platform_id platform, const char *key);

#endif /* ICD_PROBE_PROOF_H */
