/* SPDX-License-Identifier: Apache-2.0 */
/* The ways from a region to an opaque descriptor. */
#include "import/opaque_fd/opaque.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "import/export/origin.h"
#include "import/nvidia/cuda/cuda.h"
#include "import/nvidia/pinnable.h"
#include "import/opaque_fd/exporter.h"
#include "import/opaque_fd/opaque_cuda.h"
#include "import/opaque_fd/opaque_host.h"
#include "import/opaque_fd/watcher.h"
#include "util/descriptor.h"
#include "util/fork.h"
#include "util/log.h"

struct opaque {
	struct opaque_hold shared; /* a descriptor of a cache; without a cache, the export below */
	unsigned int exporter;
	struct opaque_export export;
	struct descriptor_id id; /* of the export's descriptor */
	struct import_invalidate *invalidate;
};

/* A request, which goes down the ways. */
struct opaque_want {
	const unsigned char *uuid;
	unsigned int exporters; /* a bit for each that may make the descriptor */
	bool may_keep;		/* host memory that the program may write */
};

/* No second exporter is asked: exporters refuse the same memory. */
static const struct opaque_exporter *opaque_exporter(const struct opaque_want *want)
{
	return opaque_exporter_get(opaque_exporter_choose(want->exporters));
}

static int opaque_by_cuda(const struct opaque_want *want, const struct cuda_range *memory,
			  uintptr_t address, size_t size, struct opaque *opaque,
			  struct import_opaque *out)
{
	int ret = opaque_cache_get(&opaque_cuda_caches, want->uuid, address, size, memory,
				   &opaque->shared);

	if (!ret)
		opaque_cache_describe(&opaque->shared, out);
	return ret;
}

static uintptr_t opaque_page_mask(void)
{
	return (uintptr_t)sysconf(_SC_PAGESIZE) - 1;
}

/* A new descriptor of the exporter's. */
static void opaque_describe(const struct opaque_want *want, struct opaque *opaque,
			    struct import_opaque *out)
{
	opaque->exporter = opaque_exporter_choose(want->exporters);
	descriptor_identify(opaque->export.fd, &opaque->id);
	*out = (struct import_opaque){
		.fd = opaque->export.fd,
		.exporter = opaque->exporter,
	};
}

/*
 * Not shared by imports, unless the exporter notices changes of the memory: a program may unmap the
 * memory after the release of its buffer, and map other memory there, before the driver has
 * destroyed the buffer.
 */
static int opaque_by_pages(const struct opaque_want *want, uintptr_t address, size_t size,
			   struct opaque *opaque, struct import_opaque *out)
{
	const struct opaque_exporter *exporter = opaque_exporter(want);
	uintptr_t mask = opaque_page_mask(), base = address & ~mask;
	size_t whole = ((address + size + mask) & ~mask) - base;
	int ret;

	if (want->may_keep && exporter->get_kept &&
	    !exporter->get_kept(want->uuid, address, size, &opaque->shared)) {
		opaque_cache_describe(&opaque->shared, out);
		return 0;
	}
	ret = exporter->import_host(want->uuid, (void *)base, whole, &opaque->export);
	if (ret)
		return ret;
	opaque_describe(want, opaque, out);
	out->offset = address - base;
	out->size = whole;
	return 0;
}

/* CUDA's memory by CUDA, other pages by another exporter. */
static int opaque_by_address(const struct opaque_want *want, uintptr_t address, size_t size,
			     struct opaque *opaque, struct import_opaque *out)
{
	struct cuda_range memory;
	int ret;

	if (opaque_cache_find(&opaque_cuda_caches, want->uuid, address, size, &opaque->shared)) {
		opaque_cache_describe(&opaque->shared, out);
		return 0;
	}
	ret = cuda_identify(address, &memory);
	if (ret)
		return ret;
	if (memory.kind == CUDA_MANAGED)
		return log_errno(EOPNOTSUPP,
				 "%zu bytes at %#zx are CUDA managed memory: it moves, so "
				 "nothing can hold it in place",
				 size, (size_t)address);
	if (opaque_cuda_takes(&memory, address))
		return opaque_by_cuda(want, &memory, address, size, opaque, out);
	return opaque_by_pages(want, address, size, opaque, out);
}

/* Whether the device takes the dma-buf of memory that has no other descriptor. */
static bool opaque_takes_all_dmabufs(const struct opaque_want *want)
{
	const struct opaque_exporter *exporter = opaque_exporter(want);

	return exporter->takes_all_dmabufs && exporter->takes_all_dmabufs(want->uuid);
}

static bool opaque_takes_dmabufs(const struct opaque_want *want)
{
	return !opaque_exporter(want)->takes_all_dmabufs || opaque_takes_all_dmabufs(want);
}

/* A dma-buf as a dma-buf, where the exporter can. */
static int opaque_by_dmabuf(const struct opaque_want *want, const struct import_region *region,
			    struct opaque *opaque, struct import_opaque *out)
{
	const struct opaque_exporter *exporter = opaque_exporter(want);
	int ret = exporter->import_dmabuf(want->uuid, region->fd, region->size, &opaque->export);

	if (ret)
		return ret;
	opaque_describe(want, opaque, out);
	out->size = region->size;
	return 0;
}

static void opaque_put_resources(struct opaque *opaque)
{
	if (opaque->shared.cache)
		opaque_cache_put(&opaque->shared);
	if (opaque->export.fd >= 0)
		descriptor_close(opaque->export.fd, &opaque->id);
	if (opaque->export.memory)
		opaque_exporter_get(opaque->exporter)->free(opaque->export.memory);
	*opaque = (struct opaque){ .export = { .fd = -1 } };
}

