/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/objects/command_buffer.h"

#include <stdlib.h>

struct command_buffer {
	struct handle_record record;
	struct command_target target;
};

/* cl_command_buffer_khr -> struct command_buffer */
static HANDLE_TABLE_DEFINE(command_buffer_table, NULL);

bool command_buffer_add(cl_command_buffer_khr handle, const struct command_target *target)
{
	struct command_buffer *b = malloc(sizeof(*b));

	if (!b)
		return false;
	b->target = *target;
	if (handle_table_add(&command_buffer_table, handle, b))
		return true;
	free(b);
	return false;
}

struct command_target command_target_of(cl_command_buffer_khr handle)
{
	struct command_buffer *b = handle_table_get(&command_buffer_table, handle);
	struct command_target target = { &extensions_none, false, false };

	if (b)
		target = b->target;
	handle_record_free(b);
	return target;
}

void command_buffer_retain(cl_command_buffer_khr handle)
{
	handle_table_retain(&command_buffer_table, handle);
}

void command_buffer_release(cl_command_buffer_khr handle)
{
	handle_record_free(handle_table_release(&command_buffer_table, handle));
}
