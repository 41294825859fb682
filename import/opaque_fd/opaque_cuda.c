/* SPDX-License-Identifier: Apache-2.0 */
#include "import/opaque_fd/opaque_cuda.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "import/nvidia/cuda/cuda.h"
#include "import/opaque_fd/opaque.h"
#include "util/descriptor.h"
#include "util/log.h"
#include "util/publish.h"

/* The descriptors for one device.  Never removed. */
struct opaque_device {
	struct published published; /* first */
	unsigned char uuid[IMPORT_UUID_SIZE];
	struct cache *cache;
};

static struct publish_list opaque_devices;

/* The source's part of a pin. */
struct opaque_made {
	uint64_t buffer_id;
	struct descriptor_id id;
	atomic_bool kept; /* by opaque_hold(), until the memory is freed */
};

bool opaque_cuda_takes(const struct cuda_range *memory, uintptr_t address)
{
	return memory->kind == CUDA_DEVICE || (memory->kind == CUDA_HOST && cuda_is_vmm(address));
}

static int opaque_cuda_fill(const unsigned char *uuid, const struct cuda_range *memory,
			    uintptr_t address, size_t size, struct cache_pin *pin,
			    struct opaque_made *made)
{
	struct cuda_export export;
	int ret = cuda_export_opaque(memory, address, size, uuid, &export);

	if (ret)
		return ret;
	ret = descriptor_identify(export.fd, &made->id);
	if (ret) {
		close(export.fd);
		return ret;
	}
	made->buffer_id = memory->buffer_id;
	pin->base = address - export.offset;
	pin->size = export.size;
	pin->fd = export.fd;
	return 0;
}

static int opaque_cuda_pin(void *uuid, const void *memory, uintptr_t address, size_t size,
			   struct cache_pin *pin)
{
	struct opaque_made *made = calloc(1, sizeof(*made));
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
	const struct opaque_made *made = pin->data;

	(void)uuid;
	return made->buffer_id && cuda_buffer_id(pin->base) == made->buffer_id;
}

static const struct cache_source opaque_cuda_source = {
	.pin = opaque_cuda_pin,
	.unpin = opaque_cuda_unpin,
	.is_current = opaque_cuda_is_current,
};

static bool opaque_device_is(const void *device, const void *uuid)
{
	return !memcmp(((const struct opaque_device *)device)->uuid, uuid, IMPORT_UUID_SIZE);
}

static struct opaque_device *opaque_device_find(const unsigned char *uuid)
{
	return publish_find(&opaque_devices, opaque_device_is, uuid);
}

static struct opaque_device *opaque_device_create(const unsigned char *uuid)
{
	static const struct cache_config keep_nothing = { .bytes = 0 };
	struct opaque_device *device = calloc(1, sizeof(*device));

	if (!device)
		return NULL;
	memcpy(device->uuid, uuid, sizeof(device->uuid));
	if (!cache_create(&opaque_cuda_source, device->uuid, &keep_nothing, &device->cache))
		return device;
	free(device);
	return NULL;
}

static void opaque_device_destroy(struct opaque_device *device)
{
	cache_destroy(device->cache);
	free(device);
}

static struct opaque_device *opaque_device_publish(struct opaque_device *mine)
{
	struct opaque_device *winner =
		publish_add(&opaque_devices, mine, opaque_device_is, mine->uuid);

	if (winner != mine)
		opaque_device_destroy(mine);
	return winner;
}

static int opaque_cache_of(const unsigned char *uuid, struct cache **cache)
{
	struct opaque_device *device = opaque_device_find(uuid);

	if (!device) {
		device = opaque_device_create(uuid);
		if (!device)
			return log_errno(ENOMEM, "no registration cache for a device");
		device = opaque_device_publish(device);
	}
	*cache = device->cache;
	return 0;
}

static bool opaque_cuda_is_open(const struct opaque_hold *hold)
{
	const struct opaque_made *made = hold->ref.pin->data;

	return descriptor_is(hold->ref.pin->fd, &made->id);
}

/* The program has closed the descriptor: the next look-up makes another. */
static void opaque_cuda_discard(struct opaque_hold *hold)
{
	cache_invalidate(hold->cache, hold->ref.pin->base, hold->ref.pin->size);
	opaque_cuda_put(hold);
}

