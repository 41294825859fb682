/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process between the application and a probe process.
 *
 * posix_spawn() would give the application a child: a SIGCHLD at the child's end, and a child for
 * the application's wait() to find.  An orphaned probe would be given to init, or to a
 * subreaper, which need not expect orphans: PID 1 of most containers reaps its own children alone.
 *
 * So clone() makes a process between, without a signal for its end; wait() does not see such a
 * process.  The process between spawns the probe, waits for the probe's end, and reads the answer from a file without
 * a name.  It shares the caller's memory, as after vfork(): a copy, as after fork(), would
 * part pinned memory from the device at the caller's next write.  Instead of the application's, a thread
 * of climport's is stopped meanwhile.
 *
 *	climport's thread -- process between -- climport-probe -- worker
 *
 * The process between has no descriptor but the file.  If the application ends, the process between
 * is killed, because the process would keep the application's memory.
 */
#ifndef ICD_PROBE_BETWEEN_H
#define ICD_PROBE_BETWEEN_H

#include <spawn.h>
#include <sys/types.h>

#define BETWEEN_STACK_SIZE 65536
#define BETWEEN_FILE 0 /* its descriptor, in a process without other descriptors */

struct between {
	/* Set by the caller. */
	const char *program;
	char *argv[6], **env;
	void *answer;
	size_t size; /* bytes: of the room for the answer */
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;

	/* Set by the process between. */
	size_t used; /* bytes: of the answer, if the probe has ended with success */
	int error;
	pid_t pid;  /* of the probe */
	int status; /* of the probe's end; -1: unknown */
	_Alignas(16) char stack[BETWEEN_STACK_SIZE];
};

/* Returns when the process between has ended. */
void between_run(struct between *b);

#endif /* ICD_PROBE_BETWEEN_H */
