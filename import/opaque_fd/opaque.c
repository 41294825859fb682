/* SPDX-License-Identifier: Apache-2.0 */
/* The ways from a region to an opaque descriptor. */
#include "import/opaque_fd/opaque.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "import/export/origin.h"
#include "import/nvidia/cuda/cuda.h"
#include "import/nvidia/pinnable.h"
#include "import/nvidia/rm/rm.h"
#include "import/opaque_fd/opaque_cuda.h"
#include "import/opaque_fd/opaque_registered.h"
#include "import/opaque_fd/opaque_watched.h"
#include "util/address.h"
#include "util/descriptor.h"
#include "util/log.h"
#include "util/shortage.h"
#include "util/thread.h"

/* Kept buffers: shares of the process's limit of descriptors. */
#define OPAQUE_ALLOCATED_SHARE 16u
#define OPAQUE_ALLOCATED_MOST 64u
#define OPAQUE_REGISTERED_SHARE 8u

/* What an import keeps.  A descriptor is for the call that makes the driver's buffer. */
struct opaque_kept {
	struct opaque opaque;
	struct opaque_hold hold; /* a registration */
	uintptr_t address;	 /* with a registration: of the import */
	size_t size;		 /* with a registration: of the import */
};

/* A request, which goes down the ways. */
struct opaque_want {
	const unsigned char *uuid;
	bool may_keep; /* host memory that the program may write */
};

/* Whole pages of a range. */
struct opaque_pages {
	uintptr_t base;
	size_t size;
};

static struct opaque_pages opaque_pages_of(uintptr_t address, size_t size)
{
	uintptr_t mask = (uintptr_t)sysconf(_SC_PAGESIZE) - 1, base = address & ~mask;

	return (struct opaque_pages){ base, ((address + size + mask) & ~mask) - base };
}

static bool opaque_host_make_room(uint32_t count)
{
	return opaque_watched_make_room(count) || opaque_registered_make_room(count);
}

static struct shortage_giver opaque_host_giver = { .give_up = opaque_host_make_room };

/* The registration in @opaque.  The descriptor is not made yet. */
static int opaque_by_registration(uintptr_t address, size_t size, struct opaque_kept *opaque,
				  struct import_opaque *out)
{
	opaque->address = address;
	opaque->size = size;
	opaque_cache_describe(&opaque->hold, out);
	shortage_add_giver(&opaque_host_giver);
	return 0;
}

/* Whole pages for the import alone. */
static int opaque_by_own_pages(const unsigned char *uuid, uintptr_t address, size_t size,
			       struct import_opaque *out)
{
	struct opaque_pages pages = opaque_pages_of(address, size);
	int fd, ret = rm_import_host(uuid, (void *)pages.base, pages.size, &fd);

	if (ret)
		return ret;
	*out = (struct import_opaque){
		.fd = fd,
		.offset = address - pages.base,
		.size = pages.size,
		.exporter = OPAQUE_BY_RM,
	};
	return 0;
}

/* The program's registration, or the module's watch. */
static int opaque_get_kept(uintptr_t address, size_t size, struct opaque_hold *hold)
{
	return opaque_registered_get(address, size, hold) ? opaque_watched_get(address, size, hold)
							  : 0;
}

/*
 * Not shared by imports, unless somebody notices changes of the memory: a program may unmap the
 * memory after the release of its buffer, and map other memory there, before the driver has
 * destroyed the buffer.
 */
static int opaque_by_pages(const struct opaque_want *want, uintptr_t address, size_t size,
			   struct opaque_kept *opaque, struct import_opaque *out)
{
	if (want->may_keep && !opaque_get_kept(address, size, &opaque->hold))
		return opaque_by_registration(address, size, opaque, out);
	return opaque_by_own_pages(want->uuid, address, size, out);
}

/*
 * Memory of a watch that is current has been identified before the watch began, and is still the same
 * memory: libcuda is not asked again.  False as well for memory that the program registers, as
 * opaque_get_kept() prefers the program's registration.
 */
static bool opaque_find_watched(const struct opaque_want *want, uintptr_t address, size_t size,
				struct opaque_hold *hold)
{
	if (!want->may_keep || !opaque_watched_find(address, size, hold))
		return false;
	if (!opaque_registered_has(address, size))
		return true;
	opaque_cache_put(hold);
	return false;
}

