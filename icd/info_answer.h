/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ICD_INFO_ANSWER_H
#define ICD_INFO_ANSWER_H

#include "icd/cl_compat.h"

/**
 * info_answer - the end of every clGet...Info function
 * @from: @length bytes that are the answer
 * @value: room for @size bytes, or NULL
 * @size_ret: set to @length unless NULL
 *
 * Returns CL_SUCCESS, or CL_INVALID_VALUE if the room does not suffice.
 */
cl_int info_answer(const void *from, size_t length, size_t size, void *value, size_t *size_ret);

#endif /* ICD_INFO_ANSWER_H */
