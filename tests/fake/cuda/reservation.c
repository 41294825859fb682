/* SPDX-License-Identifier: Apache-2.0 */
#include "device.h"
#include "driver.h"
#include "fake_cuda.h"
#include "range.h"
#include "vmm.h"

#include <stdlib.h>
#include <sys/mman.h>

static struct reservation *reservations;

struct reservation *reservation_find(uintptr_t addr)
{
	struct reservation *r = reservations;

	while (r && addr - r->addr >= r->size)
		r = r->next;
	return r;
}

/* Reserves @size + @align bytes, and unmaps the pages before and after an aligned address. */
static int reservation_create(uintptr_t *addr, size_t size, size_t align)
{
	struct reservation *v;
	uintptr_t p;

	align = align > FAKE_CUDA_GRANULARITY ? align : FAKE_CUDA_GRANULARITY;
	if (!vmm_is_granular(size) || (align & (align - 1)))
		return CUDA_INVALID_VALUE;
	p = pages_reserve(0, size + align, PROT_NONE);
	if (!p)
		return CUDA_OUT_OF_MEMORY;
	*addr = (p + align - 1) & ~(align - 1);
	munmap((void *)p, *addr - p);
	munmap((void *)(*addr + size), p + align - *addr);
	v = driver_malloc(sizeof(*v));
	if (!v) {
		munmap((void *)*addr, size);
		return CUDA_OUT_OF_MEMORY;
	}
	*v = (struct reservation){ reservations, *addr, size };
	reservations = v;
	return CUDA_SUCCESS;
}

static int reservation_destroy(uintptr_t addr, size_t size)
{
	struct reservation **at = &reservations, *v;

	while (*at && (*at)->addr != addr)
		at = &(*at)->next;
	v = *at;
	if (!v || v->size != size || range_overlaps(addr, size))
		return CUDA_INVALID_VALUE;
	*at = v->next;
	free(v);
	munmap((void *)addr, size);
	return CUDA_SUCCESS;
}

int reservation_count(void)
{
	int n = 0;

	for (const struct reservation *v = reservations; v; v = v->next)
		n++;
	return n;
}

static int handle_map(uintptr_t addr, size_t size, size_t offset, struct handle *h)
{
	const struct reservation *v = reservation_find(addr);
	struct range r = {
		.kind = KIND_VMM,
		.addr = addr,
		.size = size,
		.block = addr,
		.block_size = size,
		.handle = h,
	};

	if (!v || addr + size > v->addr + v->size || offset || !vmm_is_granular(size) ||
	    size > h->size || range_overlaps(addr, size))
		return CUDA_INVALID_VALUE;
	r.device = handle_is_host(h) ? -1 : h->properties.location.id;
	r.memory = h->memory;
	if (!range_add(&r))
		return CUDA_OUT_OF_MEMORY;
	h->maps++;
	return CUDA_SUCCESS;
}

