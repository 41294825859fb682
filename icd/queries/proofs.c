/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/queries/proofs.h"

#include <string.h>

#include "icd/methods/method.h"
#include "icd/probe/proof.h"

/* NULL, or the proof that a request names.  @words: set to what follows the name. */
static const struct proof *proofs_find(const char *request, const char **words)
{
	const size_t length = strcspn(request, " ");

	*words = request + length + strspn(request + length, " ");
	return method_proof(request, length);
}

cl_int CL_API_CALL proofs_run(cl_platform_id platform, const char *key, const char *request,
			      char *answer, size_t size)
{
	const char *words;
	const struct proof *proof = proofs_find(request, &words);

	if (!proof_is_platform(platform, key))
		return CL_INVALID_PLATFORM;
	if (!proof)
		return CL_INVALID_VALUE;
	return proof->run(platform, words, answer, size) ? CL_SUCCESS : CL_OUT_OF_RESOURCES;
}
