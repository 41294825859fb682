/* SPDX-License-Identifier: Apache-2.0 */
/* The layer's interface for the program climport-probe.  Not an OpenCL interface. */
#ifndef ICD_PROBE_INTERFACE_H
#define ICD_PROBE_INTERFACE_H

#include <stddef.h>

#include <CL/cl.h>

#define PROBE_FUNCTION "climportRunProof"
#define PROBE_FD 3		    /* the descriptor for the answer, in a probe process */
#define PROBE_STATUS_NO_PLATFORM 99 /* of a probe process: no platform has run the proof */

/**
 * probe_fn - run a proof, in a probe process
 * @key: of the platform in question, from the parent
 * @request: the name of a proof, and words for the proof
 * @answer: set to a line for the parent
 *
 * Returns CL_SUCCESS; CL_INVALID_PLATFORM if @platform is not the platform of @key; or another
 * error, without an answer.
 */
typedef cl_int(CL_API_CALL *probe_fn)(cl_platform_id platform, const char *key, const char *request,
				      char *answer, size_t size);

#endif /* ICD_PROBE_INTERFACE_H */