/*
 * The memory of this process that a dma-buf was made of.  A descriptor keeps its memory: if the
 * address meant the same memory before and after the descriptor was made, the descriptor is of the
 * dma-buf's memory.  -ENOENT, not logged: the process did not make the dma-buf.
 */
static int opaque_by_origin(const struct opaque_want *want, const struct import_region *region,
			    struct opaque *opaque, struct import_opaque *out)
{
	uintptr_t address;
	int ret = origin_find(region->fd, &address);

	if (!ret)
		ret = opaque_by_address(want, address, region->size, opaque, out);
	if (ret)
		return ret;
	ret = origin_find(region->fd, &address);
	if (!ret)
		return 0;
	opaque_put_resources(opaque);
	return ret == -ENOENT ? -ENODEV : ret;
}

/*
 * A dma-buf that the process did not make: as a dma-buf, or by the CPU's mapping if the mapping can
 * be pinned.  Few mappings can: udmabuf, dma-heaps and V4L2 map pages as VM_PFNMAP or VM_IO, which
 * get_user_pages() refuses.  i915 maps shared memory.  The reason for the user is the exporter's.
 */
static int opaque_of_foreign(const struct opaque_want *want, const struct import_region *region,
			     struct opaque *opaque, struct import_opaque *out)
{
	int ret;

	if (opaque_takes_dmabufs(want)) {
		ret = opaque_by_dmabuf(want, region, opaque, out);
		if (ret != -EOPNOTSUPP || !region->addr ||
		    !pinnable_is(region->addr, region->size, PINNABLE_MEMORY))
			return ret;
	}
	if (region->addr)
		return opaque_by_address(want, (uintptr_t)region->addr, region->size, opaque, out);
	return log_errno(EOPNOTSUPP,
			 "the dma-buf has no CPU mapping, %s takes none on this device, and it was "
			 "not made by climport_export_dmabuf() in this process",
			 opaque_exporter(want)->facts.name);
}

/* The origin comes first, since its address stays. */
static int opaque_of_dmabuf(const struct opaque_want *want, const struct import_region *region,
			    struct opaque *opaque, struct import_opaque *out)
{
	int ret = opaque_by_origin(want, region, opaque, out);

	if (ret == -ENOENT)
		return opaque_of_foreign(want, region, opaque, out);
	if (ret == -EOPNOTSUPP && opaque_takes_all_dmabufs(want))
		return opaque_by_dmabuf(want, region, opaque, out);
	return ret;
}

static int opaque_of_region(const struct opaque_want *want, const struct import_region *region,
			    struct opaque *opaque, struct import_opaque *out)
{
	if (region->fd >= 0)
		return opaque_of_dmabuf(want, region, opaque, out);
	return opaque_by_address(want, (uintptr_t)region->addr, region->size, opaque, out);
}

int opaque_get(const struct import_region *region, const unsigned char uuid[IMPORT_UUID_SIZE],
	       unsigned int exporters, struct opaque **opaque, struct import_opaque *out)
{
	const struct opaque_want want = {
		.uuid = uuid,
		.exporters = exporters,
		.may_keep = region->fd < 0 && region->access & IMPORT_WRITE,
	};
	struct opaque *o = calloc(1, sizeof(*o));
	struct descriptor_retry retry = { 0 };
	struct import_opaque made = { 0 };
	int ret;

	if (!o)
		return log_errno(ENOMEM, "no memory for an opaque descriptor");
	o->export.fd = -1;
	do
		ret = opaque_of_region(&want, region, o, &made);
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
	if (opaque->invalidate)
		opaque->invalidate->put(opaque->invalidate);
	opaque_put_resources(opaque);
	free(opaque);
}

void opaque_set_invalidate(struct opaque *opaque, struct import_invalidate *invalidate)
{
	opaque->invalidate = invalidate;
}

struct import_invalidate *opaque_invalidate(const struct opaque *opaque)
{
	return opaque ? opaque->invalidate : NULL;
}

const char *opaque_describe_kept(unsigned int exporters)
{
	const struct opaque_want want = { .exporters = exporters };

	return opaque_exporter(&want)->get_kept ? watcher_describe() : NULL;
}

static _Atomic(opaque_forget_fn) opaque_forgetter;
static atomic_bool opaque_exits;

static void opaque_begin_exit(void)
{
	atomic_store(&opaque_exits, true);
}

/*
 * Exit handlers run youngest first.  The caller's driver works already, so the driver's handlers are
 * older than this one.  A child's driver may be younger than the parent's handler.
 */
void opaque_on_forget(opaque_forget_fn forget)
{
	static _Atomic uint32_t process; /* that has the handler */
	uint32_t now = fork_generation();

	atomic_store(&opaque_forgetter, forget);
	if (atomic_exchange(&process, now) != now)
		atexit(opaque_begin_exit);
}

void opaque_forget(uint64_t kept)
{
	opaque_forget_fn forget = atomic_load(&opaque_forgetter);

	if (forget && !atomic_load(&opaque_exits))
		forget(kept);
}

void opaque_stats(struct cache_stats *sum)
{
	*sum = (struct cache_stats){ 0 };
	opaque_cache_add_stats(&opaque_cuda_caches, sum);
	opaque_host_add_stats(sum);
}
