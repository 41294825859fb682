/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recorded copies and fills access memory as the sixteen forbidden calls do: version 1.0.0 of the
 * extension refuses to record them.
 *
 * Their memory objects follow the queue, or from version 0.9.5 of cl_khr_command_buffer on the
 * list of properties behind it.  The device of the command buffer decides, at each call.
 */
#include "icd/calls/command_copy.h"

#include <string.h>

#include "icd/calls/command_words.h"
#include "icd/calls/host_access.h"
#include "icd/objects/command_buffer.h"

#define FUNCTION(name) offsetof(struct command_functions, name)

enum command {
	COPY_BUFFER,
	COPY_BUFFER_RECT,
	COPY_BUFFER_TO_IMAGE,
	COPY_IMAGE,
	COPY_IMAGE_TO_BUFFER,
	FILL_BUFFER,
	FILL_IMAGE,
};

/* @two: the command has two memory objects. */
static const struct {
	const char *name;
	size_t driver;
	bool two;
} commands[] = {
	[COPY_BUFFER] = { "clCommandCopyBufferKHR", FUNCTION(copy_buffer), true },
	[COPY_BUFFER_RECT] = { "clCommandCopyBufferRectKHR", FUNCTION(copy_buffer_rect), true },
	[COPY_BUFFER_TO_IMAGE] = { "clCommandCopyBufferToImageKHR", FUNCTION(copy_buffer_to_image),
				   true },
	[COPY_IMAGE] = { "clCommandCopyImageKHR", FUNCTION(copy_image), true },
	[COPY_IMAGE_TO_BUFFER] = { "clCommandCopyImageToBufferKHR", FUNCTION(copy_image_to_buffer),
				   true },
	[FILL_BUFFER] = { "clCommandFillBufferKHR", FUNCTION(fill_buffer), false },
	[FILL_IMAGE] = { "clCommandFillImageKHR", FUNCTION(fill_image), false },
};

#define COMMANDS (sizeof(commands) / sizeof(commands[0]))

/* @words: the first five parameters; @driver: set to the driver's function on success. */
static cl_int command_check(enum command command, const word words[5], void **driver,
			    struct command_use **uses)
{
	cl_command_buffer_khr handle = (cl_command_buffer_khr)words[0];
	const struct command_target target = command_target_of(handle);
	cl_mem first = (cl_mem)words[target.properties ? 3 : 2];
	cl_mem second = commands[command].two ? (cl_mem)words[target.properties ? 4 : 3] : NULL;
	cl_int err;

	if (!target.functions)
		return CL_INVALID_COMMAND_BUFFER_KHR;
	if (host_access_refuses(commands[command].name, first, second))
		return CL_INVALID_OPERATION;
	memcpy(driver, (const char *)target.functions + commands[command].driver, sizeof(*driver));
	if (!*driver)
		return CL_INVALID_OPERATION;
	err = command_uses_add_mem(uses, first, NULL, 0);
	return err ? err : command_uses_add_mem(uses, second, NULL, 1);
}

/* A recording function with @count parameters, the list of properties included. */
#define RECORDER(command, count)                                                      \
	static cl_int CL_API_CALL record_##command(WORDS_##count)                     \
	{                                                                             \
		const word first[] = { a0, a1, a2, a3, a4 };                          \
		cl_int(CL_API_CALL *driver)(WORDS_##count) = NULL;                    \
		struct command_use *uses = NULL;                                      \
		cl_int err = command_check(command, first, (void **)&driver, &uses);  \
                                                                                      \
		if (!err)                                                             \
			err = driver(PASS_##count);                                   \
		return command_buffer_recorded((cl_command_buffer_khr)a0, uses, err); \
	}

RECORDER(COPY_BUFFER, 12)
RECORDER(COPY_BUFFER_RECT, 16)
RECORDER(COPY_BUFFER_TO_IMAGE, 12)
RECORDER(COPY_IMAGE, 12)
RECORDER(COPY_IMAGE_TO_BUFFER, 12)
RECORDER(FILL_BUFFER, 12)
RECORDER(FILL_IMAGE, 12) /* has a parameter less */

void *command_copy_function(const char *name)
{
	static void *const recorders[COMMANDS] = {
		[COPY_BUFFER] = (void *)record_COPY_BUFFER,
		[COPY_BUFFER_RECT] = (void *)record_COPY_BUFFER_RECT,
		[COPY_BUFFER_TO_IMAGE] = (void *)record_COPY_BUFFER_TO_IMAGE,
		[COPY_IMAGE] = (void *)record_COPY_IMAGE,
		[COPY_IMAGE_TO_BUFFER] = (void *)record_COPY_IMAGE_TO_BUFFER,
		[FILL_BUFFER] = (void *)record_FILL_BUFFER,
		[FILL_IMAGE] = (void *)record_FILL_IMAGE,
	};

	for (size_t i = 0; i < COMMANDS; i++)
		if (!strcmp(commands[i].name, name))
			return recorders[i];
	return NULL;
}
