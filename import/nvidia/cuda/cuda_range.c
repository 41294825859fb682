/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which memory of CUDA's an address is in.
 *
 * An allocation (cuMemAlloc, cuMemHostAlloc) belongs to a context.  VMM memory (cuMemCreate) and
 * memory of a pool (cuMemAllocAsync) belong to no context: the pointer's range is the reservation
 * or the part of the pool, the mapping is the VMM segment or the chunk of the pool, and the memory
 * is the intersection of range and mapping (driver 580).
 */
#include "import/nvidia/cuda/cuda.h"
#include "import/nvidia/cuda/cuda_driver.h"
#include "import/nvidia/cuda/cuda_facts.h"
#include "util/log.h"

#include <errno.h>

/* The answer of cuPointerGetAttributes(): all zero for an address outside of CUDA's memory. */
struct cuda_pointer {
	uintptr_t addr;
	void *context; /* NULL: VMM and pools */
	int memory_type;
	int device;
	bool managed;
	uintptr_t start;
	size_t size;
	unsigned long long buffer_id;
	bool syncs; /* SYNC_MEMOPS */
};

static int cuda_pointer_get(const struct cuda_driver *cu, uintptr_t addr, struct cuda_pointer *p)
{
	int attributes[] = {
		CUDA_POINTER_CONTEXT,	     CUDA_POINTER_MEMORY_TYPE, CUDA_POINTER_IS_MANAGED,
		CUDA_POINTER_DEVICE_ORDINAL, CUDA_POINTER_RANGE_START, CUDA_POINTER_RANGE_SIZE,
		CUDA_POINTER_BUFFER_ID,	     CUDA_POINTER_SYNC_MEMOPS,
	};
	/* For a boolean, older drivers write four bytes and newer drivers one byte. */
	unsigned int managed = 0, syncs = 0;
	void *data[] = { &p->context, &p->memory_type, &managed,      &p->device,
			 &p->start,   &p->size,	       &p->buffer_id, &syncs };
	int result;

	*p = (struct cuda_pointer){ .addr = addr, .device = -1 };
	result = cu->pointer_attributes(sizeof(attributes) / sizeof(*attributes), attributes, data,
					addr);
	p->managed = managed;
	p->syncs = syncs;
	return result;
}

/* A driver before cuInit(), and a driver at the end of the process, have no memory. */
static bool cuda_result_means_none(int result)
{
	return result == CUDA_NOT_INITIALIZED || result == CUDA_DEINITIALIZED ||
	       result == CUDA_INVALID_CONTEXT || result == CUDA_INVALID_VALUE ||
	       result == CUDA_NOT_FOUND;
}

/*
 * The attributes call VMM memory of the host the device's: the handle alone tells.  For other memory
 * the question takes 1.6 us (driver 580).
 */
static bool cuda_ask_host_vmm(const struct cuda_driver *cu, const struct cuda_pointer *p)
{
	struct cuda_properties properties = { 0 };
	uint64_t handle;
	bool is_host;
	int result;

	if (cu->retain(&handle, (void *)p->addr))
		return false;
	result = cu->properties(&properties, handle);
	cu->release(handle);
	if (result)
		return false;
	is_host = properties.location.type >= CUDA_LOCATION_HOST &&
		  properties.location.type <= CUDA_LOCATION_HOST_NUMA_CURRENT;
	cuda_facts_add(p->buffer_id, p->addr, is_host ? CUDA_FACT_ON_HOST : CUDA_FACT_ON_DEVICE);
	return is_host;
}

static bool cuda_is_host_vmm(const struct cuda_driver *cu, const struct cuda_pointer *p)
{
	unsigned int facts = cuda_facts_get(p->buffer_id, p->addr);

	if (facts & (CUDA_FACT_ON_HOST | CUDA_FACT_ON_DEVICE))
		return facts & CUDA_FACT_ON_HOST;
	return cuda_ask_host_vmm(cu, p);
}

static enum cuda_kind cuda_pointer_kind(const struct cuda_driver *cu, const struct cuda_pointer *p)
{
	if (p->managed)
		return CUDA_MANAGED;
	if (p->memory_type == CUDA_TYPE_HOST)
		return CUDA_HOST;
	if (p->memory_type != CUDA_TYPE_DEVICE)
		return CUDA_NONE;
	return !p->context && cuda_is_host_vmm(cu, p) ? CUDA_HOST : CUDA_DEVICE;
}

