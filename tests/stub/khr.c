/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cl_khr_external_memory with dma-bufs.  The driver owns an imported descriptor, and closes the
 * descriptor with the object.  An object is acquired before its use and released behind.
 */
#include "internal.h"

#include <sys/mman.h>
#include <unistd.h>

static bool khr_has(enum stub_khr_habit habit)
{
	return stub_get(STUB_KHR_HABITS) & habit;
}

bool khr_is_asked(const cl_mem_properties *properties)
{
	return stub_get(STUB_KHR_DMABUF) > STUB_KHR_NAME &&
	       properties[0] == CL_EXTERNAL_MEMORY_HANDLE_DMA_BUF_KHR && !properties[2];
}

static unsigned char *stub_khr_map(int fd, size_t size, cl_int *err)
{
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	*err = memory == MAP_FAILED ? CL_INVALID_VALUE : CL_SUCCESS;
	return *err ? NULL : memory;
}

struct mem *stub_khr_create(struct context *context, cl_mem_flags flags, size_t size, int fd,
			    cl_int *err)
{
	const bool is_unrelated = khr_has(STUB_KHR_UNRELATED) ||
				  (!fd && khr_has(STUB_KHR_NOT_ZERO));
	unsigned char *mapped = NULL;
	struct mem *mem;

	*err = flags & HOST_PTR || khr_has(STUB_KHR_REFUSES) ? CL_INVALID_VALUE : CL_SUCCESS;
	if (!*err && !is_unrelated)
		mapped = stub_khr_map(fd, size, err);
	if (khr_has(STUB_KHR_CLOSES))
		close(fd);
	if (*err)
		return NULL;
	mem = mem_create(context, CL_MEM_OBJECT_BUFFER, flags, size, NULL);
	mem->khr = true;
	mem->khr_fd = khr_has(STUB_KHR_CLOSES) ? -1 : fd;
	if (khr_has(STUB_KHR_COPIES)) {
		mem->khr_other = mapped;
		mem->khr_mapped = mapped;
		return mem;
	}
	if (mapped) {
		mem->khr_other = mem->data; /* freed with the object */
		mem->data = mapped;
		mem->own_data = false;
		mem->khr_mapped = true;
	}
	return mem;
}

void khr_destroy(struct mem *mem)
{
	if (mem->khr_fd >= 0)
		close(mem->khr_fd);
	if (khr_has(STUB_KHR_COPIES)) {
		munmap(mem->khr_other, mem->size);
		return;
	}
	if (mem->khr_mapped)
		munmap(mem->data, mem->size);
	free(mem->khr_other);
}

/* The memory that a kernel works on. */
unsigned char *khr_data(struct mem *mem)
{
	struct mem *root = mem_root(mem);
	const bool is_acquired = atomic_load(&root->acquired) > 0;

	if (!is_acquired)
		stub_trace("used without acquire");
	if (!root->khr_other || root->own_data)
		return mem->data;
	if (!is_acquired && khr_has(STUB_KHR_NEEDS_ACQUIRE))
		return root->khr_other + (mem->data - root->data);
	return mem->data;
}

void khr_note_use(struct mem *mem)
{
	const struct mem *root = mem_root(mem);

	if (root->khr && atomic_load(&root->acquired) <= 0)
		stub_trace("used without acquire");
}

void khr_run(struct mem *mem, bool acquires)
{
	stub_trace(acquires ? "acquire" : "release");
	if (acquires && atomic_fetch_add(&mem->acquired, 1) > 0)
		stub_trace("acquired twice");
	if (!acquires && atomic_fetch_sub(&mem->acquired, 1) <= 0)
		stub_trace("released twice");
	if (!khr_has(STUB_KHR_COPIES) || !mem->khr_other)
		return;
	if (acquires)
		memcpy(mem->data, mem->khr_other, mem->size);
	else
		memcpy(mem->khr_other, mem->data, mem->size);
}

static cl_int khr_enqueue_one(cl_command_queue handle, bool acquires, cl_mem object, WAIT)
{
	struct op op = { .kind = acquires ? OP_ACQUIRE : OP_RELEASE,
			 .type = acquires ? CL_COMMAND_ACQUIRE_EXTERNAL_MEM_OBJECTS_KHR
					  : CL_COMMAND_RELEASE_EXTERNAL_MEM_OBJECTS_KHR };
	struct mem *mem = object_get(object, STUB_MEM);
	cl_int err = CL_SUCCESS;

	if (!queue_check(handle, object, object, &err))
		return err;
	if (!mem->khr)
		return CL_INVALID_MEM_OBJECT;
	op.mem[0] = mem;
	op_hold(&op);
	return queue_submit(handle, &op, num, list, event, false);
}

/* A command for each object; each waits for the one before, and the last gives the event. */
static cl_int khr_enqueue(cl_int err, cl_command_queue handle, bool acquires, cl_uint count,
			  const cl_mem *mems, WAIT)
{
	cl_event before = NULL, one;

	if (stub_get(STUB_KHR_DMABUF) == STUB_KHR_ELSEWHERE)
		err = CL_INVALID_OPERATION;
	if (!err && (!count || !mems))
		err = CL_INVALID_VALUE;
	if (khr_has(STUB_KHR_NO_EVENT))
		event = NULL;
	for (cl_uint i = 0; i < count && !err; i++) {
		err = khr_enqueue_one(handle, acquires, mems[i], before ? 1 : num,
				      before ? &before : list, i == count - 1 ? event : &one);
		if (before)
			stub_event_put((struct event *)before);
		before = i == count - 1 || err ? NULL : one;
	}
	return err;
}

cl_int CL_API_CALL stub_clEnqueueAcquireExternalMemObjectsKHR(cl_command_queue queue, cl_uint count,
							      const cl_mem *mems, WAIT)
{
	cl_int err =
		CALL(clEnqueueAcquireExternalMemObjectsKHR, U(queue), U(count), U(mems), UWAIT);

	return khr_enqueue(err, queue, true, count, mems, num, list, event);
}

cl_int CL_API_CALL stub_clEnqueueReleaseExternalMemObjectsKHR(cl_command_queue queue, cl_uint count,
							      const cl_mem *mems, WAIT)
{
	cl_int err =
		CALL(clEnqueueReleaseExternalMemObjectsKHR, U(queue), U(count), U(mems), UWAIT);

	return khr_enqueue(err, queue, false, count, mems, num, list, event);
}

void *stub_khr_function(const char *name)
{
	if (stub_get(STUB_KHR_DMABUF) <= STUB_KHR_NAME || khr_has(STUB_KHR_NO_FUNCTIONS))
		return NULL;
	if (!strcmp(name, "clEnqueueAcquireExternalMemObjectsKHR"))
		return (void *)(uintptr_t)stub_clEnqueueAcquireExternalMemObjectsKHR;
	return (void *)(uintptr_t)stub_clEnqueueReleaseExternalMemObjectsKHR;
}
