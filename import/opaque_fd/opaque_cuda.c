/* SPDX-License-Identifier: Apache-2.0 */
#include "import/opaque_fd/opaque_cuda.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "import/nvidia/cuda/cuda.h"
#include "import/opaque_fd/exporter.h"
#include "import/opaque_fd/opaque.h"
#include "util/log.h"

struct opaque_cuda_made {
	struct opaque_made made; /* first */
	uint64_t buffer_id;
};

bool opaque_cuda_takes(const struct cuda_range *memory, uintptr_t address)
{
	return memory->kind == CUDA_DEVICE || (memory->kind == CUDA_HOST && cuda_is_vmm(address));
}

static int opaque_cuda_fill(const unsigned char *uuid, const struct cuda_range *memory,
			    uintptr_t address, size_t size, struct cache_pin *pin,
			    struct opaque_cuda_made *made)
{
	struct cuda_export export;
	int ret = cuda_export_opaque(memory, address, size, uuid, &export);

	if (ret)
		return ret;
	ret = descriptor_identify(export.fd, &made->made.id);
	if (ret) {
		close(export.fd);
		return ret;
	}
	made->made.exporter = OPAQUE_BY_CUDA;
	made->buffer_id = memory->buffer_id;
	pin->base = address - export.offset;
	pin->size = export.size;
	pin->fd = export.fd;
	return 0;
}

static int opaque_cuda_pin(void *uuid, const void *memory, uintptr_t address, size_t size,
			   struct cache_pin *pin)
{
	struct opaque_cuda_made *made = calloc(1, sizeof(*made));
	int ret;

	if (!made)
		return log_errno(ENOMEM, "no memory for an opaque descriptor");
	ret = opaque_cuda_fill(uuid, memory, address, size, pin, made);
	if (ret)
		free(made);
	else
		pin->data = made;
	return ret;
}

static void opaque_cuda_unpin(void *uuid, const struct cache_pin *pin)
{
	struct opaque_made *made = pin->data;

	(void)uuid;
	descriptor_close(pin->fd, &made->id);
	free(made);
}

/* The program may have unmapped the memory, and used the address again. */
static bool opaque_cuda_is_current(void *uuid, const struct cache_pin *pin)
{
	const struct opaque_cuda_made *made = pin->data;

	(void)uuid;
	return made->buffer_id && cuda_buffer_id(pin->base) == made->buffer_id;
}

static const struct cache_source opaque_cuda_source = {
	.pin = opaque_cuda_pin,
	.unpin = opaque_cuda_unpin,
	.is_current = opaque_cuda_is_current,
};

struct opaque_caches opaque_cuda_caches = { .source = &opaque_cuda_source };

int opaque_hold(const unsigned char uuid[IMPORT_UUID_SIZE], uintptr_t address, size_t size,
		struct opaque_hold *hold)
{
	struct descriptor_retry retry = { 0 };
	struct opaque_cuda_made *made;
	struct cuda_range memory;
	int ret = cuda_identify(address, &memory);

	if (ret)
		return ret;
	do
		ret = opaque_cache_get(&opaque_cuda_caches, uuid, address, size, &memory, hold);
	while (descriptor_retry(&retry, ret));
	if (ret)
		return ret;
	made = hold->ref.pin->data;
	atomic_store(&made->made.kept, made->buffer_id);
	return 0;
}

void opaque_release(struct opaque_hold *hold)
{
	const struct cache_pin *pin = hold->ref.pin;
	struct opaque_made *made = pin->data;
	uint64_t kept = atomic_exchange(&made->kept, 0);

	cache_invalidate(hold->cache, pin->base, pin->size);
	opaque_forget(kept);
	opaque_cache_put(hold);
}