static int handle_unmap(uintptr_t addr, size_t size)
{
	struct range *r = range_find(addr);

	if (!r || r->kind != KIND_VMM || r->addr != addr || r->size != size)
		return CUDA_INVALID_VALUE;
	if (mmap((void *)addr, size, PROT_NONE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED)
		return CUDA_OUT_OF_MEMORY;
	r->handle->maps--;
	handle_put(r->handle);
	range_remove(r);
	return CUDA_SUCCESS;
}

/* The CPU can access host memory at the address of the mapping. */
static int range_set_access(uintptr_t addr, size_t size, const struct cuda_access *access, size_t n)
{
	struct range *r = range_find(addr);

	if (!r || r->kind != KIND_VMM || r->addr != addr || r->size != size)
		return CUDA_INVALID_VALUE;
	for (size_t i = 0; i < n; i++) {
		bool host = access[i].location.type == CUDA_LOCATION_HOST_NUMA;

		if (host && !handle_is_host(r->handle))
			return CUDA_INVALID_VALUE;
		if (!host && !device_exists(access[i].location.id))
			return CUDA_INVALID_DEVICE;
		if (host && driver_map((void *)addr, size, PROT_READ | PROT_WRITE,
				       MAP_SHARED | MAP_FIXED, r->handle->fd) == MAP_FAILED)
			return CUDA_OUT_OF_MEMORY;
	}
	r->access = (int)n;
	return CUDA_SUCCESS;
}

API int cuMemAddressReserve(uintptr_t *addr, size_t size, size_t align, uintptr_t hint,
			    unsigned long long flags);
API int cuMemAddressReserve(uintptr_t *addr, size_t size, size_t align, uintptr_t hint,
			    unsigned long long flags)
{
	int result = driver_enter("cuMemAddressReserve");

	if (result)
		return result;
	return driver_leave(flags || hint ? CUDA_INVALID_VALUE
					  : reservation_create(addr, size, align));
}

API int cuMemAddressFree(uintptr_t addr, size_t size);
API int cuMemAddressFree(uintptr_t addr, size_t size)
{
	int result = driver_enter("cuMemAddressFree");

	return result ? result : driver_leave(reservation_destroy(addr, size));
}

API int cuMemMap(uintptr_t addr, size_t size, size_t offset, struct handle *h,
		 unsigned long long flags);
API int cuMemMap(uintptr_t addr, size_t size, size_t offset, struct handle *h,
		 unsigned long long flags)
{
	int result = driver_enter("cuMemMap");

	return result ? result
		      : driver_leave(flags ? CUDA_INVALID_VALUE
					   : handle_map(addr, size, offset, h));
}

API int cuMemUnmap(uintptr_t addr, size_t size);
API int cuMemUnmap(uintptr_t addr, size_t size)
{
	int result = driver_enter("cuMemUnmap");

	return result ? result : driver_leave(handle_unmap(addr, size));
}

API int cuMemSetAccess(uintptr_t addr, size_t size, const struct cuda_access *access, size_t n);
API int cuMemSetAccess(uintptr_t addr, size_t size, const struct cuda_access *access, size_t n)
{
	int result = driver_enter("cuMemSetAccess");

	return result ? result : driver_leave(range_set_access(addr, size, access, n));
}

static void segment_add(uintptr_t addr, const struct fake_cuda_segment *s)
{
	struct cuda_properties p = {
		.type = CUDA_ALLOCATION_PINNED,
		.handle_types = s->handle_types,
		.location = { CUDA_LOCATION_DEVICE, s->device },
	};
	struct cuda_access access = { p.location, CUDA_ACCESS_READ_WRITE };
	struct handle *h;

	if (s->device == FAKE_CUDA_HOST_NUMA)
		access.location = p.location = (struct cuda_location){ CUDA_LOCATION_HOST_NUMA, 0 };
	if (handle_create(&h, s->size, &p) || handle_map(addr, s->size, 0, h) ||
	    range_set_access(addr, s->size, &access, 1) || handle_release(h))
		abort();
}

API uintptr_t fake_cuda_vmm(const struct fake_cuda_segment *segments, size_t n)
{
	size_t size = FAKE_CUDA_GRANULARITY;
	uintptr_t base, at;

	for (size_t i = 0; i < n; i++)
		size += segments[i].size;
	driver_lock();
	if (reservation_create(&base, size, 0))
		abort();
	at = base;
	for (size_t i = 0; i < n; at += segments[i++].size)
		if (segments[i].device != FAKE_CUDA_HOLE)
			segment_add(at, &segments[i]);
	driver_unlock();
	return base;
}

API void fake_cuda_vmm_replace(uintptr_t addr)
{
	struct fake_cuda_segment s;
	const struct range *r;

	driver_lock();
	r = range_find(addr);
	s = (struct fake_cuda_segment){ r->device, r->size, r->handle->properties.handle_types };
	if (handle_unmap(r->addr, r->size))
		abort();
	segment_add(addr, &s);
	driver_unlock();
}

API void fake_cuda_vmm_free(uintptr_t addr)
{
	struct reservation *v;
	struct range *r, *next;

	driver_lock();
	v = reservation_find(addr);
	for (r = range_first(); r; r = next) {
		next = r->next;
		if (r->addr - v->addr < v->size)
			handle_unmap(r->addr, r->size);
	}
	reservation_destroy(v->addr, v->size);
	driver_unlock();
}
