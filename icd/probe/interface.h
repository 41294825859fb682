/* SPDX-License-Identifier: Apache-2.0 */
/* The layer's interface for the program climport-probe.  Not an OpenCL interface. */
#ifndef ICD_PROBE_INTERFACE_H
#define ICD_PROBE_INTERFACE_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/wait.h>

#include <CL/cl.h>

#define PROBE_FUNCTION "climportMakeFacts"
#define PROBE_WITH_IMAGES "images"  /* the request for a record with the tests that take long */
#define PROBE_FD 3		    /* the descriptor of the file for the record */
#define PROBE_STATUS_NO_PLATFORM 99 /* of a probe process: no such platform */
#define PROBE_STATUS_LOST 126	    /* and greater: the process says nothing of the driver */
#define PROBE_STATUS_HANGS (-1)	    /* of a worker that climport-probe has ended for its hang */

/* The head of a record, which climport-probe reads. */
struct probe_progress {
	unsigned int steps;  /* grows with each test */
	unsigned int layout; /* not 0: the record is sealed (facts/facts.h) */
};

/**
 * probe_fn - make the record of a platform (facts/facts.h), and keep it
 * @key: of the platform in question, from the parent
 * @with_images: images are tested, too, and what else takes long or kills drivers
 * @fd: the record's file.  Sections that are there
 *	already are not made again: a worker that comes after a dead one goes on behind it.
 * @status: how the worker before has ended
 *
 * Returns CL_SUCCESS; CL_INVALID_PLATFORM if @platform is not the platform of @key; or another error.
 */
typedef cl_int(CL_API_CALL *probe_fn)(cl_platform_id platform, const char *key, bool with_images,
				      int fd, int status);

/*
 * Whether others have ended a probe process, which says nothing of the driver: who stops a service may
 * send its signal to each process.  A filter of system calls sends SIGSYS, and the filter is the
 * application's.
 */
static inline bool probe_status_is_lost(int status)
{
	static const int signals[] = { SIGHUP,	SIGINT,	 SIGQUIT, SIGKILL,
				       SIGUSR1, SIGUSR2, SIGTERM, SIGSYS };

	if (status == PROBE_STATUS_HANGS)
		return false;
	if (!WIFSIGNALED(status))
		return WEXITSTATUS(status) >= PROBE_STATUS_LOST;
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		if (WTERMSIG(status) == signals[i])
			return true;
	return false;
}

#endif /* ICD_PROBE_INTERFACE_H */
