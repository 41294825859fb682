/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers, sub-buffers, and common parts of all memory objects. */
#include "internal.h"

#include <inttypes.h>
#include <linux/magic.h>
#include <sys/statfs.h>

#include <stdio.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards all objects' callbacks */
FORK_SAFE(lock, 103);

static bool at_most_one_bit(cl_mem_flags flags)
{
	return !(flags & (flags - 1));
}

cl_int mem_check_flags(cl_mem_flags flags, const void *host_ptr)
{
	if (flags & ~(cl_mem_flags)(ACCESS | HOST_ACCESS | HOST_PTR | CL_MEM_KERNEL_READ_AND_WRITE))
		return CL_INVALID_VALUE;
	if (!at_most_one_bit(flags & ACCESS) || !at_most_one_bit(flags & HOST_ACCESS))
		return CL_INVALID_VALUE;
	if ((flags & CL_MEM_USE_HOST_PTR) &&
	    (flags & (CL_MEM_ALLOC_HOST_PTR | CL_MEM_COPY_HOST_PTR)))
		return CL_INVALID_VALUE;
	if (!!host_ptr != !!(flags & (CL_MEM_USE_HOST_PTR | CL_MEM_COPY_HOST_PTR)))
		return CL_INVALID_HOST_PTR;
	return CL_SUCCESS;
}

static void *memory_allocate(size_t size)
{
	size_t rounded = (size + BASE_ALIGN - 1) / BASE_ALIGN * BASE_ALIGN;
	void *memory = aligned_alloc(BASE_ALIGN, rounded);

	memset(memory, 0, rounded);
	return memory;
}

static bool is_on_tmpfs(char *name)
{
	struct statfs fs;

	name[strcspn(name, "\n")] = '\0';
	return !statfs(name, &fs) && fs.f_type == TMPFS_MAGIC;
}

/* The kind of mapping that an address is in: see struct mem. */
static char mapping_of(const void *addr, size_t size, bool *several)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[4400], found = 0;
	uintptr_t start, end;

	while (maps && fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR, &start, &end) != 2 ||
		    (uintptr_t)addr < start || (uintptr_t)addr >= end)
			continue;
		*several = end < (uintptr_t)addr + size;
		if (strchr(line, ' ')[2] == '-')
			found = 'r';
		else if (strstr(line, "dmabuf"))
			found = 'd';
		else if (strstr(line, " /memfd:") || strstr(line, " /dev/"))
			found = 's';
		else if (strstr(line, " /"))
			found = is_on_tmpfs(strchr(line, '/')) ? 't' : 'f';
		break;
	}
	if (maps)
		fclose(maps);
	return found;
}

/*
 * Gives a root object its memory: the host's memory if @flags ask for host memory, else a copy or
 * zeros.
 */
void mem_back(struct mem *mem, struct context *context, cl_mem_flags flags, void *host_ptr,
	      bool copying)
{
	object_retain(context);
	mem->context = context;
	mem->flags = flags & ACCESS ? flags : flags | CL_MEM_READ_WRITE;
	mem->host_ptr = flags & CL_MEM_USE_HOST_PTR ? host_ptr : NULL;
	if (mem->host_ptr && (stub_get(STUB_COPYING_FILES) || stub_get(STUB_COPYING_SHARED) ||
			      stub_get(STUB_COPYING_DMABUFS) || stub_get(STUB_COPYING_UNWRITABLE) ||
			      stub_get(STUB_COPYING_SEVERAL) || stub_get(STUB_COPYING_TMPFS)))
		mem->mapping = mapping_of(host_ptr, mem->size, &mem->several);
	mem->own_data = copying || !mem->host_ptr;
	mem->data = mem->own_data ? memory_allocate(mem->size) : mem->host_ptr;
	if (mem->own_data && host_ptr)
		memcpy(mem->data, host_ptr, mem->size);
	if (!mem->own_data && context_option(context, STUB_STALE_READS)) {
		mem->snapshot = memory_allocate(mem->size);
		memcpy(mem->snapshot, host_ptr, mem->size);
	}
}

