/* SPDX-License-Identifier: Apache-2.0 */
#include "substitute.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { SUBSTITUTES = 1024 };

/* The last buffers; a handle may come again for another buffer, and then the last one counts. */
static struct substitute {
	cl_mem mem;
	unsigned char *memory;
	size_t size;
	cl_mem_flags flags;
} substitutes[SUBSTITUTES];
static size_t substitute_count;

cl_mem CL_API_CALL substitute_import(cl_context context, cl_mem_flags flags,
				     const cl_import_properties_arm *properties, void *memory,
				     size_t size, cl_int *error)
{
	bool is_host = !properties || !properties[0] || properties[1] == CL_IMPORT_TYPE_HOST_ARM;
	cl_mem mem;

	if (!is_host)
		memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, *(int *)memory, 0);
	mem = (opencl.clCreateBuffer)(context, flags | CL_MEM_USE_HOST_PTR, size, memory, error);
	if (mem)
		substitutes[substitute_count++ % SUBSTITUTES] =
			(struct substitute){ mem, memory, size, flags };
	return mem;
}

size_t substitute_offset(size_t page)
{
	size_t last = (substitute_count + SUBSTITUTES - 1) % SUBSTITUTES;

	return substitute_count ? (uintptr_t)substitutes[last].memory % page : 0;
}

/* The buffer from which the object was made, perhaps over a sub-buffer. */
static cl_mem substitute_root(cl_mem mem)
{
	cl_mem parent = NULL;

	while (!(opencl.clGetMemObjectInfo)(mem, CL_MEM_ASSOCIATED_MEMOBJECT, sizeof(parent),
					    &parent, NULL) &&
	       parent)
		mem = parent;
	return mem;
}

static const struct substitute *substitute_find(cl_mem mem)
{
	size_t oldest = substitute_count > SUBSTITUTES ? substitute_count - SUBSTITUTES : 0;

	if (!substitute_count || !mem)
		return NULL;
	mem = substitute_root(mem);
	for (size_t i = substitute_count; i > oldest; i--)
		if (substitutes[(i - 1) % SUBSTITUTES].mem == mem)
			return &substitutes[(i - 1) % SUBSTITUTES];
	return NULL;
}

/* A device that cannot copy here cannot be compared. */
static void substitute_judge(cl_int error)
{
	if (error)
		atomic_store(&opencl_note->has_commands, true);
}

void substitute_give(cl_command_queue queue, cl_mem mem)
{
	const struct substitute *s = substitute_find(mem);
	unsigned char *copy;

	if (!s)
		return;
	copy = malloc(s->size);
	memcpy(copy, s->memory, s->size);
	substitute_judge((opencl.clEnqueueWriteBuffer)(queue, s->mem, CL_TRUE, 0, s->size, copy, 0,
						       NULL, NULL));
	free(copy);
}

/* Memory that the test has mapped read-only has no new bytes. */
void substitute_take(cl_command_queue queue, cl_mem mem)
{
	const struct substitute *s = substitute_find(mem);
	unsigned char *copy;
	cl_int error;

	if (!s || (s->flags & CL_MEM_READ_ONLY))
		return;
	copy = malloc(s->size);
	error = (opencl.clEnqueueReadBuffer)(queue, s->mem, CL_TRUE, 0, s->size, copy, 0, NULL,
					     NULL);
	substitute_judge(error);
	if (!error && memcmp(s->memory, copy, s->size))
		memcpy(s->memory, copy, s->size);
	free(copy);
}
