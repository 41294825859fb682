/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/objects/kernel.h"

#include <stdlib.h>
#include <string.h>

#include "icd/access/access.h"
#include "icd/intercept.h"
#include "icd/layer.h"
#include "icd/objects/table.h"
#include "util/lock.h"
#include "util/log.h"

struct arg {
	cl_uint index;
	cl_mem mem;
};

struct kernel {
	size_t count;
	struct arg args[];
};

LOCK_DEFINE(kernel_lock, LOCK_OUTER);	  /* the table and its records; memobj_lock may follow */
static struct table kernels = TABLE_INIT; /* cl_kernel -> struct kernel */
static atomic_uint kernel_count;

static bool kernel_live(void)
{
	return atomic_load_explicit(&kernel_count, memory_order_relaxed) != 0;
}

static void kernel_counted(void) REQUIRES(kernel_lock)
{
	atomic_store_explicit(&kernel_count, kernels.live, memory_order_relaxed);
}

/* A handle that is new, or about to go, has no arguments. */
static void kernel_forget(cl_kernel kernel)
{
	if (!kernel_live() || !table_get(&kernels, kernel))
		return;
	lock_acquire(&kernel_lock);
	free(table_remove(&kernels, kernel));
	kernel_counted();
	lock_release(&kernel_lock);
}

static struct kernel *kernel_without(const struct kernel *old, cl_uint index, size_t room)
{
	size_t count = old ? old->count : 0;
	struct kernel *k = malloc(sizeof(*k) + (count + room) * sizeof(k->args[0]));

	if (!k)
		return NULL;
	k->count = 0;
	for (size_t i = 0; i < count; i++)
		if (old->args[i].index != index)
			k->args[k->count++] = old->args[i];
	return k;
}

/* Argument @index is now @mem, or no bracketed import if that is NULL. */
static bool kernel_set(cl_kernel handle, cl_uint index, cl_mem mem) REQUIRES(kernel_lock)
{
	struct kernel *old = table_get(&kernels, handle);
	struct kernel *k = kernel_without(old, index, 1);
	bool kept = true;

	if (!k)
		return false;
	if (mem)
		k->args[k->count++] = (struct arg){ index, mem };
	if (k->count)
		kept = table_set(&kernels, handle, k);
	else
		table_remove(&kernels, handle);
	if (!k->count || !kept)
		free(k);
	if (kept)
		free(old);
	kernel_counted();
	return kept;
}

static bool is_bracketed(cl_mem mem)
{
	struct memobj *obj = memobj_get(mem);
	bool bracket = obj && obj->bracket;

	memobj_put(obj);
	return bracket;
}

static cl_int kernel_note(cl_kernel kernel, cl_uint index, size_t size, const void *value)
{
	cl_mem mem = NULL;
	bool kept;

	if (size == sizeof(mem) && value)
		memcpy(&mem, value, sizeof(mem));
	if (!memobj_is_import(mem) || !is_bracketed(mem))
		mem = NULL;
	if (!mem && !table_get(&kernels, kernel))
		return CL_SUCCESS;
	lock_acquire(&kernel_lock);
	kept = kernel_set(kernel, index, mem);
	lock_release(&kernel_lock);
	if (kept)
		return CL_SUCCESS;
	log_error("no memory to remember a kernel's dma-buf argument");
	return CL_OUT_OF_HOST_MEMORY;
}

bool kernel_imports_reserve(struct kernel_imports *imports, size_t count)
{
	imports->count = 0;
	imports->objs = imports->few;
	imports->indices = imports->few_indices;
	if (count <= KERNEL_IMPORTS_FEW)
		return true;
	imports->objs = calloc(count, sizeof(*imports->objs) + sizeof(*imports->indices));
	if (!imports->objs)
		return false;
	imports->indices = (cl_uint *)(imports->objs + count);
	return true;
}

static void kernel_imports_add(struct kernel_imports *imports, cl_mem mem, cl_uint index)
{
	struct memobj *obj = memobj_get(mem);

	if (!obj)
		return;
	imports->indices[imports->count] = index;
	imports->objs[imports->count++] = obj;
}

