/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process climport-probe tests a platform's devices for a process that must not test them.
 *
 * The caller notices nothing of climport-probe: no SIGCHLD, no child for wait(), no descriptor, no
 * zombie.  Only waitpid() with __WALL or __WCLONE sees the process between (between.h), and may
 * take the end of the process between.
 */
#ifndef ICD_QUERIES_PROBE_H
#define ICD_QUERIES_PROBE_H

#include <stddef.h>

#define PROBE_KEY_SIZE 17
#define PROBE_LINE_SIZE 384 /* a number for each of 64 devices, or a sentence */

enum probe_end {
	PROBE_ANSWERED,
	PROBE_FAILED,	/* the driver hangs or crashes the probe */
	PROBE_NOT_MADE, /* for want of a process, of memory, or of climport-probe */
};

/**
 * probe_run - have the platform of @key probed
 * @line: set to the answer, or to the reason for a missing answer
 *
 * Takes two seconds at most.  A slower probe goes on for ten seconds, or a minute if tests are
 * compiled, and the result is kept for the next process.
 */
enum probe_end probe_run(const char *key, char line[PROBE_LINE_SIZE]);

#endif /* ICD_QUERIES_PROBE_H */