struct mem *mem_create(struct context *context, cl_mem_object_type type, cl_mem_flags flags,
		       size_t size, void *host_ptr)
{
	struct mem *mem = object_create(STUB_MEM);

	mem->type = type;
	mem->size = size;
	mem_back(mem, context, flags, host_ptr, context_option(context, STUB_COPYING_MAP));
	return mem;
}

cl_int mem_keep_properties(struct mem *mem, const cl_mem_properties *properties)
{
	size_t n = 0;

	for (; properties && properties[n]; n += 2)
		if (n == 6)
			return CL_INVALID_PROPERTY;
	mem->num_properties = properties ? n + 1 : 0;
	memcpy(mem->properties, properties ? properties : mem->properties,
	       mem->num_properties * sizeof(*mem->properties));
	return CL_SUCCESS;
}

static bool is_opaque(const cl_mem_properties *properties)
{
	return stub_get(STUB_OPAQUE) && properties[0] == CL_EXTERNAL_MEMORY_HANDLE_OPAQUE_FD_KHR &&
	       !properties[2];
}

cl_mem mem_buffer(cl_context handle, cl_mem_flags flags, size_t size, void *host_ptr,
		  const cl_mem_properties *properties, cl_int *errcode_ret)
{
	struct context *context = object_get(handle, STUB_CONTEXT);
	cl_int err = mem_check_flags(flags, host_ptr);
	struct mem *mem;

	if (!context)
		return creation_failed(errcode_ret, CL_INVALID_CONTEXT);
	if (!err && (!size || size > (size_t)stub_get(STUB_MAX_ALLOC)))
		err = CL_INVALID_BUFFER_SIZE;
	if (!err && flags & CL_MEM_USE_HOST_PTR && stub_get(STUB_PIN_LIMIT) &&
	    size > (size_t)stub_get(STUB_PIN_LIMIT))
		err = CL_MEM_OBJECT_ALLOCATION_FAILURE;
	if (!err && flags & CL_MEM_USE_HOST_PTR && ((uintptr_t)host_ptr | size) % STUB_PAGE)
		err = (cl_int)stub_get(STUB_UNALIGNED_FAIL);
	if (!err && properties && properties[0] && !is_opaque(properties) &&
	    !khr_is_asked(properties))
		err = CL_INVALID_PROPERTY; /* the stub knows no other properties */
	if (err)
		return creation_failed(errcode_ret, err);
	if (properties && khr_is_asked(properties))
		mem = stub_khr_create(context, flags, size, (int)properties[1], &err);
	else if (properties && properties[0])
		mem = opaque_create(context, flags, size, (int)properties[1], &err);
	else
		mem = mem_create(context, CL_MEM_OBJECT_BUFFER, flags, size, host_ptr);
	if (mem)
		mem_keep_properties(mem, properties);
	if (errcode_ret)
		*errcode_ret = err;
	return (cl_mem)mem;
}

cl_mem CL_API_CALL stub_clCreateBuffer(cl_context handle, cl_mem_flags flags, size_t size,
				       void *host_ptr, cl_int *errcode_ret)
{
	cl_int err =
		CALL(clCreateBuffer, U(handle), U(flags), U(size), U(host_ptr), U(errcode_ret));

	if (err)
		return creation_failed(errcode_ret, err);
	return mem_buffer(handle, flags, size, host_ptr, NULL, errcode_ret);
}

cl_mem CL_API_CALL stub_clCreateBufferWithProperties(cl_context handle,
						     const cl_mem_properties *properties,
						     cl_mem_flags flags, size_t size,
						     void *host_ptr, cl_int *errcode_ret)
{
	cl_int err = CALL(clCreateBufferWithProperties, U(handle), U(properties), U(flags), U(size),
			  U(host_ptr), U(errcode_ret));

	if (err)
		return creation_failed(errcode_ret, err);
	return mem_buffer(handle, flags, size, host_ptr, properties, errcode_ret);
}

