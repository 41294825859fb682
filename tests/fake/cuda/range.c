/* SPDX-License-Identifier: Apache-2.0 */
#include "range.h"

#include "device.h"
#include "driver.h"
#include "fake_cuda.h"
#include "vmm.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/*
 * The addresses of device memory.  Freed ones stay reserved, as those of up to 16 MiB do with CUDA
 * (580.159.04; it unmaps 32 MiB), so that no thread's stack takes an address that a test is about to
 * use again.  64 GiB: the thread sanitizer has 1.5 TiB for all mappings.  256 MiB of 32 bits.
 */
#define ARENA_SIZE ((size_t)1 << (sizeof(size_t) > 4 ? 36 : 28))

static uintptr_t arena, arena_next;
static struct range *ranges;
static unsigned long long last_id;

size_t pages_round_up(size_t size)
{
	size_t mask = (size_t)sysconf(_SC_PAGESIZE) - 1;

	return (size + mask) & ~mask;
}

uintptr_t pages_reserve(uintptr_t addr, size_t size, int prot)
{
	void *p = driver_map(
		(void *)addr, size, prot,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (addr ? MAP_FIXED_NOREPLACE : 0), -1);

	return p == MAP_FAILED ? 0 : (uintptr_t)p;
}

struct range *range_first(void)
{
	return ranges;
}

struct range *range_find(uintptr_t addr)
{
	struct range *r = ranges;

	while (r && addr - r->addr >= r->size)
		r = r->next;
	return r;
}

bool range_overlaps(uintptr_t addr, size_t size)
{
	for (const struct range *r = ranges; r; r = r->next)
		if (r->addr < addr + size && addr < r->addr + r->size)
			return true;
	return false;
}

static bool arena_has(uintptr_t addr)
{
	return arena && addr - arena < ARENA_SIZE;
}

uintptr_t device_pages_reserve(uintptr_t addr, size_t size)
{
	if (!arena)
		arena_next = arena = pages_reserve(0, ARENA_SIZE, PROT_NONE);
	if (addr && !arena_has(addr))
		return pages_reserve(addr, size, PROT_NONE);
	if (addr)
		return addr + size <= arena_next && !range_overlaps(addr, size) ? addr : 0;
	if (!arena || size > arena + ARENA_SIZE - arena_next)
		return 0;
	addr = arena_next;
	arena_next += size;
	return addr;
}

struct range *range_add(const struct range *with)
{
	struct range *r = driver_malloc(sizeof(*r));

	if (!r)
		return NULL;
	*r = *with;
	r->id = ++last_id;
	r->next = ranges;
	ranges = r;
	return r;
}

void range_remove(struct range *r)
{
	struct range **at = &ranges;

	while (*at != r)
		at = &(*at)->next;
	*at = r->next;
	free(r);
}

void range_unmap(const struct range *r)
{
	if (r->block && r->kind != KIND_REGISTERED && !arena_has(r->block))
		munmap((void *)r->block, r->block_size);
	if (r->memory && r->kind == KIND_DEVICE)
		munmap(r->memory, r->block_size);
	if (r->shared)
		close(r->shared);
}

static bool range_map_and_add(struct range *r, int prot, uintptr_t at)
{
	r->block_size = pages_round_up(r->size);
	at &= ~(uintptr_t)(sysconf(_SC_PAGESIZE) - 1);
	r->block = prot == PROT_NONE ? device_pages_reserve(at, r->block_size)
				     : pages_reserve(at, r->block_size, prot);
	r->addr = r->block + (prot == PROT_NONE && r->size < r->block_size - 512 ? 512 : 0);
	r->memory = prot == PROT_NONE
			    ? (char *)pages_reserve(0, r->block_size, PROT_READ | PROT_WRITE)
			    : (char *)r->block;
	if (r->block && r->memory && range_add(r))
		return true;
	range_unmap(r);
	return false;
}

static uintptr_t range_map(struct range *r, int device, int prot, uintptr_t at)
{
	bool is_mapped;

	driver_lock();
	r->device = device;
	r->context = device_get_primary(device);
	is_mapped = range_map_and_add(r, prot, at);
	driver_unlock();
	return is_mapped ? r->addr : 0;
}

API uintptr_t fake_cuda_alloc_at(int device, size_t size, uintptr_t addr)
{
	struct range r = { .kind = KIND_DEVICE, .size = size };

	return range_map(&r, device, PROT_NONE, addr);
}

API uintptr_t fake_cuda_alloc(int device, size_t size)
{
	return fake_cuda_alloc_at(device, size, 0);
}

API uintptr_t fake_cuda_managed(int device, size_t size)
{
	struct range r = { .kind = KIND_MANAGED, .size = size };

	return range_map(&r, device, PROT_READ | PROT_WRITE, 0);
}

API uintptr_t fake_cuda_host(int device, size_t size)
{
	struct range r = { .kind = KIND_HOST, .size = size };

	return range_map(&r, device, PROT_READ | PROT_WRITE, 0);
}

API bool fake_cuda_host_register(int device, void *memory, size_t size)
{
	struct range r = {
		.kind = KIND_REGISTERED,
		.addr = (uintptr_t)memory,
		.size = size,
		.device = device,
		.context = device_get_primary(device),
		.memory = memory,
	};
	bool is_added;

	driver_lock();
	r.block = r.addr;
	is_added = range_add(&r);
	driver_unlock();
	return is_added;
}

API void fake_cuda_free(uintptr_t addr)
{
	struct range *r;

	driver_lock();
	r = range_find(addr);
	range_unmap(r);
	range_remove(r);
	driver_unlock();
}

API void *fake_cuda_memory(uintptr_t addr)
{
	struct range *r;
	void *memory;

	driver_lock();
	r = range_find(addr);
	memory = r ? r->memory + (addr - r->block) : NULL;
	driver_unlock();
	return memory;
}

API bool fake_cuda_syncs(uintptr_t addr)
{
	const struct range *r = range_find(addr);

	return r && r->sync;
}

API int fake_cuda_access(uintptr_t addr)
{
	const struct range *r = range_find(addr);

	return r ? r->access : 0;
}

API int fake_cuda_node(uintptr_t addr)
{
	const struct range *r = range_find(addr);

	return r && r->handle ? r->handle->properties.location.id : -1;
}

API int fake_cuda_rdma(uintptr_t addr)
{
	const struct range *r = range_find(addr);

	return r && r->handle ? r->handle->properties.rdma_capable : 0;
}
