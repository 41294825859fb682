/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A part of the tool that runs in a process of its own: a driver that dies there is found out and
 * named, and a measurement there has an environment of its own.  The first process reads what the
 * part prints.
 */
#ifndef TOOLS_PART_H
#define TOOLS_PART_H

#include <stdio.h>
#include <sys/types.h>

#define PART_DEATH_SIZE 64

/*
 * Starts the tool with the words of a command line, which NULL ends, and with @to as its standard
 * output.  Holds no signal there.  Returns the process, or -1 with errno.
 */
pid_t part_start(const char *const *words, int to);

/*
 * In a part: the descriptor for what the first process reads.  Its standard output becomes standard
 * error, as drivers print, too.  NULL, with errno: no descriptor.
 */
FILE *part_divert(void);

/* The end of a part, as waitpid() has it; -1 with errno. */
int part_wait(pid_t child);

/* How a process ended, for a sentence: "died of SIGABRT (Aborted)", "exited with status 3". */
void part_describe(int status, char text[PART_DEATH_SIZE]);

#endif /* TOOLS_PART_H */
