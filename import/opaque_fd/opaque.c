/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opaque descriptors of memory.  CUDA's are shared while somebody holds them, by a registration
 * cache for each device that keeps nothing idle: a descriptor keeps its memory alive, whatever
 * its owner frees.  Allocators of our own hold theirs (import/alloc/memory.c).
 */
#include "import/opaque_fd/opaque.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "import/cache/cache.h"
#include "import/export/exports.h"
#include "import/nvidia/cuda/cuda.h"
#include "import/nvidia/vulkan/vulkan.h"
#include "util/descriptor.h"
#include "util/log.h"

/* The memory that one device takes.  Never removed. */
struct device {
	struct device *next;
	unsigned char uuid[IMPORT_UUID_SIZE];
	struct cache *cache;
};

struct opaque {
	struct cache *cache; /* NULL: the dma-buf below */
	struct cache_ref ref;
	int fd;
	struct descriptor_id id; /* of fd */
	struct vulkan_memory *vulkan;
};

static struct device *_Atomic devices; /* grows at its head only */

static uintptr_t opaque_page_mask(void)
{
	return (uintptr_t)sysconf(_SC_PAGESIZE) - 1;
}

/* The source's part of a pin. */
struct made {
	uint64_t buffer_id;
	struct descriptor_id id;
	atomic_bool kept; /* by opaque_hold(), until the memory is freed */
};

/* -ENOENT, not logged: memory that CUDA has no opaque descriptors of. */
static int opaque_pin_cuda(const unsigned char *uuid, uintptr_t address, size_t size,
			   struct cache_pin *pin, struct made *made)
{
	struct cuda_range range;
	struct cuda_export export;
	int ret = cuda_identify(address, &range);

	if (ret)
		return ret;
	if (range.kind == CUDA_MANAGED)
		return log_errno(EOPNOTSUPP,
				 "%zu bytes at %#zx are CUDA managed memory: it moves, so "
				 "nothing can hold it in place",
				 size, (size_t)address);
	if (range.kind == CUDA_NONE || (range.kind == CUDA_HOST && !cuda_is_vmm(address)))
		return -ENOENT;
	ret = cuda_export_opaque(address, size, uuid, &export);
	if (ret)
		return ret;
	ret = descriptor_identify(export.fd, &made->id);
	if (ret) {
		close(export.fd);
		return ret;
	}
	made->buffer_id = range.buffer_id;
	pin->base = address - export.offset;
	pin->size = export.size;
	pin->fd = export.fd;
	return 0;
}

static int opaque_pin(void *uuid, uintptr_t address, size_t size, struct cache_pin *pin)
{
	struct made *made = calloc(1, sizeof(*made));
	int ret;

	if (!made)
		return log_errno(ENOMEM, "no memory for an opaque descriptor");
	ret = opaque_pin_cuda(uuid, address, size, pin, made);
	if (ret)
		free(made);
	else
		pin->data = made;
	return ret;
}

static void opaque_unpin(void *uuid, const struct cache_pin *pin)
{
	struct made *made = pin->data;

	(void)uuid;
	descriptor_close(pin->fd, &made->id);
	free(made);
}

/* The memory may have been unmapped, and its address used again. */
static bool opaque_is_current(void *uuid, const struct cache_pin *pin)
{
	const struct made *made = pin->data;

	(void)uuid;
	return made->buffer_id && cuda_buffer_id(pin->base) == made->buffer_id;
}

static const struct cache_source source = {
	.pin = opaque_pin,
	.unpin = opaque_unpin,
	.is_current = opaque_is_current,
};

static struct device *opaque_device_find(struct device *first, const unsigned char *uuid)
{
	while (first && memcmp(first->uuid, uuid, IMPORT_UUID_SIZE))
		first = first->next;
	return first;
}

static struct device *device_create(const unsigned char *uuid)
{
	static const struct cache_config keep_nothing = { .bytes = 0 };
	struct device *device = calloc(1, sizeof(*device));

	if (!device)
		return NULL;
	memcpy(device->uuid, uuid, sizeof(device->uuid));
	if (!cache_create(&source, device->uuid, &keep_nothing, &device->cache))
		return device;
	free(device);
	return NULL;
}