/* Checks a sub-buffer's flags against its parent's, as the specification requires. */
static cl_int sub_flags_check(const struct mem *parent, cl_mem_flags flags)
{
	cl_mem_flags have = parent->flags & ACCESS, want = flags & ACCESS;

	if (flags & HOST_PTR || !at_most_one_bit(want) || !at_most_one_bit(flags & HOST_ACCESS))
		return CL_INVALID_VALUE;
	if (want && have != CL_MEM_READ_WRITE && want != have)
		return CL_INVALID_VALUE;
	return CL_SUCCESS;
}

static cl_int region_check(const struct mem *parent, const cl_buffer_region *region)
{
	if (!region || region->origin > parent->size ||
	    region->size > parent->size - region->origin)
		return CL_INVALID_VALUE;
	if (!region->size)
		return CL_INVALID_BUFFER_SIZE;
	return region->origin % BASE_ALIGN ? CL_MISALIGNED_SUB_BUFFER_OFFSET : CL_SUCCESS;
}

static struct mem *mem_create_sub(struct mem *parent, cl_mem_flags flags,
				  const cl_buffer_region *region)
{
	struct mem *mem = object_create(STUB_MEM);

	object_retain(parent->context);
	object_retain(parent);
	mem->context = parent->context;
	mem->parent = parent;
	mem->type = CL_MEM_OBJECT_BUFFER;
	mem->flags = flags & ACCESS ? flags : flags | (parent->flags & ACCESS);
	mem->flags |= parent->flags & HOST_PTR;
	if (!(flags & HOST_ACCESS))
		mem->flags |= parent->flags & HOST_ACCESS;
	mem->origin = region->origin;
	mem->size = region->size;
	mem->data = parent->data + region->origin;
	mem->host_ptr = parent->host_ptr ? parent->host_ptr + region->origin : NULL;
	return mem;
}

cl_mem CL_API_CALL stub_clCreateSubBuffer(cl_mem handle, cl_mem_flags flags,
					  cl_buffer_create_type type, const void *info,
					  cl_int *errcode_ret)
{
	struct mem *parent = object_get(handle, STUB_MEM);
	cl_int err = CALL(clCreateSubBuffer, U(handle), U(flags), U(type), U(info), U(errcode_ret));

	if (!err && (!parent || parent->parent || parent->type != CL_MEM_OBJECT_BUFFER))
		err = CL_INVALID_MEM_OBJECT;
	if (!err && type != CL_BUFFER_CREATE_TYPE_REGION)
		err = CL_INVALID_VALUE;
	if (!err)
		err = sub_flags_check(parent, flags);
	if (!err)
		err = region_check(parent, info);
	if (err)
		return creation_failed(errcode_ret, err);
	if (errcode_ret)
		*errcode_ret = CL_SUCCESS;
	return (cl_mem)mem_create_sub(parent, flags, info);
}

static void mem_destroy(struct mem *mem)
{
	struct mem *parent = mem->parent;
	struct context *context = mem->context;
	struct callback *c;
	bool silent = mem->type == CL_MEM_OBJECT_IMAGE1D_BUFFER &&
		      stub_get(STUB_NO_IMAGE1D_DESTRUCTOR);

	while ((c = mem->callbacks)) {
		mem->callbacks = c->next;
		if (!silent)
			call_back_mem(c->call.mem, (cl_mem)mem, c->data);
		free(c);
	}
	if (mem->own_data)
		free(mem->data);
	free(mem->snapshot);
	if (mem->opaque)
		opaque_destroy(mem);
	if (mem->khr)
		khr_destroy(mem);
	object_destroy(mem);
	if (parent)
		mem_put(parent);
	stub_context_put(context);
}

static void *destroy_late(void *mem)
{
	while (stub_get(STUB_ASYNC_DESTRUCTOR) == STUB_HELD)
		sleep_ms(1);
	sleep_ms(stub_get(STUB_ASYNC_DESTRUCTOR));
	mem_destroy(mem);
	return NULL;
}

void mem_put(struct mem *mem)
{
	pthread_t thread;

	if (!object_release(mem))
		return;
	if (!stub_get(STUB_ASYNC_DESTRUCTOR)) {
		mem_destroy(mem);
		return;
	}
	pthread_create(&thread, NULL, destroy_late, mem);
	pthread_detach(thread);
}

