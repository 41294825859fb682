/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/info_answer.h"

#include <string.h>

cl_int info_answer(const void *from, size_t length, size_t size, void *value, size_t *size_ret)
{
	if (value && size < length)
		return CL_INVALID_VALUE;
	if (value)
		memcpy(value, from, length);
	if (size_ret)
		*size_ret = length;
	return CL_SUCCESS;
}
