/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A *block* has 2 MiB or more (CUDA's VMM gives 2 MiB at least), and begins at a multiple of 2 MiB.
 * A block is a *slab* of 2 MiB in equal *parts*, or a single allocation of any size.  Each block of
 * CUDA's is registered with the device's cache (opaque_cuda.h), so an import of a part is a hit.
 *
 * Other blocks are pages.  The kernel module gdmabuf exports any pages, udmabuf only a memfd's: where
 * udmabuf alone can export, the pages are a memfd's, whose descriptor the block keeps.  A memfd is no
 * better otherwise: its pages are small, and are shared with a child.
 */
#include "import/alloc/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "import/export/export.h"
#include "import/export/gdmabuf.h"
#include "import/kinds/udmabuf.h"
#include "import/nvidia/cuda/cuda.h"
#include "import/opaque_fd/opaque_cuda.h"
#include "util/lock.h"
#include "util/log.h"
#include "util/shortage.h"

#define BLOCK ((size_t)2 << 20)
#define SMALLEST ((size_t)512) /* CL_DEVICE_MEM_BASE_ADDR_ALIGN of NVIDIA's devices */
#define PARTS (BLOCK / SMALLEST)
#define BUCKETS 256

struct block {
	struct block *next; /* in the bucket */
	uintptr_t base;
	size_t size, part, parts; /* one part: a single allocation */
	enum memory_kind kind;
	bool cuda;
	bool inherited;			      /* the parent's memory, which a child cannot use */
	unsigned char uuid[IMPORT_UUID_SIZE]; /* if cuda */
	int memfd;			      /* if not cuda; -1: anonymous pages */
	struct descriptor_id file;	      /* of @memfd */
	struct cuda_memory memory;
	struct opaque_hold hold; /* if cuda */
	size_t used;		 /* parts */
	unsigned char is_used[PARTS];
};

static void memory_disinherit(struct lock *lock) TSA(no_thread_safety_analysis);

LOCK_DEFINE_IN_CHILD(memory_lock, LOCK_LAST, memory_disinherit); /* all below */
static struct block *memory_buckets[BUCKETS] GUARDED_BY(memory_lock);
static size_t memory_total GUARDED_BY(memory_lock);

static struct block **memory_bucket_of(uintptr_t base) REQUIRES(memory_lock)
{
	return &memory_buckets[base / BLOCK % BUCKETS];
}

/* CUDA does not work in a child, and CUDA's memory is not mapped in a child. */
static void memory_disinherit(struct lock *lock)
{
	(void)lock;
	for (size_t i = 0; i < BUCKETS; i++)
		for (struct block *b = memory_buckets[i]; b; b = b->next) {
			if (!b->cuda || b->inherited)
				continue;
			b->inherited = true;
			memory_total -= b->size;
		}
}

/* Maps pages from a multiple of BLOCK on. */
static int memory_map_aligned(size_t size, uintptr_t *base)
{
	char *all = mmap(NULL, size + BLOCK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			 -1, 0);
	size_t before;

	if (all == MAP_FAILED)
		return log_errno(ENOMEM, "%zu bytes of memory: %m", size);
	before = -(uintptr_t)all % BLOCK;
	*base = (uintptr_t)all + before;
	if (before)
		munmap(all, before);
	munmap(all + before + size, BLOCK - before);
	return 0;
}

static bool memory_wants_memfd(void)
{
	return !gdmabuf_is_available() && udmabuf_is_available();
}

/* A memfd as udmabuf takes, which nobody can change to one that udmabuf does not take; or -1. */
static int memory_memfd_create(size_t size)
{
	int fd = memfd_create("climport", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd >= 0 && !ftruncate(fd, (off_t)size) &&
	    !fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		return fd;
	log_debug("no memfd of %zu bytes: %m", size);
	if (fd >= 0)
		close(fd);
	return -1;
}

/* Maps the memfd over the block's pages.  False: the pages may be unmapped. */
static bool memory_map_memfd(struct block *b, int fd)
{
	void *base = (void *)b->base;

	if (descriptor_identify(fd, &b->file) ||
	    mmap(base, b->size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) != base)
		return false;
	b->memfd = fd;
	return true;
}

/* Takes @fd over.  Without a memfd, the memory is as good as where nobody exports. */
static int memory_block_map_file(struct block *b, int fd)
{
	int ret = memory_map_aligned(b->size, &b->base);

	if (!ret && memory_map_memfd(b, fd))
		return 0;
	log_debug("a memfd of %zu bytes cannot be mapped: %m", b->size);
	close(fd);
	if (!ret)
		munmap((void *)b->base, b->size);
	return memory_map_aligned(b->size, &b->base);
}

static int memory_block_map_pages(struct block *b, size_t size)
{
	int fd = memory_wants_memfd() ? memory_memfd_create(size) : -1;

	b->size = size;
	return fd < 0 ? memory_map_aligned(size, &b->base) : memory_block_map_file(b, fd);
}

static int memory_block_map(struct block *b, size_t size)
{
	int ret;

	if (!b->cuda)
		return memory_block_map_pages(b, size);
	ret = cuda_alloc(b->kind == MEMORY_HOST ? CUDA_HOST : CUDA_DEVICE, b->uuid, size, BLOCK,
			 &b->memory);
	b->base = b->memory.addr;
	b->size = b->memory.size;
	return ret;
}

static void memory_block_unmap(struct block *b)
{
	if (b->cuda)
		cuda_free(&b->memory);
	else
		munmap((void *)b->base, b->size);
	if (b->memfd >= 0)
		descriptor_close(b->memfd, &b->file);
}

/* Host memory outside of CUDA is registered at each import. */
static int memory_block_register(struct block *b)
{
	return b->cuda ? opaque_hold(b->uuid, b->base, b->size, &b->hold) : 0;
}

static void memory_block_unregister(struct block *b)
{
	export_invalidate(b->base, b->size);
	if (b->cuda)
		opaque_release(&b->hold);
}

/* @part 0: a single allocation. */
static int memory_block_create(enum memory_kind kind, const unsigned char *uuid, size_t size,
			       size_t part, struct block **out)
{
	struct block *b = calloc(1, sizeof(*b));
	int ret;

	if (!b)
		return log_errno(ENOMEM, "no memory for a block");
	b->kind = kind;
	b->cuda = uuid;
	b->memfd = -1;
	if (uuid)
		memcpy(b->uuid, uuid, sizeof(b->uuid));
	ret = memory_block_map(b, size);
	if (ret)
		goto err_free;
	ret = memory_block_register(b);
	if (ret)
		goto err_unmap;
	b->part = part ? part : b->size;
	b->parts = part ? BLOCK / part : 1;
	*out = b;
	return 0;

err_unmap:
	memory_block_unmap(b);
err_free:
	free(b);
	return ret;
}

static void memory_block_destroy(struct block *b)
{
	if (!b->inherited) {
		memory_block_unregister(b);
		memory_block_unmap(b);
	}
	free(b);
}

static void memory_block_add(struct block *b) REQUIRES(memory_lock)
{
	b->next = *memory_bucket_of(b->base);
	*memory_bucket_of(b->base) = b;
	memory_total += b->size;
}

static void memory_block_remove(struct block *b) REQUIRES(memory_lock)
{
	struct block **link = memory_bucket_of(b->base);

	while (*link != b)
		link = &(*link)->next;
	*link = b->next;
	if (!b->inherited)
		memory_total -= b->size;
}

static bool memory_block_suits(const struct block *b, enum memory_kind kind,
			       const unsigned char *uuid, size_t part)
{
	return b->part == part && b->used < b->parts && b->kind == kind && !b->inherited &&
	       b->cuda == !!uuid && (!uuid || !memcmp(b->uuid, uuid, sizeof(b->uuid)));
}

static struct block *memory_slab_find(enum memory_kind kind, const unsigned char *uuid, size_t part)
	REQUIRES(memory_lock)
{
	for (size_t i = 0; i < BUCKETS; i++)
		for (struct block *b = memory_buckets[i]; b; b = b->next)
			if (memory_block_suits(b, kind, uuid, part))
				return b;
	return NULL;
}

static uintptr_t memory_take_part(struct block *b)
{
	size_t i = 0;

	while (b->is_used[i])
		i++;
	b->is_used[i] = 1;
	b->used++;
	return b->base + i * b->part;
}

static size_t memory_part_size(size_t size)
{
	size_t power = SMALLEST;

	while (power < size)
		power *= 2;
	return power;
}

/* The size of a part for small allocations; 0: a single allocation. */
static size_t memory_part_for(size_t size, size_t alignment)
{
	size_t larger = size > alignment ? size : alignment;

	return larger <= BLOCK / 2 ? memory_part_size(larger) : 0;
}

/* A part of an existing slab. */
static bool memory_take_from_slab(enum memory_kind kind, const unsigned char *uuid, size_t part,
				  uintptr_t *address)
{
	struct block *b;

	lock_acquire(&memory_lock);
	b = memory_slab_find(kind, uuid, part);
	if (b)
		*address = memory_take_part(b);
	lock_release(&memory_lock);
	return b;
}

int memory_alloc(enum memory_kind kind, size_t size, size_t alignment, const unsigned char *uuid,
		 uintptr_t *address)
{
	size_t part = memory_part_for(size, alignment), whole = (size + BLOCK - 1) / BLOCK * BLOCK;
	struct shortage_retry retry = { 0 };
	struct block *b = NULL;
	int ret;

	if (whole < size)
		return log_errno(ENOMEM, "%#zx bytes exceed the address space", size);
	if (part && memory_take_from_slab(kind, uuid, part, address))
		return 0;
	do
		ret = memory_block_create(kind, uuid, part ? BLOCK : whole, part, &b);
	while (shortage_retry(&retry, ret));
	if (ret)
		return ret;
	lock_acquire(&memory_lock);
	memory_block_add(b);
	*address = memory_take_part(b);
	lock_release(&memory_lock);
	return 0;
}

static struct block *memory_block_of(uintptr_t address) REQUIRES(memory_lock)
{
	uintptr_t base = address / BLOCK * BLOCK;
	struct block *b = *memory_bucket_of(base);

	while (b && b->base != base)
		b = b->next;
	return b;
}

/* @unused: the block, if its last part was freed. */
static bool memory_part_free(uintptr_t address, struct block **unused) REQUIRES(memory_lock)
{
	struct block *b = memory_block_of(address);
	size_t i = b ? (address - b->base) / b->part : 0;

	if (!b || b->base + i * b->part != address || !b->is_used[i])
		return false;
	b->is_used[i] = 0;
	if (--b->used)
		return true;
	memory_block_remove(b);
	*unused = b;
	return true;
}

bool memory_free(uintptr_t address)
{
	struct block *unused = NULL;
	bool live;

	lock_acquire(&memory_lock);
	live = memory_part_free(address, &unused);
	lock_release(&memory_lock);
	if (unused)
		memory_block_destroy(unused);
	return live;
}

bool memory_is_possible(enum memory_kind kind, const unsigned char *uuid)
{
	int ret;

	log_hold();
	ret = cuda_check_alloc(kind == MEMORY_HOST ? CUDA_HOST : CUDA_DEVICE, uuid);
	log_resume(false);
	return !ret;
}

size_t memory_bytes(void)
{
	size_t bytes;

	lock_acquire(&memory_lock);
	bytes = memory_total;
	lock_release(&memory_lock);
	return bytes;
}
