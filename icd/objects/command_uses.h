/* SPDX-License-Identifier: Apache-2.0 */
/* The dma-bufs that recorded commands use, argument by argument. */
#ifndef ICD_OBJECTS_COMMAND_USES_H
#define ICD_OBJECTS_COMMAND_USES_H

#include "icd/objects/memobj.h"

struct command_use {
	struct command_use *next;
	struct memobj *import;		/* held */
	cl_mutable_command_khr command; /* NULL: an update cannot change the arguments */
	cl_uint index;			/* of the argument */
	unsigned long stamp;		/* higher than the stamps of earlier uses */
};

/**
 * command_uses_add - argument @index of @command is @obj
 * @uses: the list; NULL and objects without memobj_needs_access() are left out
 *
 * Returns CL_SUCCESS or CL_OUT_OF_HOST_MEMORY.
 */
cl_int command_uses_add(struct command_use **uses, struct memobj *obj,
			cl_mutable_command_khr command, cl_uint index);

/* command_uses_add() for a memory object that may be an import. */
cl_int command_uses_add_mem(struct command_use **uses, cl_mem mem, cl_mutable_command_khr command,
			    cl_uint index);

/* The commands of a command buffer, and the commands of the copy that correspond to them. */
struct command_renames {
	cl_uint count;
	const cl_mutable_command_khr *from, *to;
};

/**
 * command_uses_copy - the uses of a command buffer for its copy
 * @copy: an empty list; filled in the order of @uses, as far as memory lasts
 *
 * The application has no handle for a command of the copy that @renames does not list.
 */
cl_int command_uses_copy(const struct command_use *uses, const struct command_renames *renames,
			 struct command_use **copy);

/* Drops the imports.  No lock held. */
void command_uses_free(struct command_use *uses);

#endif /* ICD_OBJECTS_COMMAND_USES_H */