static int cuda_mapping_get(const struct cuda_driver *cu, uintptr_t addr, uintptr_t *base,
			    size_t *size)
{
	int attributes[] = { CUDA_POINTER_MAPPING_BASE, CUDA_POINTER_MAPPING_SIZE };
	void *data[] = { base, size };

	return cu->pointer_attributes(2, attributes, data, addr);
}

static void cuda_range_intersect(struct cuda_range *range, uintptr_t base, size_t size)
{
	uintptr_t end = base + size, range_end = range->base + range->size;

	range->base = base > range->base ? base : range->base;
	range->size = (end < range_end ? end : range_end) - range->base;
}

static int cuda_range_narrow(const struct cuda_driver *cu, uintptr_t addr, struct cuda_range *range)
{
	uintptr_t base;
	size_t size;
	int result;

	if (range->context)
		return CUDA_SUCCESS;
	result = cuda_mapping_get(cu, addr, &base, &size);
	if (!result)
		cuda_range_intersect(range, base, size);
	else if (range->kind == CUDA_HOST && cuda_result_means_none(result))
		result = CUDA_SUCCESS;
	return result;
}

static int cuda_range_fill(const struct cuda_driver *cu, const struct cuda_pointer *p,
			   struct cuda_range *range)
{
	int result;

	range->kind = cuda_pointer_kind(cu, p);
	if (range->kind == CUDA_NONE)
		return CUDA_SUCCESS;
	/* The driver says device 0 of host VMM memory. */
	range->device = range->kind == CUDA_HOST && !p->context ? -1 : p->device;
	range->base = p->start;
	range->size = p->size;
	range->buffer_id = p->buffer_id;
	range->syncs = p->syncs;
	range->context = p->context;
	result = cuda_range_narrow(cu, p->addr, range);
	if (result || range->device < 0) /* host memory may be of no device */
		return result;
	return cu->device_uuid(range->uuid, range->device);
}

int cuda_identify(uintptr_t addr, struct cuda_range *range)
{
	const struct cuda_range none = { .kind = CUDA_NONE, .device = -1 };
	const struct cuda_driver *cu = cuda_driver_loaded();
	struct cuda_pointer p;
	int result;

	*range = none;
	if (!cu)
		return 0;
	result = cuda_pointer_get(cu, addr, &p);
	if (!result)
		result = cuda_range_fill(cu, &p, range);
	if (!result)
		return 0;
	*range = none;
	return cuda_result_means_none(result)
		       ? 0
		       : cuda_failed(cu, result, "CUDA pointer %#zx", (size_t)addr);
}

bool cuda_range_contains(const struct cuda_range *range, uintptr_t addr, size_t size)
{
	return addr - range->base < range->size && size <= range->size - (addr - range->base);
}

bool cuda_is_vmm(uintptr_t addr)
{
	const struct cuda_driver *cu = cuda_driver_loaded();
	uint64_t handle;

	if (!cu || cu->retain(&handle, (void *)addr))
		return false;
	cu->release(handle);
	return true;
}

uint64_t cuda_buffer_id(uintptr_t addr)
{
	const struct cuda_driver *cu = cuda_driver_loaded();
	unsigned long long id;

	return !cu || cu->pointer_attribute(&id, CUDA_POINTER_BUFFER_ID, addr) ? 0 : id;
}

/*
 * The first compute capability whose kernels see what a device has written without a flush.  The rule
 * is NCCL's (ncclTopoNeedFlush).
 */
#define CUDA_NO_FLUSH_MAJOR 9

int cuda_get_current_gpu(struct cuda_gpu *gpu)
{
	const struct cuda_driver *cu = cuda_driver_loaded();
	struct cuda_gpu found;
	int device, major, result;

	if (!cu)
		return log_errno(ENODEV, "the process has not loaded libcuda.so.1");
	result = cu->context_device(&device);
	if (result)
		return cuda_failed(cu, result, "the thread's CUDA context");
	result = cu->device_attribute(&major, CUDA_DEVICE_COMPUTE_MAJOR, device);
	if (!result)
		result = cu->device_uuid(found.uuid, device);
	if (result)
		return cuda_failed(cu, result, "CUDA device %d", device);
	found.needs_flush = major < CUDA_NO_FLUSH_MAJOR;
	*gpu = found;
	return 0;
}
