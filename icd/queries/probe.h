/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process climport-probe: tests a platform's devices for a process that must not.
 *
 * The caller notices nothing of the process: there is no SIGCHLD, no child that wait() could
 * find, no descriptor, no zombie.  Only waitpid() with __WALL or __WCLONE sees the process that
 * waits for the probe, and may take its end.
 */
#ifndef ICD_QUERIES_PROBE_H
#define ICD_QUERIES_PROBE_H

#include <stddef.h>

#define PROBE_KEY_SIZE 17
#define PROBE_LINE_SIZE 384 /* a number for each of 64 devices, or a sentence */

enum probe_end {
	PROBE_ANSWERED,
	PROBE_FAILED,	/* the driver's doing: it hangs or crashes the probe */
	PROBE_NOT_MADE, /* for want of a process, of memory, or of climport-probe */
};

/**
 * probe_run - have the platform of @key probed
 * @line: set to the answer, or to why there is none
 *
 * Takes two seconds at most.  A probe that takes longer goes on, so that its result is kept for
 * the next process: ten seconds, or a minute where tests are compiled.
 */
enum probe_end probe_run(const char *key, char line[PROBE_LINE_SIZE]);

#endif /* ICD_QUERIES_PROBE_H */
