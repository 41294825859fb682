/* SPDX-License-Identifier: Apache-2.0 */
/* The imports that a command uses, held. */
#ifndef ICD_OBJECTS_MEMOBJ_LIST_H
#define ICD_OBJECTS_MEMOBJ_LIST_H

#include "icd/objects/memobj.h"

/* A list of so few imports needs no memory. */
#define MEMOBJ_LIST_FEW 8

struct memobj_list {
	size_t count;
	struct memobj **objs; /* few, or memory */
	struct memobj *few[MEMOBJ_LIST_FEW];
};

/* An empty list with room for @count.  False: no memory.  Undone by memobj_list_put(). */
bool memobj_list_reserve(struct memobj_list *list, size_t count);

/* Adds @mem if it is an import that needs access (memobj_needs_access()), and the list has room. */
void memobj_list_add(struct memobj_list *list, cl_mem mem);

/* Drops the imports. */
void memobj_list_put(struct memobj_list *list);

/* Logs that memory lacks for the list of a "kernel", ...: CL_OUT_OF_HOST_MEMORY. */
cl_int memobj_list_error(const char *whose);

#endif /* ICD_OBJECTS_MEMOBJ_LIST_H */