bool opaque_cuda_find(const unsigned char uuid[IMPORT_UUID_SIZE], uintptr_t address, size_t size,
		      struct opaque_hold *hold)
{
	struct opaque_device *device = opaque_device_find(uuid);
	struct opaque_hold found = { .cache = device ? device->cache : NULL };

	if (!device || !cache_get_cached(device->cache, address, size, &found.ref))
		return false;
	if (!opaque_cuda_is_open(&found)) {
		opaque_cuda_discard(&found);
		return false;
	}
	*hold = found;
	return true;
}

static int opaque_cuda_get_any(const unsigned char uuid[IMPORT_UUID_SIZE],
			       const struct cuda_range *memory, uintptr_t address, size_t size,
			       struct opaque_hold *got)
{
	int ret = opaque_cache_of(uuid, &got->cache);

	return ret ? ret : cache_get_wanted(got->cache, address, size, memory, &got->ref);
}

/* The cache may have a descriptor that opaque_cuda_find() did not find, and the program closed. */
int opaque_cuda_get(const unsigned char uuid[IMPORT_UUID_SIZE], const struct cuda_range *memory,
		    uintptr_t address, size_t size, struct opaque_hold *hold)
{
	struct opaque_hold got;
	int ret = opaque_cuda_get_any(uuid, memory, address, size, &got);

	if (!ret && !opaque_cuda_is_open(&got)) {
		opaque_cuda_discard(&got);
		ret = opaque_cuda_get_any(uuid, memory, address, size, &got);
	}
	if (!ret)
		*hold = got;
	return ret;
}

void opaque_cuda_put(struct opaque_hold *hold)
{
	cache_put(hold->cache, &hold->ref);
	hold->cache = NULL;
}

void opaque_cuda_describe(const struct opaque_hold *hold, struct import_opaque *out)
{
	const struct cache_pin *pin = hold->ref.pin;
	const struct opaque_made *made = pin->data;

	*out = (struct import_opaque){
		.fd = pin->fd,
		.offset = hold->ref.offset,
		.size = pin->size,
		.exporter = IMPORT_BY_CUDA,
		.kept = atomic_load_explicit(&made->kept, memory_order_relaxed) ? made->buffer_id
										: 0,
	};
}

static _Atomic(opaque_forget_fn) opaque_forgetter;

void opaque_on_forget(opaque_forget_fn forget)
{
	atomic_store(&opaque_forgetter, forget);
}

int opaque_hold(const unsigned char uuid[IMPORT_UUID_SIZE], uintptr_t address, size_t size,
		struct opaque_hold *hold)
{
	struct descriptor_retry retry = { 0 };
	struct opaque_made *made;
	struct cuda_range memory;
	int ret = cuda_identify(address, &memory);

	if (ret)
		return ret;
	do
		ret = opaque_cuda_get(uuid, &memory, address, size, hold);
	while (descriptor_retry(&retry, ret));
	if (ret)
		return ret;
	made = hold->ref.pin->data;
	atomic_store(&made->kept, true);
	return 0;
}

void opaque_release(struct opaque_hold *hold)
{
	const struct cache_pin *pin = hold->ref.pin;
	opaque_forget_fn forget = atomic_load(&opaque_forgetter);
	struct opaque_made *made = pin->data;

	atomic_store(&made->kept, false);
	cache_invalidate(hold->cache, pin->base, pin->size);
	if (forget)
		forget(made->buffer_id);
	opaque_cuda_put(hold);
}

void opaque_stats(struct cache_stats *sum)
{
	struct opaque_device *d = publish_list_head(&opaque_devices);
	struct cache_stats one;

	memset(sum, 0, sizeof(*sum));
	for (; d; d = publish_next(d)) {
		cache_stats(d->cache, &one);
		sum->hits += one.hits;
		sum->misses += one.misses;
		sum->evictions += one.evictions;
		sum->stale += one.stale;
		sum->invalidations += one.invalidations;
		sum->bytes_pinned += one.bytes_pinned;
		sum->bytes_idle += one.bytes_idle;
		sum->entries += one.entries;
	}
}