static cl_int kernel_imports_error(const char *whose)
{
	log_error("no memory to list the dma-bufs of a %s", whose);
	return CL_OUT_OF_HOST_MEMORY;
}

cl_int kernel_imports_get(cl_kernel kernel, struct kernel_imports *imports)
{
	const struct kernel *k;
	bool reserved;

	kernel_imports_reserve(imports, 0);
	if (!kernel_live() || !table_get(&kernels, kernel))
		return CL_SUCCESS;
	lock_acquire(&kernel_lock);
	k = table_get(&kernels, kernel);
	reserved = !k || kernel_imports_reserve(imports, k->count);
	for (size_t i = 0; k && reserved && i < k->count; i++)
		kernel_imports_add(imports, k->args[i].mem, k->args[i].index);
	lock_release(&kernel_lock);
	return reserved ? CL_SUCCESS : kernel_imports_error("kernel");
}

void kernel_imports_put(struct kernel_imports *imports)
{
	for (size_t i = 0; i < imports->count; i++)
		memobj_put(imports->objs[i]);
	if (imports->objs != imports->few)
		free(imports->objs);
}

cl_kernel CL_API_CALL layer_clCreateKernel(cl_program program, const char *name,
					   cl_int *errcode_ret)
{
	cl_int err = CL_SUCCESS;
	cl_kernel kernel = next.clCreateKernel(program, name, &err);

	if (is_created(kernel, err))
		kernel_forget(kernel);
	if (errcode_ret)
		*errcode_ret = err;
	return kernel;
}

cl_int CL_API_CALL layer_clCreateKernelsInProgram(cl_program program, cl_uint num_kernels,
						  cl_kernel *out, cl_uint *num_kernels_ret)
{
	cl_uint count = 0;
	cl_int err = next.clCreateKernelsInProgram(program, num_kernels, out, &count);

	for (cl_uint i = 0; !err && out && i < count; i++)
		kernel_forget(out[i]);
	if (!err && num_kernels_ret)
		*num_kernels_ret = count;
	return err;
}

/* Remembers for @to what is remembered for @from.  False: no memory. */
static bool kernel_copy(cl_kernel from, cl_kernel to)
{
	const struct kernel *k;
	bool kept = true;

	lock_acquire(&kernel_lock);
	k = table_get(&kernels, from);
	for (size_t i = 0; k && kept && i < k->count; i++)
		kept = kernel_set(to, k->args[i].index, k->args[i].mem);
	lock_release(&kernel_lock);
	if (!kept)
		log_error("no memory to remember a kernel's dma-buf arguments");
	return kept;
}

/* "The arguments of the clone are those of the source." */
cl_kernel CL_API_CALL layer_clCloneKernel(cl_kernel source, cl_int *errcode_ret)
{
	cl_int err = CL_SUCCESS;
	cl_kernel kernel = next.clCloneKernel(source, &err);

	if (errcode_ret)
		*errcode_ret = err;
	if (!is_created(kernel, err))
		return kernel;
	kernel_forget(kernel);
	if (!kernel_live())
		return kernel;
	if (kernel_copy(source, kernel))
		return kernel;
	kernel_forget(kernel);
	next.clReleaseKernel(kernel);
	if (errcode_ret)
		*errcode_ret = CL_OUT_OF_HOST_MEMORY;
	return NULL;
}

/*
 * With one reference left its only owner gives it up.  Two threads that release
 * the last two at once may leave a record behind; it goes when the address is a
 * kernel's again.
 */
cl_int CL_API_CALL layer_clReleaseKernel(cl_kernel kernel)
{
	cl_uint refs = 0;

	if (kernel_live() && table_get(&kernels, kernel) &&
	    !next.clGetKernelInfo(kernel, CL_KERNEL_REFERENCE_COUNT, sizeof(refs), &refs, NULL) &&
	    refs == 1)
		kernel_forget(kernel);
	return next.clReleaseKernel(kernel);
}

