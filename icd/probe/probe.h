/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process climport-probe tests a platform's devices for a process that must not test them
 * (proof.h).
 *
 * The caller notices nothing of climport-probe: no SIGCHLD, no child for wait(), no descriptor, no
 * zombie.  Only waitpid() with __WALL or __WCLONE sees the process between (between.h), and may
 * take the end of the process between.
 */
#ifndef ICD_PROBE_PROBE_H
#define ICD_PROBE_PROBE_H

#include <stdbool.h>
#include <stddef.h>

#define PROBE_KEY_SIZE 34
#define PROBE_REQUEST_SIZE 512
#define PROBE_LINE_SIZE 384 /* a number for each of 64 devices, or a sentence */

enum probe_end {
	PROBE_ANSWERED,
	PROBE_FAILED,	   /* the driver crashes or ends the probe */
	PROBE_HANGS,	   /* the driver holds the probe up beyond its time */
	PROBE_NO_PLATFORM, /* in the probe process no such platform runs the proof */
	PROBE_LOST,	   /* killed, or not started in time: says nothing of the driver */
	PROBE_NOT_MADE,	   /* for want of a process, of memory, or of climport-probe */
};

/**
 * probe_run - have a proof of the platform of @key run, or its record made
 * @request: the name of the proof, and words for the proof; NULL or PROBE_WITH_IMAGES: the record (facts/facts.h)
 * @patience_ms: the time after which a missing answer is PROBE_HANGS; the probe goes on
 * @text: set to the answer, or to the reason for a missing answer
 */
enum probe_end probe_run(const char *key, const char *request, unsigned int patience_ms, char *text,
			 size_t size);

/* Whether a missing answer is the driver's fault. */
static inline bool probe_blames_driver(enum probe_end end)
{
	return end == PROBE_FAILED || end == PROBE_HANGS;
}

#endif /* ICD_PROBE_PROBE_H */
