/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A worker: a process of this program that runs a proof, or a part of a proof, for the process that gathers
 * (probe_gather.h).  The two talk on a socket, which is the worker's PROBE_FD.
 *
 * This file knows processes and messages, and not what the messages say.
 */
#ifndef TOOLS_PROBE_WORKER_H
#define TOOLS_PROBE_WORKER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct worker {
	pid_t pid;	   /* 0: not started, or the end is known */
	int socket, pidfd; /* pidfd: negative without Linux 5.3 */
	int status;	   /* of the end */
};

/* False: the system refuses. */
bool probe_worker_start(struct worker *w, char *const argv[]);

/* Closes the socket: a worker that waits for a request ends. */
void probe_worker_dismiss(struct worker *w);

/* Waits for the end of a worker that has been started. */
void probe_worker_reap(struct worker *w);

/* Ends a worker whose time is over.  The status is that of SIGALRM, by which workers end themselves. */
void probe_worker_end(struct worker *w);

/*
 * The next message, as a string, or -1 if the worker has ended.  A process that the driver has started
 * may have the worker's socket for longer than the worker lives.
 */
ssize_t probe_worker_receive(struct worker *w, char *message, size_t size);

#endif /* TOOLS_PROBE_WORKER_H */
