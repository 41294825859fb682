/* SPDX-License-Identifier: Apache-2.0 */
/* Which dma-bufs recorded commands use, argument by argument. */
#ifndef ICD_OBJECTS_COMMAND_USES_H
#define ICD_OBJECTS_COMMAND_USES_H

#include "icd/objects/memobj.h"

struct command_use {
	struct command_use *next;
	struct memobj *import;		/* held */
	cl_mutable_command_khr command; /* NULL: its arguments stay */
	cl_uint index;			/* of the argument */
	unsigned long stamp;		/* higher than those that were there when it was added */
};

/**
 * command_uses_add - argument @index of @command is @obj
 * @uses: a list, which NULL and objects without a bracket are not added to
 *
 * Returns CL_SUCCESS or CL_OUT_OF_HOST_MEMORY.
 */
cl_int command_uses_add(struct command_use **uses, struct memobj *obj,
			cl_mutable_command_khr command, cl_uint index);

/* The same for what may be an import. */
cl_int command_uses_add_mem(struct command_use **uses, cl_mem mem, cl_mutable_command_khr command,
			    cl_uint index);

/* Where the commands of a copy of a command buffer are other ones. */
struct command_renames {
	cl_uint count;
	const cl_mutable_command_khr *from, *to;
};

/**
 * command_uses_copy - the same uses by the commands of a copy
 * @copy: an empty list; set in the same order, and to what there was memory for
 *
 * A command without another name has none that the application knows.
 */
cl_int command_uses_copy(const struct command_use *uses, const struct command_renames *renames,
			 struct command_use **copy);

/* Drops the imports.  No lock held. */
void command_uses_free(struct command_use *uses);

#endif /* ICD_OBJECTS_COMMAND_USES_H */