static void opaque_device_destroy(struct device *device)
{
	cache_destroy(device->cache);
	free(device);
}

/* Two threads may make one device at once: the first is for all. */
static struct device *opaque_device_add(struct device *device)
{
	struct device *head = atomic_load(&devices), *other;

	do {
		other = opaque_device_find(head, device->uuid);
		if (other) {
			opaque_device_destroy(device);
			return other;
		}
		device->next = head;
	} while (!atomic_compare_exchange_weak(&devices, &head, device));
	return device;
}

static int cache_of(const unsigned char *uuid, struct cache **cache)
{
	struct device *device = opaque_device_find(atomic_load(&devices), uuid);

	if (!device) {
		device = device_create(uuid);
		if (!device)
			return log_errno(ENOMEM, "no registration cache for a device");
		device = opaque_device_add(device);
	}
	*cache = device->cache;
	return 0;
}

/* What the program has closed is made anew, once. */
static int get_open(struct cache *cache, uintptr_t address, size_t size, struct cache_ref *ref)
{
	const struct made *made;
	int ret = cache_get(cache, address, size, ref);

	if (ret)
		return ret;
	made = ref->pin->data;
	if (descriptor_is(ref->pin->fd, &made->id))
		return 0;
	cache_invalidate(cache, ref->pin->base, ref->pin->size);
	cache_put(cache, ref);
	return cache_get(cache, address, size, ref);
}

static int opaque_by_cuda(const unsigned char *uuid, uintptr_t address, size_t size,
			  struct opaque *opaque, struct import_opaque *out)
{
	struct cache *cache;
	struct made *made;
	int ret = cache_of(uuid, &cache);

	if (!ret)
		ret = get_open(cache, address, size, &opaque->ref);
	if (ret)
		return ret;
	opaque->cache = cache;
	made = opaque->ref.pin->data;
	*out = (struct import_opaque){
		.fd = opaque->ref.pin->fd,
		.offset = opaque->ref.offset,
		.size = opaque->ref.pin->size,
		.maker = IMPORT_BY_CUDA,
		.kept = atomic_load_explicit(&made->kept, memory_order_relaxed) ? made->buffer_id
										: 0,
	};
	return 0;
}

/*
 * Never shared: a program may unmap the memory when it has released its buffer, and map other
 * memory there, before the driver has destroyed the buffer.
 */
static int by_pages(const unsigned char *uuid, uintptr_t address, size_t size,
		    struct opaque *opaque, struct import_opaque *out)
{
	uintptr_t mask = opaque_page_mask(), base = address & ~mask;
	size_t whole = ((address + size + mask) & ~mask) - base;
	int ret = vulkan_import_host(uuid, (void *)base, whole, &opaque->vulkan, &opaque->fd);

	if (ret)
		return ret;
	descriptor_identify(opaque->fd, &opaque->id);
	*out = (struct import_opaque){
		.fd = opaque->fd,
		.offset = address - base,
		.size = whole,
		.maker = IMPORT_BY_VULKAN,
	};
	return 0;
}

static int by_address(const unsigned char *uuid, uintptr_t address, size_t size,
		      struct opaque *opaque, struct import_opaque *out)
{
	int ret = opaque_by_cuda(uuid, address, size, opaque, out);

	if (ret != -ENOENT)
		return ret;
	return by_pages(uuid, address, size, opaque, out);
}

/* A dma-buf that Vulkan takes itself, where the driver can. */
static int by_dmabuf(const struct import_region *region, const unsigned char *uuid,
		     struct opaque *opaque, struct import_opaque *out)
{
	int ret =
		vulkan_import_dmabuf(uuid, region->fd, region->size, &opaque->vulkan, &opaque->fd);

	if (ret)
		return ret;
	descriptor_identify(opaque->fd, &opaque->id);
	*out = (struct import_opaque){
		.fd = opaque->fd,
		.size = region->size,
		.maker = IMPORT_BY_VULKAN,
	};
	return 0;
}

