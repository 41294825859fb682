/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The layer's interface for the program climport-probe.  Not an OpenCL interface.
 *
 * A request is the name of a proof, and words for the proof.  A proof may have parts, such as the devices
 * of a platform, which run in processes of their own, so that a part which ends its process does not
 * spoil the others.  The requests of a proof with N parts are, behind the request itself:
 *
 *	part I			the I-th part, counted from 0: the answer is a word, with "?" at the end if
 *				the answer is one of the moment
 *	parts WORD WORD ...	the answers of all parts: the answer is a line for the parent.  "-" stands
 *				for a part whose process died, "?" for a part whose process was lost, which
 *				says nothing of the driver
 */
#ifndef ICD_PROBE_INTERFACE_H
#define ICD_PROBE_INTERFACE_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/wait.h>

#include <CL/cl.h>

#define PROBE_FUNCTION "climportRunProof"
#define PROBE_PARTS_FUNCTION "climportCountProofParts"
#define PROBE_PART "part"
#define PROBE_PARTS "parts"
#define PROBE_DIED_WORD "-"
#define PROBE_LOST_WORD "?"
#define PROBE_MOMENT '?'	     /* at the end of a word */
#define PROBE_AT_ONCE 8		     /* processes that test parts: each starts the driver */
#define PROBE_PARTS_PATIENCE_MS 1500 /* who asks waits longer than this for a proof with parts */
#define PROBE_EARLY '+'		     /* before a line for the parent: the probe goes on */
#define PROBE_FD 3		     /* the descriptor for the answer, in a probe process */
#define PROBE_STATUS_NO_PLATFORM 99  /* of a probe process: no platform has run the proof */
#define PROBE_STATUS_LOST 126	     /* and greater: the process says nothing of the driver */

/**
 * probe_fn - run a proof, in a probe process
 * @key: of the platform in question, from the parent
 * @request: see above
 * @answer: set to a line for the parent, or to a word
 *
 * Returns CL_SUCCESS; CL_INVALID_PLATFORM if @platform is not the platform of @key; or another
 * error, without an answer.
 */
typedef cl_int(CL_API_CALL *probe_fn)(cl_platform_id platform, const char *key, const char *request,
				      char *answer, size_t size);

/* The number of parts of a request.  0: @platform is not the platform of @key.  1: no parts. */
typedef cl_uint(CL_API_CALL *probe_parts_fn)(cl_platform_id platform, const char *key,
					     const char *request);

/*
 * Whether others have ended a probe process, which says nothing of the driver: who stops a service may
 * send its signal to each process.  A filter of system calls sends SIGSYS, and the filter is the
 * application's.
 */
static inline bool probe_status_is_lost(int status)
{
	static const int signals[] = { SIGHUP,	SIGINT,	 SIGQUIT, SIGKILL,
				       SIGUSR1, SIGUSR2, SIGTERM, SIGSYS };

	if (!WIFSIGNALED(status))
		return WEXITSTATUS(status) >= PROBE_STATUS_LOST;
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		if (WTERMSIG(status) == signals[i])
			return true;
	return false;
}

#endif /* ICD_PROBE_INTERFACE_H */
