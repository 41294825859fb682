/* SPDX-License-Identifier: Apache-2.0 */
/* Runs proofs by name, in the probe process (probe/proof.h). */
#ifndef ICD_QUERIES_PROOFS_H
#define ICD_QUERIES_PROOFS_H

#include "icd/cl_compat.h"
#include "icd/probe/interface.h"

/* See probe_fn. */
cl_int CL_API_CALL proofs_run(cl_platform_id platform, const char *key, const char *request,
			      char *answer, size_t size);

#endif /* ICD_QUERIES_PROOFS_H */
