/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/start.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

static char **start_noted; /* NULL: not noted, or no memory */

static void start_free(char **lines)
{
	for (size_t i = 0; lines[i]; i++)
		free(lines[i]);
	free(lines);
}

/* NULL: no memory. */
static char **start_copy(char **lines)
{
	char **copy;
	size_t count = 0;

	while (lines && lines[count])
		count++;
	copy = calloc(count + 1, sizeof(*copy));
	if (!copy)
		return NULL;
	for (size_t i = 0; i < count; i++) {
		copy[i] = strdup(lines[i]);
		if (copy[i])
			continue;
		start_free(copy);
		return NULL;
	}
	return copy;
}

void start_note_environment(void)
{
	if (!start_noted)
		start_noted = start_copy(environ);
}

char **start_environment(void)
{
	static char *nothing[] = { NULL };
	char **now = environ ? environ : nothing;

	return start_noted ? start_noted : now;
}

const char *start_variable(const char *name)
{
	const size_t length = strlen(name);
	char **line = start_environment();

	if (getauxval(AT_SECURE))
		return NULL;
	for (; *line; line++)
		if (!strncmp(*line, name, length) && (*line)[length] == '=')
			return *line + length + 1;
	return NULL;
}
