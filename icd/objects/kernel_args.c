/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/objects/kernel_args.h"

#include <stdlib.h>
#include <string.h>

#include "icd/layer.h"
#include "util/log.h"

struct kernel_arg {
	cl_uint index;
	cl_mem mem;
};

/* A record in the table never changes: a new set of arguments is a new record. */
struct kernel_args {
	struct handle_record record;
	size_t count;
	struct kernel_arg args[];
};

HANDLE_TABLE_DEFINE(kernel_args_table, NULL); /* cl_kernel -> struct kernel_args */

/* A copy of @old without argument @index, and with room for a new argument.  NULL: no memory. */
static struct kernel_args *kernel_args_without(const struct kernel_args *old, cl_uint index)
{
	size_t count = old ? old->count : 0;
	struct kernel_args *k = malloc(sizeof(*k) + (count + 1) * sizeof(k->args[0]));

	if (!k)
		return NULL;
	k->count = 0;
	for (size_t i = 0; i < count; i++)
		if (old->args[i].index != index)
			k->args[k->count++] = old->args[i];
	return k;
}

/* Argument @index is now @mem; NULL: no import with a need.  A kernel without such arguments has no record.  False: no memory. */
static bool kernel_args_replace(cl_kernel kernel, cl_uint index, cl_mem mem)
{
	struct kernel_args *old, *k;
	bool is_empty, is_set;

	lock_acquire(&kernel_args_table.lock);
	old = handle_table_peek(&kernel_args_table, kernel);
	k = kernel_args_without(old, index);
	if (k && mem)
		k->args[k->count++] = (struct kernel_arg){ index, mem };
	is_empty = k && !k->count;
	is_set = k && k->count && handle_table_set(&kernel_args_table, kernel, k);
	if (is_empty)
		handle_table_remove(&kernel_args_table, kernel);
	lock_release(&kernel_args_table.lock);
	if (is_empty || is_set)
		handle_record_free(old);
	if (!is_set)
		free(k);
	return is_empty || is_set;
}

static bool kernel_args_needs_access(cl_mem mem)
{
	struct memobj *obj = memobj_get(mem);
	bool needs_access = obj && memobj_needs_access(obj);

	memobj_put(obj);
	return needs_access;
}

cl_int kernel_args_set(cl_kernel kernel, cl_uint index, size_t size, const void *value)
{
	cl_mem mem = NULL;

	if (size == sizeof(mem) && value)
		memcpy(&mem, value, sizeof(mem));
	if (!kernel_args_needs_access(mem))
		mem = NULL;
	if (!mem && !handle_table_has(&kernel_args_table, kernel))
		return CL_SUCCESS;
	if (kernel_args_replace(kernel, index, mem))
		return CL_SUCCESS;
	log_error("no memory to remember a kernel's dma-buf argument");
	return CL_OUT_OF_HOST_MEMORY;
}

void kernel_args_forget(cl_kernel kernel)
{
	struct kernel_args *gone;

	if (!handle_table_has(&kernel_args_table, kernel))
		return;
	lock_acquire(&kernel_args_table.lock);
	gone = handle_table_remove(&kernel_args_table, kernel);
	lock_release(&kernel_args_table.lock);
	handle_record_free(gone);
}

bool kernel_args_copy(cl_kernel from, cl_kernel to)
{
	struct kernel_args *k = handle_table_get(&kernel_args_table, from);
	bool copied = true;

	for (size_t i = 0; k && copied && i < k->count; i++)
		copied = kernel_args_replace(to, k->args[i].index, k->args[i].mem);
	handle_record_free(k);
	if (!copied)
		log_error("no memory to remember a kernel's dma-buf arguments");
	return copied;
}

/*
 * With one reference left, its only owner gives the kernel up.  Two threads that release the last
 * two references at once may leave a record behind, which goes when the driver creates a new
 * kernel at the address.
 */
void kernel_args_release(cl_kernel kernel)
{
	cl_uint refs = 0;

	if (handle_table_has(&kernel_args_table, kernel) &&
	    !next.clGetKernelInfo(kernel, CL_KERNEL_REFERENCE_COUNT, sizeof(refs), &refs, NULL) &&
	    refs == 1)
		kernel_args_forget(kernel);
}

void kernel_args_imports(cl_kernel kernel, struct memobj_list *list)
{
	struct kernel_args *k = handle_table_get(&kernel_args_table, kernel);

	for (size_t i = 0; k && i < k->count; i++)
		memobj_list_add(list, k->args[i].mem);
	handle_record_free(k);
}
