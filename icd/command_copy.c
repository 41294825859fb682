/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recorded copies and fills move the data that the sixteen forbidden calls
 * move: version 1.0.0 refuses them when they are recorded.
 *
 * Before version 0.9.5 of cl_khr_command_buffer they take no property list;
 * from then on it is their third argument.  Which of the two an application
 * gets is decided by what its platform reports.
 */
#include <string.h>

#include "command_buffer.h"
#include "forbid.h"

#define FUNCTION(name) offsetof(struct command_functions, name)

/* The driver's function at @offset of its functions, unless the command is refused. */
static cl_int command_check(cl_command_buffer_khr commands, const char *name, cl_mem first,
			    cl_mem second, size_t offset, void **driver)
{
	const struct command_functions *functions = command_functions_of(commands);

	if (!functions)
		return CL_INVALID_COMMAND_BUFFER_KHR;
	if (forbidden(name, first, second))
		return CL_INVALID_OPERATION;
	memcpy(driver, (const char *)functions + offset, sizeof(*driver));
	return *driver ? command_buffer_use(commands, first, second) : CL_INVALID_OPERATION;
}

#define NAME(name) name
#define PROPERTIES_PARAMETER
#define PROPERTIES_ARGUMENT
#include "command_copy.inc"

#undef NAME
#undef PROPERTIES_PARAMETER
#undef PROPERTIES_ARGUMENT
#define NAME(name) name##_properties
#define PROPERTIES_PARAMETER , const cl_properties *properties
#define PROPERTIES_ARGUMENT , properties
#include "command_copy.inc"

static const struct {
	const char *name;
	void *plain, *properties;
} recorders[] = {
	{ "clCommandCopyBufferKHR", (void *)copy_buffer, (void *)copy_buffer_properties },
	{ "clCommandCopyBufferRectKHR", (void *)copy_buffer_rect,
	  (void *)copy_buffer_rect_properties },
	{ "clCommandCopyBufferToImageKHR", (void *)copy_buffer_to_image,
	  (void *)copy_buffer_to_image_properties },
	{ "clCommandCopyImageKHR", (void *)copy_image, (void *)copy_image_properties },
	{ "clCommandCopyImageToBufferKHR", (void *)copy_image_to_buffer,
	  (void *)copy_image_to_buffer_properties },
	{ "clCommandFillBufferKHR", (void *)fill_buffer, (void *)fill_buffer_properties },
	{ "clCommandFillImageKHR", (void *)fill_image, (void *)fill_image_properties },
};

void *command_copy_function(const char *name, bool properties)
{
	for (size_t i = 0; i < sizeof(recorders) / sizeof(recorders[0]); i++)
		if (!strcmp(recorders[i].name, name))
			return properties ? recorders[i].properties : recorders[i].plain;
	return NULL;
}
