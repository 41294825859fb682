/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process climport-probe: tests a platform's devices for a process that must not.
 *
 * The caller does not notice it: no SIGCHLD, no child that its wait() could find, no descriptor.
 */
#ifndef ICD_PROBE_H
#define ICD_PROBE_H

#include <stdbool.h>
#include <stddef.h>

#define PROBE_KEY_SIZE 17

/**
 * probe_run - have the platform of @key probed
 * @line: set to the answer
 *
 * Takes two seconds at most.  A probe that takes longer goes on for a minute, so that its result
 * is kept for the next process.  False: no answer.
 */
bool probe_run(const char *key, char *line, size_t size);

#endif /* ICD_PROBE_H */
