/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ICD_INFO_ANSWER_H
#define ICD_INFO_ANSWER_H

#include <string.h>

#include "icd/cl_compat.h"

/**
 * info_answer - the end of every clGet...Info function
 * @from: @length bytes that are the answer
 * @value: room for @size bytes, or NULL
 * @size_ret: set to @length unless NULL
 *
 * Returns CL_SUCCESS, or CL_INVALID_VALUE if the room does not suffice.
 */
static inline cl_int info_answer(const void *from, size_t length, size_t size, void *value,
				 size_t *size_ret)
{
	if (value && size < length)
		return CL_INVALID_VALUE;
	if (value)
		memcpy(value, from, length);
	if (size_ret)
		*size_ret = length;
	return CL_SUCCESS;
}

#endif /* ICD_INFO_ANSWER_H */
