/* SPDX-License-Identifier: Apache-2.0 */
/* Recorded copies and fills, whose rows are in table.h. */
#include "icd/calls/command.h"
#include "icd/intercept.h"
#include "icd/objects/command_buffer.h"

/*
 * Recorded copies and fills access memory as the sixteen do: version 1.0.0 refuses to record them.
 * The device of the command buffer decides where the memory objects are.
 *
 * @words: the first five parameters; @mems of these are memory objects
 */
static cl_int command_record(const char *function, const word words[5], int mems)
{
	const cl_command_buffer_khr buffer = (cl_command_buffer_khr)words[0];
	const struct command_target target = command_target_of(buffer);
	const word *at = &words[target.properties ? 3 : 2];
	cl_mem first = (cl_mem)at[0], second = mems > 1 ? (cl_mem)at[1] : NULL;

	if (!target.driver->clCreateCommandBufferKHR)
		return CL_INVALID_COMMAND_BUFFER_KHR;
	/* A copy has its source first; a fill has one object. */
	return command_check_recorded(function, second ? first : NULL, second ? second : first);
}

#define RECORDS(name, count, mems)                                                       \
	cl_int CL_API_CALL layer_##name(WORDS_##count)                                   \
	{                                                                                \
		const struct extensions *driver =                                        \
			command_target_of((cl_command_buffer_khr)a0).driver;             \
		const word words[] = { a0, a1, a2, a3, a4 };                             \
		const cl_int err = command_record(#name, words, mems);                   \
                                                                                         \
		if (err)                                                                 \
			return err;                                                      \
		return driver->name ? driver->name(PASS_##count) : CL_INVALID_OPERATION; \
	}
#include "icd/table.h"
