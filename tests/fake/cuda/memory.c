/* SPDX-License-Identifier: Apache-2.0 */
/* Allocations by the program's own calls, and pinned memory of the host. */
#include "device.h"
#include "driver.h"
#include "fake_cuda.h"
#include "import/nvidia/cuda/cuda_driver.h"
#include "range.h"

static const size_t memory_of_device = (size_t)1 << 30;

enum { ALREADY_REGISTERED = 712, NOT_REGISTERED = 713 };

static size_t memory_used(void)
{
	size_t used = 0;

	for (const struct range *r = range_first(); r; r = r->next)
		if (r->kind == KIND_DEVICE || r->kind == KIND_VMM)
			used += r->block_size;
	return used;
}

/* Whether the call may make an allocation; the lock is not held afterwards. */
static int memory_may_alloc(const char *function, size_t size, int *device)
{
	int result = driver_enter(function);

	*device = 0; /* gcc -O3 does not see that an error is not 0 */
	if (result)
		return result;
	if (!context_get_current())
		return driver_leave(CUDA_INVALID_CONTEXT);
	*device = context_get_current()->device;
	if (!size)
		return driver_leave(CUDA_INVALID_VALUE);
	return driver_leave(size > memory_of_device - memory_used() ? CUDA_OUT_OF_MEMORY
								    : CUDA_SUCCESS);
}

static int memory_result(uintptr_t made)
{
	return made ? CUDA_SUCCESS : CUDA_OUT_OF_MEMORY;
}

API int cuMemAlloc_v2(uintptr_t *addr, size_t size);
API int cuMemAlloc_v2(uintptr_t *addr, size_t size)
{
	int device, result = memory_may_alloc("cuMemAlloc_v2", size, &device);

	if (!result)
		*addr = fake_cuda_alloc(device, size);
	return result ? result : memory_result(*addr);
}

API int cuMemAllocManaged(uintptr_t *addr, size_t size, unsigned int flags);
API int cuMemAllocManaged(uintptr_t *addr, size_t size, unsigned int flags)
{
	int device, result = memory_may_alloc("cuMemAllocManaged", size, &device);

	if (!result && !flags)
		result = CUDA_INVALID_VALUE;
	if (!result)
		*addr = fake_cuda_managed(device, size);
	return result ? result : memory_result(*addr);
}

API int cuMemHostAlloc(void **address, size_t size, unsigned int flags);
API int cuMemHostAlloc(void **address, size_t size, unsigned int flags)
{
	int device, result = memory_may_alloc("cuMemHostAlloc", size, &device);

	if (!result && flags > 7)
		result = CUDA_INVALID_VALUE;
	if (!result)
		*address = (void *)fake_cuda_host(device, size);
	return result ? result : memory_result((uintptr_t)*address);
}

/* Whether an allocation of a kind begins at @addr; the lock is not held afterwards. */
static int memory_may_free(const char *function, uintptr_t addr, enum kind kind, enum kind other,
			   int error)
{
	const struct range *r;
	int result = driver_enter(function);

	if (result)
		return result;
	r = range_find(addr);
	return driver_leave(r && r->addr == addr && (r->kind == kind || r->kind == other)
				    ? CUDA_SUCCESS
				    : error);
}

API int cuMemFree_v2(uintptr_t addr);
API int cuMemFree_v2(uintptr_t addr)
{
	int result = memory_may_free("cuMemFree_v2", addr, KIND_DEVICE, KIND_MANAGED,
				     CUDA_INVALID_VALUE);

	if (!result)
		fake_cuda_free(addr);
	return result;
}

API int cuMemFreeHost(void *address);
API int cuMemFreeHost(void *address)
{
	int result = memory_may_free("cuMemFreeHost", (uintptr_t)address, KIND_HOST, KIND_HOST,
				     CUDA_INVALID_VALUE);

	if (!result)
		fake_cuda_free((uintptr_t)address);
	return result;
}

API int cuMemHostRegister_v2(void *address, size_t size, unsigned int flags);
API int cuMemHostRegister_v2(void *address, size_t size, unsigned int flags)
{
	int device, result = memory_may_alloc("cuMemHostRegister_v2", size, &device);

	(void)flags;
	if (result)
		return result;
	driver_lock();
	result = range_overlaps((uintptr_t)address, size) ? ALREADY_REGISTERED : CUDA_SUCCESS;
	driver_unlock();
	if (!result && !fake_cuda_host_register(device, address, size))
		result = CUDA_OUT_OF_MEMORY;
	return result;
}

API int cuMemHostUnregister(void *address);
API int cuMemHostUnregister(void *address)
{
	int result = memory_may_free("cuMemHostUnregister", (uintptr_t)address, KIND_REGISTERED,
				     KIND_REGISTERED, NOT_REGISTERED);

	if (!result)
		fake_cuda_free((uintptr_t)address);
	return result;
}

API int cuMemHostGetDevicePointer_v2(uintptr_t *addr, void *address, unsigned int flags);
API int cuMemHostGetDevicePointer_v2(uintptr_t *addr, void *address, unsigned int flags)
{
	const struct range *r;
	int result = driver_enter("cuMemHostGetDevicePointer_v2");

	if (result)
		return result;
	r = range_find((uintptr_t)address);
	if (flags || !r || (r->kind != KIND_HOST && r->kind != KIND_REGISTERED))
		return driver_leave(CUDA_INVALID_VALUE);
	*addr = (uintptr_t)address;
	return driver_leave(CUDA_SUCCESS);
}

API int cuMemGetInfo_v2(size_t *left, size_t *all);
API int cuMemGetInfo_v2(size_t *left, size_t *all)
{
	int result = driver_enter("cuMemGetInfo_v2");

	if (result)
		return result;
	*all = memory_of_device;
	*left = memory_of_device - memory_used();
	return driver_leave(CUDA_SUCCESS);
}

API int cuDeviceTotalMem_v2(size_t *all, int device);
API int cuDeviceTotalMem_v2(size_t *all, int device)
{
	int result = driver_enter("cuDeviceTotalMem_v2");

	if (result)
		return result;
	*all = memory_of_device;
	return driver_leave(device_exists(device) ? CUDA_SUCCESS : CUDA_INVALID_DEVICE);
}
