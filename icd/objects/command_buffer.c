/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/objects/command_buffer.h"

#include <stdlib.h>

#include "util/log.h"

struct command_buffer {
	struct handle_record record;
	struct command_target target;
	cl_command_queue queue; /* the first queue of its creation */
	size_t count;
	struct command_use *uses; /* of recorded commands */
	unsigned long stamp;	  /* of the uses that were added last */
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
	command_uses_free(b->uses);
	free(b);
}

struct command_target command_target_of(cl_command_buffer_khr handle)
{
	struct command_buffer *b = handle_table_get(&command_buffer_table, handle);
	struct command_target target = { NULL, false, false };

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

static void command_buffer_prepend(struct command_buffer *b, struct command_use *uses)
	REQUIRES(command_buffer_table.lock)
{
	struct command_use **end = &uses;

	for (; *end; end = &(*end)->next) {
		(*end)->stamp = b->stamp;
		b->count++;
	}
	*end = b->uses;
	b->uses = uses;
}

unsigned long command_buffer_use(cl_command_buffer_khr handle, struct command_use *uses)
{
	struct command_buffer *b;
	unsigned long stamp = 0;

	lock_acquire(&command_buffer_table.lock);
	b = handle_table_find(&command_buffer_table, handle);
	if (b) {
		stamp = ++b->stamp;
		command_buffer_prepend(b, uses);
	}
	lock_release(&command_buffer_table.lock);
	if (!b)
		command_uses_free(uses);
	return stamp;
}

void command_buffer_unuse(cl_command_buffer_khr handle,
			  bool (*is_gone)(const struct command_use *use, const void *data),
			  const void *data)
{
	struct command_use *gone = NULL, *use, **at;
	struct command_buffer *b;

	lock_acquire(&command_buffer_table.lock);
	b = handle_table_find(&command_buffer_table, handle);
	at = b ? &b->uses : &gone;
	while ((use = *at)) {
		if (!is_gone(use, data)) {
			at = &use->next;
			continue;
		}
		*at = use->next;
		b->count--;
		use->next = gone;
		gone = use;
	}
	lock_release(&command_buffer_table.lock);
	command_uses_free(gone);
}

cl_int command_buffer_recorded(cl_command_buffer_khr handle, struct command_use *uses, cl_int err)
{
	if (err)
		command_uses_free(uses);
	else if (uses)
		command_buffer_use(handle, uses);
	return err;
}

cl_int command_buffer_copy_uses(cl_command_buffer_khr from, cl_command_buffer_khr to,
				const struct command_renames *renames)
{
	struct command_buffer *source, *copy;
	cl_int err = CL_SUCCESS;

	lock_acquire(&command_buffer_table.lock);
	source = handle_table_find(&command_buffer_table, from);
	copy = handle_table_find(&command_buffer_table, to);
	if (source && copy) {
		err = command_uses_copy(source->uses, renames, &copy->uses);
		copy->count = source->count;
		copy->stamp = source->stamp;
	}
	lock_release(&command_buffer_table.lock);
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
	for (const struct command_use *u = b && reserved ? b->uses : NULL; u; u = u->next)
		list->objs[list->count++] = memobj_hold(u->import);
	if (b && !*queue)
		*queue = b->queue;
	lock_release(&command_buffer_table.lock);
	return reserved ? CL_SUCCESS : memobj_list_error("command buffer");
}
