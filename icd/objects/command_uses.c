/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/objects/command_uses.h"

#include <stdlib.h>

#include "util/log.h"

cl_int command_uses_add(struct command_use **uses, struct memobj *obj,
			cl_mutable_command_khr command, cl_uint index)
{
	struct command_use *use;

	if (!obj || !memobj_needs_access(obj))
		return CL_SUCCESS;
	use = malloc(sizeof(*use));
	if (!use) {
		log_error("no memory to remember the dma-bufs of a command buffer");
		return CL_OUT_OF_HOST_MEMORY;
	}
	*use = (struct command_use){ *uses, memobj_hold(obj), command, index, 0 };
	*uses = use;
	return CL_SUCCESS;
}

cl_int command_uses_add_mem(struct command_use **uses, cl_mem mem, cl_mutable_command_khr command,
			    cl_uint index)
{
	struct memobj *obj = memobj_get(mem);
	cl_int err = command_uses_add(uses, obj, command, index);

	memobj_put(obj);
	return err;
}

static cl_mutable_command_khr command_rename(cl_mutable_command_khr command,
					     const struct command_renames *renames)
{
	for (cl_uint i = 0; command && i < renames->count; i++)
		if (renames->from[i] == command)
			return renames->to[i];
	return NULL;
}

cl_int command_uses_copy(const struct command_use *uses, const struct command_renames *renames,
			 struct command_use **copy)
{
	cl_int err = CL_SUCCESS;

	for (; uses && !err; uses = uses->next) {
		err = command_uses_add(copy, uses->import, command_rename(uses->command, renames),
				       uses->index);
		if (err)
			break;
		(*copy)->stamp = uses->stamp;
		copy = &(*copy)->next;
	}
	return err;
}

void command_uses_free(struct command_use *uses)
{
	while (uses) {
		struct command_use *next_use = uses->next;

		memobj_put(uses->import);
		free(uses);
		uses = next_use;
	}
}