/* CUDA's memory by CUDA, other pages by RM. */
static int opaque_by_address(const struct opaque_want *want, uintptr_t address, size_t size,
			     struct opaque_kept *opaque, struct import_opaque *out)
{
	struct cuda_range memory;
	int ret;

	if (opaque_cache_find(&opaque_cuda_cache, address, size, &opaque->hold) ||
	    opaque_find_watched(want, address, size, &opaque->hold))
		return opaque_by_registration(address, size, opaque, out);
	ret = cuda_identify(address, &memory);
	if (ret)
		return ret;
	if (memory.kind == CUDA_MANAGED)
		return log_errno(EOPNOTSUPP,
				 "%zu bytes at %#zx are CUDA managed memory: it moves, so "
				 "nothing can hold it in place",
				 size, (size_t)address);
	if (opaque_cuda_takes(&memory, address))
		return opaque_cuda_export(want->uuid, &memory, address, size, out);
	return opaque_by_pages(want, address, size, opaque, out);
}

static void opaque_put_hold(struct opaque_kept *opaque)
{
	if (opaque->hold.of)
		opaque_cache_put(&opaque->hold);
}

/*
 * The CUDA memory of this process that a dma-buf was made of.  A descriptor keeps its memory: if the
 * address meant the same memory before and after the descriptor was made, the descriptor is of the
 * dma-buf's memory.  -ENOENT, not logged: the process did not make the dma-buf, or of host memory.
 */
static int opaque_by_origin(const struct opaque_want *want, const struct import_region *region,
			    struct opaque_kept *opaque, struct import_opaque *out)
{
	uintptr_t address;
	int ret = origin_find(&region->id, &address);

	if (!ret)
		ret = opaque_by_address(want, address, region->size, opaque, out);
	if (ret)
		return ret;
	ret = origin_find(&region->id, &address);
	if (!ret)
		return 0;
	if (out->fd >= 0)
		close(out->fd);
	opaque_put_hold(opaque);
	return ret == -ENOENT ? -ENODEV : ret;
}

/*
 * A dma-buf of unknown memory: as a dma-buf, or by the CPU's mapping if the mapping can
 * be pinned.  Few mappings can: udmabuf, dma-heaps and V4L2 map pages as VM_PFNMAP or VM_IO, which
 * get_user_pages() refuses.  i915 maps shared memory.  The reason for the user is RM's.
 */
static int opaque_of_foreign(const struct opaque_want *want, const struct import_region *region,
			     struct opaque_kept *opaque, struct import_opaque *out)
{
	int fd, ret = rm_import_dmabuf(want->uuid, region->fd, region->size, &fd);

	if (!ret)
		*out = (struct import_opaque){
			.fd = fd,
			.size = region->size,
			.exporter = OPAQUE_BY_RM,
		};
	if (ret != -EOPNOTSUPP || !region->addr ||
	    !pinnable_is(region->addr, region->size, PINNABLE_MEMORY))
		return ret;
	return opaque_by_address(want, address_of(region->addr), region->size, opaque, out);
}

/* The origin of a dma-buf comes first, since its address stays. */
static int opaque_of_region(const struct opaque_want *want, const struct import_region *region,
			    struct opaque_kept *opaque, struct import_opaque *out)
{
	int ret;

	if (region->fd < 0)
		return opaque_by_address(want, address_of(region->addr), region->size, opaque, out);
	ret = opaque_by_origin(want, region, opaque, out);
	return ret == -ENOENT ? opaque_of_foreign(want, region, opaque, out) : ret;
}

static void opaque_put(struct opaque *opaque)
{
	THREAD_NO_CANCEL();

	opaque_put_hold((struct opaque_kept *)opaque);
	free(opaque);
}

int import_opaque(const struct import_region *region, const unsigned char uuid[IMPORT_UUID_SIZE],
		  struct opaque **opaque, struct import_opaque *out)
{
	struct opaque_want want = {
		.uuid = uuid,
		.may_keep = region->fd < 0 && region->access & IMPORT_WRITE && !region->is_sample,
	};
	struct opaque_kept *o = calloc(1, sizeof(*o));
	struct shortage_retry retry = { 0 };
	struct import_opaque made = { 0 };
	int ret;