cl_int CL_API_CALL stub_clRetainMemObject(cl_mem handle)
{
	struct mem *mem = object_get(handle, STUB_MEM);

	cl_int err = CALL(clRetainMemObject, U(handle));

	if (err)
		return err;
	if (!mem)
		return CL_INVALID_MEM_OBJECT;
	object_retain(mem);
	return CL_SUCCESS;
}

cl_int CL_API_CALL stub_clReleaseMemObject(cl_mem handle)
{
	struct mem *mem = object_get(handle, STUB_MEM);

	cl_int err = CALL(clReleaseMemObject, U(handle));

	if (err)
		return err;
	if (!mem || mem->base.refs < 1)
		return CL_INVALID_MEM_OBJECT;
	mem_put(mem);
	return CL_SUCCESS;
}

cl_int CL_API_CALL stub_clSetMemObjectDestructorCallback(cl_mem handle,
							 void(CL_CALLBACK *notify)(cl_mem, void *),
							 void *data)
{
	struct mem *mem = object_get(handle, STUB_MEM);
	cl_int err = CALL(clSetMemObjectDestructorCallback, U(handle), U(notify), U(data));
	struct callback *c;

	if (err)
		return err;
	if (!mem)
		return CL_INVALID_MEM_OBJECT;
	if (!notify)
		return CL_INVALID_VALUE;
	c = calloc(1, sizeof(*c));
	c->call.mem = notify;
	c->data = data;
	pthread_mutex_lock(&lock);
	c->next = mem->callbacks;
	mem->callbacks = c;
	pthread_mutex_unlock(&lock);
	return CL_SUCCESS;
}

struct mem *mem_root(struct mem *mem)
{
	while (mem->parent)
		mem = mem->parent;
	return mem;
}

bool mem_is_image(const struct mem *mem)
{
	return mem->type != CL_MEM_OBJECT_BUFFER && mem->type != CL_MEM_OBJECT_PIPE;
}

cl_int CL_API_CALL stub_clGetMemObjectInfo(cl_mem handle, cl_mem_info name, size_t room, void *out,
					   size_t *size_ret)
{
	struct mem *mem = object_get(handle, STUB_MEM);
	cl_int err = CALL(clGetMemObjectInfo, U(handle), U(name), U(room), U(out), U(size_ret));
	cl_bool no = CL_FALSE;
	cl_uint count;

	if (err)
		return err;
	if (!mem)
		return CL_INVALID_MEM_OBJECT;
	switch (name) {
	case CL_MEM_TYPE:
		return info_put(&mem->type, sizeof(mem->type), room, out, size_ret);
	case CL_MEM_FLAGS:
		return info_put(&mem->flags, sizeof(mem->flags), room, out, size_ret);
	case CL_MEM_SIZE:
		return info_put(&mem->size, sizeof(mem->size), room, out, size_ret);
	case CL_MEM_HOST_PTR:
		return info_put(&mem->host_ptr, sizeof(void *), room, out, size_ret);
	case CL_MEM_MAP_COUNT:
		count = (cl_uint)mem->maps;
		return info_put(&count, sizeof(count), room, out, size_ret);
	case CL_MEM_REFERENCE_COUNT:
		count = (cl_uint)mem->base.refs;
		return info_put(&count, sizeof(count), room, out, size_ret);
	case CL_MEM_CONTEXT:
		return info_put(&mem->context, sizeof(void *), room, out, size_ret);
	case CL_MEM_ASSOCIATED_MEMOBJECT:
		return info_put(&mem->parent, sizeof(void *), room, out, size_ret);
	case CL_MEM_OFFSET:
		return info_put(&mem->origin, sizeof(size_t), room, out, size_ret);
	case CL_MEM_USES_SVM_POINTER:
		return info_put(&no, sizeof(no), room, out, size_ret);
	case CL_MEM_PROPERTIES:
		return info_put(mem->properties, mem->num_properties * sizeof(*mem->properties),
				room, out, size_ret);
	}
	return CL_INVALID_VALUE;
}