static void opaque_put_resources(struct opaque *opaque)
{
	if (opaque->cache)
		cache_put(opaque->cache, &opaque->ref);
	if (opaque->fd >= 0)
		descriptor_close(opaque->fd, &opaque->id);
	vulkan_free(opaque->vulkan);
	*opaque = (struct opaque){ .fd = -1 };
}

/*
 * Memory of this process that a dma-buf was made of.  A descriptor keeps what it is of: if the
 * address meant the same before and after it was made, it is of the dma-buf's memory.
 */
static int by_origin(const struct import_region *region, const unsigned char *uuid,
		     struct opaque *opaque, struct import_opaque *out)
{
	uintptr_t address;
	int ret = exports_find(region->fd, &address);

	if (!ret)
		ret = by_address(uuid, address, region->size, opaque, out);
	if (ret)
		return ret;
	ret = exports_find(region->fd, &address);
	if (!ret)
		return 0;
	opaque_put_resources(opaque);
	return ret == -ENOENT ? -ENODEV : ret;
}

/* What a dma-buf was made of keeps its address; else Vulkan, or the CPU's mapping. */
static int any_way(const struct import_region *region, const unsigned char *uuid,
		   struct opaque *opaque, struct import_opaque *out)
{
	int ret;

	if (region->fd < 0)
		return by_address(uuid, (uintptr_t)region->addr, region->size, opaque, out);
	ret = by_origin(region, uuid, opaque, out);
	if (ret != -ENOENT && ret != -EOPNOTSUPP)
		return ret;
	if (vulkan_takes_dmabufs(uuid))
		return by_dmabuf(region, uuid, opaque, out);
	if (ret == -EOPNOTSUPP)
		return ret;
	if (region->addr)
		return by_address(uuid, (uintptr_t)region->addr, region->size, opaque, out);
	return log_errno(EOPNOTSUPP,
			 "the dma-buf has no CPU mapping, Vulkan takes none on this device, and "
			 "it was not made by climport_export_dmabuf() in this process");
}

int opaque_get(const struct import_region *region, const unsigned char uuid[IMPORT_UUID_SIZE],
	       struct opaque **opaque, struct import_opaque *out)
{
	struct opaque *o = calloc(1, sizeof(*o));
	struct descriptor_retry retry = { 0 };
	struct import_opaque made = { 0 };
	int ret;

	if (!o)
		return log_errno(ENOMEM, "no memory for an opaque descriptor");
	o->fd = -1;
	do
		ret = any_way(region, uuid, o, &made);
	while (descriptor_retry(&retry, ret));
	if (ret) {
		free(o);
		return ret;
	}
	*out = made;
	*opaque = o;
	return 0;
}

void opaque_put(struct opaque *opaque)
{
	if (!opaque)
		return;
	opaque_put_resources(opaque);
	free(opaque);
}

static _Atomic(opaque_forget_fn) on_forget;

void opaque_on_forget(opaque_forget_fn forget)
{
	atomic_store(&on_forget, forget);
}

int opaque_hold(const unsigned char uuid[IMPORT_UUID_SIZE], uintptr_t address, size_t size,
		struct opaque_hold *hold)
{
	struct descriptor_retry retry = { 0 };
	int ret = cache_of(uuid, &hold->cache);

	if (ret)
		return ret;
	do
		ret = cache_get(hold->cache, address, size, &hold->ref);
	while (descriptor_retry(&retry, ret));
	if (!ret)
		atomic_store(&((struct made *)hold->ref.pin->data)->kept, true);
	return ret;
}

void opaque_release(struct opaque_hold *hold)
{
	const struct cache_pin *pin = hold->ref.pin;
	struct made *made = pin->data;
	opaque_forget_fn forget = atomic_load(&on_forget);

	atomic_store(&made->kept, false);
	cache_invalidate(hold->cache, pin->base, pin->size);
	if (forget)
		forget(made->buffer_id);
	cache_put(hold->cache, &hold->ref);
}

void opaque_stats(struct cache_stats *sum)
{
	struct cache_stats one;

	memset(sum, 0, sizeof(*sum));
	for (struct device *d = atomic_load(&devices); d; d = d->next) {
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
