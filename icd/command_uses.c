/* SPDX-License-Identifier: Apache-2.0 */
#include "command_uses.h"

#include <stdlib.h>

#include "import/log.h"

cl_int command_uses_add(struct command_use **uses, struct memobj *obj,
			cl_mutable_command_khr command, cl_uint index)
{
	struct command_use *use;

	if (!obj || !obj->bracket)
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

void command_uses_free(struct command_use *uses)
{
	while (uses) {
		struct command_use *next_use = uses->next;

		memobj_put(uses->import);
		free(uses);
		uses = next_use;
	}
}
