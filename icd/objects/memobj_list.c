/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/objects/memobj_list.h"

#include <stdlib.h>

#include "util/log.h"

bool memobj_list_reserve(struct memobj_list *list, size_t count)
{
	list->count = 0;
	list->objs = list->few;
	if (count <= MEMOBJ_LIST_FEW)
		return true;
	list->objs = calloc(count, sizeof(*list->objs));
	if (!list->objs)
		return false;
	return true;
}

void memobj_list_add(struct memobj_list *list, cl_mem mem)
{
	struct memobj *obj = memobj_get(mem);

	if (obj && memobj_needs_access(obj))
		list->objs[list->count++] = obj;
	else
		memobj_put(obj);
}

void memobj_list_put(struct memobj_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		memobj_put(list->objs[i]);
	if (list->objs != list->few)
		free(list->objs);
}

cl_int memobj_list_error(const char *whose)
{
	log_error("no memory to list the dma-bufs of a %s", whose);
	return CL_OUT_OF_HOST_MEMORY;
}
