/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cl_khr_external_memory_opaque_fd as in NVIDIA's driver 580.  The driver owns an imported
 * descriptor, and closes the descriptor with the object.  A bad descriptor gets an object together
 * with an error that OpenCL does not define.  Memory that the device may cache is a copy here: either
 * shows kernels old bytes.
 */
#include "internal.h"

#include "fake/opaque.h"

#include <signal.h>
#include <unistd.h>

enum { LARGE_SIZE = 512 << 20 }; /* STUB_OPAQUE_DIES, STUB_OPAQUE_WRONG */

STUB_API void stub_uuid(unsigned device, unsigned char uuid[16])
{
	memset(uuid, 0xa0 + (int)device, 16); /* the value in tests/fake/cuda/device.c */
}

static bool is_for(const struct context *context, const struct fake_opaque *opaque)
{
	unsigned char uuid[16];

	stub_uuid(context->device[0]->index, uuid);
	return opaque->any_device || !memcmp(uuid, opaque->uuid, sizeof(uuid));
}

static struct mem *opaque_create_dud(struct context *context, cl_mem_flags flags, cl_int *err,
				     cl_int code)
{
	*err = code;
	return mem_create(context, CL_MEM_OBJECT_BUFFER, flags, 1, NULL);
}

static bool is_large(const struct fake_opaque *opaque)
{
	return opaque->on_device && opaque->size >= LARGE_SIZE;
}

/* NVIDIA 580 with NVLink reads address 0.  Sanitizers would make another end of the process of it. */
static void opaque_die(void)
{
	signal(SIGSEGV, SIG_DFL);
	raise(SIGSEGV);
}

struct mem *opaque_create(struct context *context, cl_mem_flags flags, size_t size, int fd,
			  cl_int *err)
{
	struct fake_opaque opaque;
	struct mem *mem;

	*err = fd < 0 ? CL_INVALID_VALUE : CL_SUCCESS;
	if (*err)
		return NULL;
	if (!fake_opaque_read(fd, &opaque) || !is_for(context, &opaque))
		return opaque_create_dud(context, flags, err, 999);
	if (size > opaque.size)
		return opaque_create_dud(context, flags, err, 1);
	if (is_large(&opaque) && context_option(context, STUB_OPAQUE_DIES))
		opaque_die();
	mem = object_create(STUB_MEM);
	object_retain(context);
	mem->context = context;
	mem->type = CL_MEM_OBJECT_BUFFER;
	mem->flags = flags & (CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY) ? flags
								    : flags | CL_MEM_READ_WRITE;
	mem->size = size;
	mem->opaque = true;
	mem->opaque_fd = fd;
	mem->own_data = opaque.copied || opaque.cached ||
			context_option(context, STUB_OPAQUE_COPIES) ||
			(is_large(&opaque) && context_option(context, STUB_OPAQUE_WRONG));
	mem->data = opaque.memory;
	if (mem->own_data) {
		mem->data = calloc(1, size);
		memcpy(mem->data, opaque.memory, is_large(&opaque) ? 1 : size);
	}
	return mem;
}

void opaque_destroy(struct mem *mem)
{
	close(mem->opaque_fd);
}
