/* SPDX-License-Identifier: Apache-2.0 */
/* The ways from a region to an opaque descriptor. */
#include "import/opaque_fd/opaque.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "import/export/exports.h"
#include "import/nvidia/cuda/cuda.h"
#include "import/nvidia/vulkan/vulkan.h"
#include "util/descriptor.h"
#include "util/log.h"

struct opaque {
	struct opaque_hold cuda; /* CUDA's descriptor; without a cache, Vulkan's below */
	int fd;
	struct descriptor_id id; /* of fd */
	struct vulkan_memory *vulkan;
};

static int opaque_by_cuda(const struct cuda_range *memory, const unsigned char *uuid,
			  uintptr_t address, size_t size, struct opaque *opaque,
			  struct import_opaque *out)
{
	int ret = opaque_cuda_get(uuid, memory, address, size, &opaque->cuda);

	if (!ret)
		opaque_cuda_describe(&opaque->cuda, out);
	return ret;
}

static uintptr_t opaque_page_mask(void)
{
	return (uintptr_t)sysconf(_SC_PAGESIZE) - 1;
}

/*
 * Never shared by imports: a program may unmap the memory after the release of its buffer, and map
 * other memory there, before the driver has destroyed the buffer.
 */
static int opaque_by_pages(const unsigned char *uuid, uintptr_t address, size_t size,
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
		.exporter = IMPORT_BY_VULKAN,
	};
	return 0;
}

/* CUDA's memory by CUDA, other pages by Vulkan. */
static int opaque_by_address(const unsigned char *uuid, uintptr_t address, size_t size,
			     struct opaque *opaque, struct import_opaque *out)
{
	struct cuda_range memory;
	int ret;

	if (opaque_cuda_find(uuid, address, size, &opaque->cuda)) {
		opaque_cuda_describe(&opaque->cuda, out);
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
		return opaque_by_cuda(&memory, uuid, address, size, opaque, out);
	return opaque_by_pages(uuid, address, size, opaque, out);
}

/* A dma-buf that Vulkan imports, where the driver can. */
static int opaque_by_dmabuf(const struct import_region *region, const unsigned char *uuid,
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
		.exporter = IMPORT_BY_VULKAN,
	};
	return 0;
}

static void opaque_put_resources(struct opaque *opaque)
{
	if (opaque->cuda.cache)
		opaque_cuda_put(&opaque->cuda);
	if (opaque->fd >= 0)
		descriptor_close(opaque->fd, &opaque->id);
	vulkan_free(opaque->vulkan);
	*opaque = (struct opaque){ .fd = -1 };
}

/*
 * The memory of this process that a dma-buf was made of.  A descriptor keeps its memory: if the
 * address meant the same memory before and after the descriptor was made, the descriptor is of the
 * dma-buf's memory.  -ENOENT, not logged: the process did not make the dma-buf.
 */
static int opaque_by_origin(const struct import_region *region, const unsigned char *uuid,
			    struct opaque *opaque, struct import_opaque *out)
{
	uintptr_t address;
	int ret = exports_find(region->fd, &address);

	if (!ret)
		ret = opaque_by_address(uuid, address, region->size, opaque, out);
	if (ret)
		return ret;
	ret = exports_find(region->fd, &address);
	if (!ret)
		return 0;
	opaque_put_resources(opaque);
	return ret == -ENOENT ? -ENODEV : ret;
}

static int opaque_by_mapping(const struct import_region *region, const unsigned char *uuid,
			     struct opaque *opaque, struct import_opaque *out)
{
	if (region->addr)
		return opaque_by_address(uuid, (uintptr_t)region->addr, region->size, opaque, out);
	return log_errno(EOPNOTSUPP,
			 "the dma-buf has no CPU mapping, Vulkan takes none on this device, and "
			 "it was not made by climport_export_dmabuf() in this process");
}

/* By the origin, which keeps its address; by Vulkan; or by the CPU's mapping. */
static int opaque_of_dmabuf(const struct import_region *region, const unsigned char *uuid,
			    struct opaque *opaque, struct import_opaque *out)
{
	int ret = opaque_by_origin(region, uuid, opaque, out);
	bool is_foreign = ret == -ENOENT;

	if (!is_foreign && ret != -EOPNOTSUPP)
		return ret;
	if (vulkan_takes_dmabufs(uuid))
		return opaque_by_dmabuf(region, uuid, opaque, out);
	return is_foreign ? opaque_by_mapping(region, uuid, opaque, out) : ret;
}

static int opaque_of_region(const struct import_region *region, const unsigned char *uuid,
			    struct opaque *opaque, struct import_opaque *out)
{
	return region->fd < 0 ? opaque_by_mapping(region, uuid, opaque, out)
			      : opaque_of_dmabuf(region, uuid, opaque, out);
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
		ret = opaque_of_region(region, uuid, o, &made);
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
