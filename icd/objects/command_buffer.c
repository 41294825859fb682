/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/objects/command_buffer.h"

#include <stdlib.h>

#include "util/log.h"

struct command_buffer {
	struct handle_record record;
	struct command_target target;
	cl_command_queue queue; /* the first queue of its creation */
	size_t count;
	struct memobj **imports; /* held; commands may use them */
};

/* cl_command_buffer_khr -> struct command_buffer */
static HANDLE_TABLE_DEFINE(command_buffer_table, NULL);

bool command_buffer_add(cl_command_buffer_khr handle, const struct command_target *target,
			cl_command_queue queue)
{
	struct command_buffer *b = malloc(sizeof(*b));

	if (!b)
		return false;
	*b = (struct command_buffer){ .target = *target, .queue = queue };
	if (handle_table_add(&command_buffer_table, handle, b))
		return true;
	free(b);
	return false;
}

static void command_buffer_drop(struct command_buffer *b)
{
	if (!b || !handle_record_put(&b->record))
		return;
	for (size_t i = 0; i < b->count; i++)
		memobj_put(b->imports[i]);
	free(b->imports);
	free(b);
}

struct command_target command_target_of(cl_command_buffer_khr handle)
{
	struct command_buffer *b = handle_table_get(&command_buffer_table, handle);
	struct command_target target = { &extensions_none, false, false };

	if (b)
		target = b->target;
	command_buffer_drop(b);
	return target;
}

void command_buffer_retain(cl_command_buffer_khr handle)
{
	handle_table_retain(&command_buffer_table, handle);
}

struct command_buffer *command_buffer_release(cl_command_buffer_khr handle)
{
	return handle_table_release(&command_buffer_table, handle);
}

void command_buffer_released(cl_command_buffer_khr handle, struct command_buffer *gone, cl_int err)
{
	if (!err || !handle_table_undo_release(&command_buffer_table, handle, gone))
		command_buffer_drop(gone);
}

static bool command_buffer_has(const struct command_buffer *b, const struct memobj *obj)
{
	for (size_t i = 0; i < b->count; i++)
		if (b->imports[i] == obj)
			return true;
	return false;
}

/* With the lock.  False: no memory. */
static bool command_buffer_append(struct command_buffer *b, struct memobj *obj)
{
	struct memobj **imports;

	if (command_buffer_has(b, obj))
		return true;
	imports = realloc(b->imports, (b->count + 1) * sizeof(b->imports[0]));
	if (!imports)
		return false;
	b->imports = imports;
	b->imports[b->count++] = memobj_hold(obj);
	return true;
}

cl_int command_buffer_use(cl_command_buffer_khr handle, struct memobj *obj)
{
	struct command_buffer *b;
	bool used;

	if (!obj || !memobj_needs_access(obj))
		return CL_SUCCESS;
	lock_acquire(&command_buffer_table.lock);
	b = handle_table_find(&command_buffer_table, handle);
	used = !b || command_buffer_append(b, obj);
	lock_release(&command_buffer_table.lock);
	if (used)
		return CL_SUCCESS;
	log_error("no memory to remember the dma-bufs of a command buffer");
	return CL_OUT_OF_HOST_MEMORY;
}

cl_int command_buffer_use_mem(cl_command_buffer_khr buffer, cl_mem mem)
{
	struct memobj *obj = memobj_get(mem);
	cl_int err = command_buffer_use(buffer, obj);

	memobj_put(obj);
	return err;
}

cl_int command_buffer_imports(cl_command_buffer_khr handle, struct memobj_list *list,
			      cl_command_queue *queue)
{
	const struct command_buffer *b;
	bool reserved;

	lock_acquire(&command_buffer_table.lock);
	b = handle_table_find(&command_buffer_table, handle);
	reserved = memobj_list_reserve(list, b ? b->count : 0);
	for (size_t i = 0; b && reserved && i < b->count; i++)
		list->objs[list->count++] = memobj_hold(b->imports[i]);
	if (b && !*queue)
		*queue = b->queue;
	lock_release(&command_buffer_table.lock);
	return reserved ? CL_SUCCESS : memobj_list_error("command buffer");
}
