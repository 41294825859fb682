/* SPDX-License-Identifier: Apache-2.0 */
#include "import/opaque_fd/opaque_cuda.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "import/nvidia/cuda/cuda.h"
#include "util/log.h"
#include "util/shortage.h"

/* The data of a pin of a device's own memory. */
static char opaque_cuda_device_memory;

/* What opaque_hold() asks for. */
struct opaque_cuda_want {
	const unsigned char *uuid;
	struct cuda_range memory;
};

bool opaque_cuda_takes(const struct cuda_range *memory, uintptr_t address)
{
	return memory->kind == CUDA_DEVICE || (memory->kind == CUDA_HOST && cuda_is_vmm(address));
}

int opaque_cuda_export(const unsigned char *uuid, const struct cuda_range *memory,
		       uintptr_t address, size_t size, struct import_opaque *out)
{
	struct cuda_export export;
	int ret = cuda_export_opaque(memory, address, size, uuid, &export);

	if (ret)
		return ret;
	*out = (struct import_opaque){
		.fd = export.fd,
		.offset = export.offset,
		.size = export.size,
		.exporter = OPAQUE_BY_CUDA,
		.is_on_device = memory->kind == CUDA_DEVICE,
	};
	return 0;
}

/* Memory that cannot be exported is no memory to register. */
static int opaque_cuda_pin(void *unused, const void *arg, uintptr_t address, size_t size,
			   struct cache_pin *pin)
{
	const struct opaque_cuda_want *want = arg;
	struct import_opaque made = { .fd = -1 };
	int ret = opaque_cuda_export(want->uuid, &want->memory, address, size, &made);

	(void)unused;
	if (ret)
		return ret;
	close(made.fd);
	pin->base = address - made.offset;
	pin->size = made.size;
	pin->number = want->memory.buffer_id;
	pin->data = made.is_on_device ? &opaque_cuda_device_memory : NULL;
	return 0;
}

/* An import may have made a buffer since opaque_release(). */
static void opaque_cuda_unpin(void *unused, const struct cache_pin *pin)
{
	(void)unused;
	opaque_forget(pin->number);
}

/* The program may have unmapped the memory, and used the address again. */
static bool opaque_cuda_is_current(void *unused, const struct cache_pin *pin)
{
	(void)unused;
	return pin->number && cuda_buffer_id(pin->base) == pin->number;
}

static bool opaque_cuda_is_on_device(const struct cache_pin *pin)
{
	return pin->data == &opaque_cuda_device_memory;
}

/* CUDA looks at the memory before and after the export. */
static int opaque_cuda_open(const struct cache_pin *pin, const unsigned char *uuid, int *fd)
{
	struct cuda_range memory;
	struct import_opaque made = { .fd = -1 };
	int ret = cuda_identify(pin->base, &memory);

	if (!ret && memory.buffer_id != pin->number)
		ret = log_errno(ENODEV, "the memory at %#zx was freed", (size_t)pin->base);
	if (!ret)
		ret = opaque_cuda_export(uuid, &memory, pin->base, pin->size, &made);
	if (!ret)
		*fd = made.fd;
	return ret;
}

static const struct opaque_source opaque_cuda_source = {
	.cache = {
		.pin = opaque_cuda_pin,
		.unpin = opaque_cuda_unpin,
		.is_current = opaque_cuda_is_current,
	},
	.exporter = OPAQUE_BY_CUDA,
	.share = IMPORT_SHARE_ALLOCATED,
	.open = opaque_cuda_open,
	.is_on_device = opaque_cuda_is_on_device,
};

struct opaque_cache opaque_cuda_cache = { .source = &opaque_cuda_source };

int opaque_hold(const unsigned char uuid[IMPORT_UUID_SIZE], uintptr_t address, size_t size,
		struct opaque_hold *hold)
{
	struct shortage_retry retry = { 0 };
	struct opaque_cuda_want want = { .uuid = uuid };
	int ret = cuda_identify(address, &want.memory);

	if (ret)
		return ret;
	do
		ret = opaque_cache_get(&opaque_cuda_cache, address, size, &want, hold);
	while (shortage_retry(&retry, ret));
	return ret;
}

/* The driver's buffers go before the memory is freed. */
void opaque_release(struct opaque_hold *hold)
{
	const struct cache_pin *pin = hold->ref.pin;

	cache_invalidate(opaque_cache_of(hold->of), pin->base, pin->size);
	opaque_forget(pin->number);
	opaque_cache_put_now(hold);
}