	if (!o)
		return log_errno(ENOMEM, "no memory for an opaque descriptor");
	log_hold();
	do {
		ret = opaque_of_region(&want, region, o, &made);
		want.may_keep = false; /* asked once for an import */
	} while (ret && shortage_retry(&retry, ret));
	log_resume(ret);
	if (ret) {
		free(o);
		return ret;
	}
	*out = made;
	o->opaque.put = opaque_put;
	*opaque = &o->opaque;
	return 0;
}

/* Whether an import has fewer pages than the registration.  CUDA exports whole allocations. */
static bool opaque_is_part(const struct opaque_kept *opaque, const struct import_opaque *out)
{
	return out->exporter == OPAQUE_BY_RM &&
	       opaque_pages_of(opaque->address, opaque->size).size < out->size;
}

static int opaque_open_own_pages(struct opaque_kept *opaque, const unsigned char *uuid,
				 struct import_opaque *out)
{
	struct shortage_retry retry = { 0 };
	int ret;

	do
		ret = opaque_by_own_pages(uuid, opaque->address, opaque->size, out);
	while (ret && shortage_retry(&retry, ret));
	if (!ret)
		opaque_cache_put(&opaque->hold);
	return ret;
}

int import_opaque_open_part(struct opaque *opaque, const unsigned char uuid[IMPORT_UUID_SIZE],
			    struct import_opaque *out)
{
	struct opaque_kept *kept = (struct opaque_kept *)opaque;

	if (!opaque_is_part(kept, out))
		return -EOPNOTSUPP;
	opaque_cache_refuse(&kept->hold);
	return opaque_open_own_pages(kept, uuid, out);
}

static int opaque_open_whole(struct opaque_kept *opaque, const unsigned char *uuid, bool may_keep,
			     struct import_opaque *out)
{
	struct shortage_retry retry = { 0 };
	int fd, ret;

	do
		ret = opaque_cache_open(&opaque->hold, uuid, &fd);
	while (ret && shortage_retry(&retry, ret));
	if (ret)
		return ret;
	out->fd = fd;
	if (!may_keep)
		out->kept = 0;
	return 0;
}

/*
 * A registration as a whole may have pages that no device pins, or more pages than the device can
 * pin.  An import works at least where it works without the registration.
 */
int import_opaque_open(struct opaque *opaque, const unsigned char uuid[IMPORT_UUID_SIZE],
		       bool may_keep, struct import_opaque *out)
{
	struct opaque_kept *kept = (struct opaque_kept *)opaque;
	bool is_part = opaque_is_part(kept, out);
	int ret;

	if (is_part && (!may_keep || !opaque_cache_is_due(&kept->hold)))
		return opaque_open_own_pages(kept, uuid, out);
	log_hold();
	ret = opaque_open_whole(kept, uuid, may_keep, out);
	log_resume(ret && !is_part);
	return ret && is_part ? import_opaque_open_part(opaque, uuid, out) : ret;
}

static _Atomic(bool (*)(uint32_t)) opaque_kept_give_up;

static bool opaque_give_up(uint32_t count)
{
	return !opaque_process_exits() && atomic_load(&opaque_kept_give_up)(count);
}

static struct shortage_giver opaque_giver = { .give_up = opaque_give_up };

void import_on_shortage(bool (*give_up)(uint32_t count))
{
	atomic_store(&opaque_kept_give_up, give_up);
	shortage_add_giver(&opaque_giver);
}

unsigned int import_share_most(enum import_share share)
{
	switch (share) {
	case IMPORT_SHARE_UNASKED:
		return opaque_watched_most_idle();
	case IMPORT_SHARE_ALLOCATED:
		return descriptor_share(OPAQUE_ALLOCATED_SHARE, OPAQUE_ALLOCATED_MOST);
	default:
		return descriptor_share(OPAQUE_REGISTERED_SHARE, UINT32_MAX);
	}
}

void opaque_stats(struct cache_stats *sum)
{
	*sum = (struct cache_stats){ 0 };
	opaque_cache_add_stats(&opaque_cuda_cache, sum);
	opaque_watched_add_stats(sum);
	opaque_registered_add_stats(sum);
}