cl_int CL_API_CALL layer_clSetKernelArg(cl_kernel kernel, cl_uint index, size_t size,
					const void *value)
{
	cl_int err;

	if (!memobj_live() && !kernel_live())
		return next.clSetKernelArg(kernel, index, size, value);
	err = next.clSetKernelArg(kernel, index, size, value);
	return err ? err : kernel_note(kernel, index, size, value);
}

void kernel_arg_forget(cl_kernel kernel, cl_uint index)
{
	if (kernel_live())
		kernel_note(kernel, index, 0, NULL);
}

cl_int kernel_begin(struct access *a, cl_command_queue queue, cl_kernel kernel, cl_uint num_wait,
		    const cl_event *wait, cl_event *event)
{
	struct kernel_imports imports;
	cl_int err = kernel_imports_get(kernel, &imports);

	if (!imports.count && (num_wait || event))
		queue_bracket_close(queue);
	access_none(a, num_wait, wait, event);
	if (!err && imports.count)
		err = access_begin(a, queue, imports.objs, imports.count,
				   ACCESS_BOTH | ACCESS_JOIN);
	kernel_imports_put(&imports);
	return err;
}

cl_int CL_API_CALL layer_clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel kernel,
						cl_uint work_dim, const size_t *offset,
						const size_t *global, const size_t *local,
						cl_uint num_wait, const cl_event *wait,
						cl_event *event)
{
	struct access a;
	cl_int err;

	if (!kernel_live() && !queue_bracket_any())
		return next.clEnqueueNDRangeKernel(queue, kernel, work_dim, offset, global, local,
						   num_wait, wait, event);
	err = kernel_begin(&a, queue, kernel, num_wait, wait, event);
	if (err)
		return err;
	err = next.clEnqueueNDRangeKernel(queue, kernel, work_dim, offset, global, local,
					  a.num_wait, a.wait, a.event);
	return access_end(&a, err, CL_FALSE);
}

cl_int CL_API_CALL layer_clEnqueueTask(cl_command_queue queue, cl_kernel kernel, cl_uint num_wait,
				       const cl_event *wait, cl_event *event)
{
	struct access a;
	cl_int err;

	if (!kernel_live() && !queue_bracket_any())
		return next.clEnqueueTask(queue, kernel, num_wait, wait, event);
	err = kernel_begin(&a, queue, kernel, num_wait, wait, event);
	if (err)
		return err;
	err = next.clEnqueueTask(queue, kernel, a.num_wait, a.wait, a.event);
	return access_end(&a, err, CL_FALSE);
}

/* The imports in the list of a native kernel. */
static cl_int kernel_imports_list(const cl_mem *list, cl_uint count, struct kernel_imports *imports)
{
	count = list && memobj_live() ? count : 0;
	if (!kernel_imports_reserve(imports, count))
		return kernel_imports_error("native kernel");
	for (cl_uint i = 0; i < count; i++)
		kernel_imports_add(imports, list[i], i);
	return CL_SUCCESS;
}

cl_int CL_API_CALL layer_clEnqueueNativeKernel(cl_command_queue queue,
					       void(CL_CALLBACK *function)(void *), void *args,
					       size_t size, cl_uint num_mems, const cl_mem *mems,
					       const void **mem_locations, cl_uint num_wait,
					       const cl_event *wait, cl_event *event)
{
	struct kernel_imports imports;
	cl_int err = kernel_imports_list(mems, num_mems, &imports);
	struct access a;

	queue_bracket_close(queue); /* it is the host that runs then */
	access_none(&a, num_wait, wait, event);
	if (!err)
		err = access_begin(&a, queue, imports.objs, imports.count, ACCESS_BOTH);
	kernel_imports_put(&imports);
	if (err)
		return err;
	err = next.clEnqueueNativeKernel(queue, function, args, size, num_mems, mems, mem_locations,
					 a.num_wait, a.wait, a.event);
	return access_end(&a, err, CL_FALSE);
}
