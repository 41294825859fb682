/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a kernel.  A device that copies gives the kernel a copy of host memory: each object is
 * copied in before and out after the kernel, the first argument last.  That order hides most from a
 * self-test.
 */
#include "internal.h"

/* The ways in which a device is not zero copy for host memory. */
struct copying {
	bool all, in_only, out_only;
	size_t align, above;
	cl_mem_flags access; /* the access flags of objects to copy */
};

/* Whether options ask for copies of memory in such a mapping. */
static bool is_copied_mapping(char mapping)
{
	switch (mapping) {
	case 'd':
		return stub_get(STUB_COPYING_DMABUFS) || stub_get(STUB_COPYING_SHARED);
	case 's':
		return stub_get(STUB_COPYING_SHARED) || stub_get(STUB_COPYING_TMPFS);
	case 't':
		return stub_get(STUB_COPYING_TMPFS);
	case 'r':
		return stub_get(STUB_COPYING_UNWRITABLE);
	case 'f':
		return stub_get(STUB_COPYING_FILES);
	}
	return false;
}

/* Whether the program's own buffer, of which the object may be a part, is not aligned. */
static bool is_crooked(const struct mem *mem, size_t align)
{
	while (mem->parent)
		mem = mem->parent;
	return ((uintptr_t)mem->host_ptr | mem->size) % align;
}

static bool is_copied_read_only(const struct mem *image)
{
	const size_t align = (size_t)stub_get(STUB_COPYING_IMAGES_READ_ONLY);

	return image->flags & CL_MEM_READ_ONLY &&
	       (align == 1 || (align && (uintptr_t)image->host_ptr % align));
}

static bool is_copied(const struct copying *how, const struct mem *mem)
{
	if (!mem || !(mem->flags & CL_MEM_USE_HOST_PTR))
		return false;
	if (mem_is_image(mem) && is_copied_read_only(mem))
		return true;
	return how->all || how->in_only || (how->out_only && mem->snapshot) ||
	       (how->access & mem->flags) || (mem->several && stub_get(STUB_COPYING_SEVERAL)) ||
	       (mem->context->num_devices > 1 && stub_get(STUB_COPYING_CONTEXTS)) ||
	       (how->above && mem->size > how->above) || is_copied_mapping(mem->mapping) ||
	       is_crooked(mem, how->align);
}

static void copy_in(struct launch *launch, const struct copying *how)
{
	for (unsigned i = 0; i < launch->num_args; i++) {
		struct arg *arg = &launch->arg[i];

		if (!is_copied(how, arg->mem))
			continue;
		arg->data = malloc(arg->mem->size);
		memcpy(arg->data, how->out_only ? arg->mem->snapshot : arg->mem->data,
		       arg->mem->size);
	}
}

/* A device that never reads host memory again writes back only the bytes it changed. */
static void write_back(const struct arg *arg)
{
	unsigned char *snapshot = arg->mem->snapshot;

	for (size_t i = 0; i < arg->mem->size; i++)
		if (arg->data[i] != snapshot[i])
			arg->mem->data[i] = snapshot[i] = arg->data[i];
}

static void copy_out(struct launch *launch, const struct copying *how)
{
	for (unsigned i = launch->num_args; i-- > 0;) {
		struct arg *arg = &launch->arg[i];

		if (!is_copied(how, arg->mem))
			continue;
		if (how->out_only)
			write_back(arg);
		else if (!how->in_only && !(arg->mem->flags & CL_MEM_READ_ONLY))
			memcpy(arg->mem->data, arg->data, arg->mem->size);
		free(arg->data);
	}
}

static unsigned char *launch_find_data(struct mem *mem)
{
	if (!mem)
		return NULL;
	if (mem_root(mem)->khr)
		return khr_data(mem);
	return mem->data;
}

static void launch_run_native(struct launch *launch)
{
	for (unsigned i = 0; i < launch->num_args; i++)
		memcpy(launch->native_args + launch->native_at[i], &launch->arg[i].data,
		       sizeof(launch->arg[i].data));
	launch->native(launch->native_args);
}

static void launch_run_items(const struct launch *launch)
{
	const size_t *begin = launch->offset, *n = launch->global;
	size_t id[3];

	for (id[2] = begin[2]; id[2] < begin[2] + n[2]; id[2]++)
		for (id[1] = begin[1]; id[1] < begin[1] + n[1]; id[1]++)
			for (id[0] = begin[0]; id[0] < begin[0] + n[0]; id[0]++)
				launch->run(launch->arg, id, n);
}

cl_int launch_run(struct launch *launch, struct device *device)
{
	const struct copying how = {
		.all = device_option(device, STUB_COPYING),
		.in_only = device_option(device, STUB_LOST_WRITES),
		.out_only = device_option(device, STUB_STALE_READS),
		.align = device_option(device, STUB_PAGES_ALONE)
				 ? STUB_PAGE
				 : (size_t)stub_get(STUB_ZERO_COPY_ALIGN),
		.above = (size_t)stub_get(STUB_COPYING_ABOVE),
		.access = (stub_get(STUB_COPYING_READ_ONLY) ||
					   (launch->is_first && stub_get(STUB_COPYING_FIRST_LAUNCH))
				   ? CL_MEM_READ_ONLY
				   : 0) |
			  (stub_get(STUB_COPYING_WRITE_ONLY) ? CL_MEM_WRITE_ONLY : 0) |
			  (stub_get(STUB_COPYING_HOST_ACCESS)
				   ? CL_MEM_HOST_READ_ONLY | CL_MEM_HOST_WRITE_ONLY |
					     CL_MEM_HOST_NO_ACCESS
				   : 0),
	};
	cl_int failure = (cl_int)stub_get(STUB_KERNEL_FAIL);

	if (failure)
		return failure;
	if (!launch->native)
		stub_trace("kernel %s begin", launch->name);
	for (unsigned i = 0; i < launch->num_args; i++)
		launch->arg[i].data = launch->arg[i].mem ? launch_find_data(launch->arg[i].mem)
							 : launch->arg[i].svm;
	copy_in(launch, &how);
	if (launch->native)
		launch_run_native(launch);
	else
		launch_run_items(launch);
	copy_out(launch, &how);
	if (!launch->native)
		stub_trace("kernel %s end", launch->name);
	return CL_COMPLETE;
}
