/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/queries/proofs.h"

#include <string.h>

#include "icd/methods/method.h"
#include "icd/probe/proof.h"
#include "icd/queries/takes_proof.h"

/* NULL, or the proof that a request names.  @words: set to what follows the name. */
static const struct proof *proofs_find(const char *request, const char **words)
{
	const size_t length = strcspn(request, " ");

	*words = request + length + strspn(request + length, " ");
	return proof_is_named(&takes_proof, request, length) ? &takes_proof
							     : method_proof(request, length);
}

cl_uint CL_API_CALL proofs_count_parts(cl_platform_id platform, const char *key,
				       const char *request)
{
	const char *words;
	const struct proof *proof = proofs_find(request, &words);

	if (!proof_is_platform(platform, key))
		return 0;
	return proof && proof->count_parts ? proof->count_parts(platform) : 1;
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
