/* SPDX-License-Identifier: Apache-2.0 */
#include "device.h"
#include "driver.h"
#include "fake_cuda.h"
#include "opaque.h"
#include "range.h"
#include "vmm.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static int handles;

bool handle_is_host(const struct handle *h)
{
	return h->properties.location.type == CUDA_LOCATION_HOST_NUMA;
}

static bool properties_are_valid(const struct cuda_properties *p)
{
	if (p->type != CUDA_ALLOCATION_PINNED)
		return false;
	if (p->location.type == CUDA_LOCATION_DEVICE)
		return device_exists(p->location.id);
	return p->location.type == CUDA_LOCATION_HOST_NUMA && p->location.id >= 0;
}

bool vmm_is_granular(uint64_t n)
{
	return n && n % FAKE_CUDA_GRANULARITY == 0;
}

/* The free memory, in bytes: the environment says so to child processes, too. */
static size_t physical_free(void)
{
	const char *bytes = getenv("FAKE_CUDA_FREE");

	return bytes ? strtoull(bytes, NULL, 0) : SIZE_MAX;
}

static int handle_map_memory(struct handle *h)
{
	h->fd = driver_memfd("physical");
	if (h->fd < 0)
		return CUDA_OPERATING_SYSTEM;
	h->memory = ftruncate(h->fd, (off_t)h->size)
			    ? MAP_FAILED
			    : driver_map(NULL, h->size, PROT_READ | PROT_WRITE, MAP_SHARED, h->fd);
	if (h->memory != MAP_FAILED)
		return CUDA_SUCCESS;
	close(h->fd);
	return CUDA_OUT_OF_MEMORY;
}

int handle_create(struct handle **out, size_t size, const struct cuda_properties *p)
{
	struct handle *h;
	int result;

	if (!properties_are_valid(p) || !vmm_is_granular(size))
		return CUDA_INVALID_VALUE;
	if ((uint64_t)size >> 40 || size > physical_free())
		return CUDA_OUT_OF_MEMORY;
	h = driver_malloc(sizeof(*h));
	if (!h)
		return CUDA_OUT_OF_MEMORY;
	*h = (struct handle){ .size = size, .properties = *p, .refs = 1 };
	result = handle_map_memory(h);
	if (result) {
		free(h);
		return result;
	}
	handles++;
	*out = h;
	return CUDA_SUCCESS;
}

void handle_put(struct handle *h)
{
	if (h->refs || h->maps)
		return;
	munmap(h->memory, h->size);
	close(h->fd);
	free(h);
}

int handle_release(struct handle *h)
{
	if (!h || !h->refs)
		return CUDA_INVALID_VALUE;
	handles--;
	h->refs--;
	handle_put(h);
	return CUDA_SUCCESS;
}

int handle_count(void)
{
	return handles;
}

API int cuMemGetAllocationGranularity(size_t *out, const struct cuda_properties *p, int option);
API int cuMemGetAllocationGranularity(size_t *out, const struct cuda_properties *p, int option)
{
	int result = driver_enter("cuMemGetAllocationGranularity");

	if (result)
		return result;
	*out = FAKE_CUDA_GRANULARITY;
	return driver_leave(properties_are_valid(p) && option >= 0 ? CUDA_SUCCESS
								   : CUDA_INVALID_VALUE);
}

API int cuMemCreate(struct handle **h, size_t size, const struct cuda_properties *p,
		    unsigned long long flags);
API int cuMemCreate(struct handle **h, size_t size, const struct cuda_properties *p,
		    unsigned long long flags)
{
	int result = driver_enter("cuMemCreate");

	return result ? result
		      : driver_leave(flags ? CUDA_INVALID_VALUE : handle_create(h, size, p));
}

API int cuMemRelease(struct handle *h);
API int cuMemRelease(struct handle *h)
{
	int result = driver_enter("cuMemRelease");

	return result ? result : driver_leave(handle_release(h));
}

API int cuMemRetainAllocationHandle(struct handle **h, void *addr);
API int cuMemRetainAllocationHandle(struct handle **h, void *addr)
{
	struct range *r;
	int result = driver_enter("cuMemRetainAllocationHandle");

	if (result)
		return result;
	r = range_find((uintptr_t)addr);
	if (!r || !r->handle)
		return driver_leave(CUDA_INVALID_VALUE);
	r->handle->refs++;
	handles++;
	*h = r->handle;
	return driver_leave(CUDA_SUCCESS);
}

API int cuMemGetAllocationPropertiesFromHandle(struct cuda_properties *p, struct handle *h);
API int cuMemGetAllocationPropertiesFromHandle(struct cuda_properties *p, struct handle *h)
{
	int result = driver_enter("cuMemGetAllocationPropertiesFromHandle");

	if (result)
		return result;
	*p = h->properties;
	return driver_leave(CUDA_SUCCESS);
}

API int cuMemExportToShareableHandle(int *fd, struct handle *h, int type, unsigned long long flags);
API int cuMemExportToShareableHandle(int *fd, struct handle *h, int type, unsigned long long flags)
{
	struct fake_opaque opaque = { .magic = FAKE_OPAQUE_MAGIC };
	int result = driver_enter("cuMemExportToShareableHandle");

	if (result)
		return result;
	if (type != CUDA_HANDLE_POSIX_FD || flags || !(h->properties.handle_types & type))
		return driver_leave(CUDA_INVALID_VALUE);
	opaque.memory = h->memory;
	opaque.size = h->size;
	opaque.on_device = !handle_is_host(h);
	opaque.any_device = handle_is_host(h);
	fake_cuda_uuid(handle_is_host(h) ? 0 : h->properties.location.id, opaque.uuid);
	*fd = driver_may_take() ? fake_opaque_create(&opaque) : -1;
	return driver_leave(*fd < 0 ? CUDA_OPERATING_SYSTEM : CUDA_SUCCESS);
}
