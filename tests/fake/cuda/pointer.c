/* SPDX-License-Identifier: Apache-2.0 */
#include "device.h"
#include "driver.h"
#include "fake_cuda.h"
#include "import/nvidia/cuda/cuda_driver.h"
#include "range.h"
#include "vmm.h"

static bool no_vmm_sync;

void pointer_reset(void)
{
	no_vmm_sync = false;
}

/*
 * As driver 580 answers for VMM memory: the range is the whole reservation, the context is NULL,
 * and host memory belongs to device 0.
 */
static int pointer_get_attribute(const struct range *r, int attribute, void *data)
{
	const struct reservation *v = r && r->kind == KIND_VMM ? reservation_find(r->addr) : NULL;
	bool host = r && (r->kind == KIND_HOST || r->kind == KIND_REGISTERED);

	switch (attribute) {
	case CUDA_POINTER_CONTEXT:
		*(void **)data = r ? r->context : NULL;
		return CUDA_SUCCESS;
	case CUDA_POINTER_MEMORY_TYPE:
		*(int *)data = !r ? 0 : host ? CUDA_TYPE_HOST : CUDA_TYPE_DEVICE;
		return CUDA_SUCCESS;
	case CUDA_POINTER_SYNC_MEMOPS:
		*(unsigned int *)data = r ? r->sync : 0;
		return CUDA_SUCCESS;
	case CUDA_POINTER_BUFFER_ID:
		*(unsigned long long *)data = r ? r->id : 0;
		return CUDA_SUCCESS;
	case CUDA_POINTER_IS_MANAGED:
		*(bool *)data = r && r->kind == KIND_MANAGED;
		return CUDA_SUCCESS;
	case CUDA_POINTER_DEVICE_ORDINAL:
		*(int *)data = !r ? -2 : v && r->device < 0 ? 0 : r->device;
		return CUDA_SUCCESS;
	case CUDA_POINTER_RANGE_START:
		*(uintptr_t *)data = v ? v->addr : r ? r->addr : 0;
		return CUDA_SUCCESS;
	case CUDA_POINTER_RANGE_SIZE:
		*(size_t *)data = v ? v->size : r ? r->size : 0;
		return CUDA_SUCCESS;
	case CUDA_POINTER_MAPPING_BASE:
		*(uintptr_t *)data = r ? r->addr : 0;
		return CUDA_SUCCESS;
	case CUDA_POINTER_MAPPING_SIZE:
		*(size_t *)data = r ? r->size : 0;
		return CUDA_SUCCESS;
	}
	return CUDA_INVALID_VALUE;
}

API int cuPointerGetAttributes(unsigned int n, int *which, void **data, uintptr_t addr);
API int cuPointerGetAttributes(unsigned int n, int *which, void **data, uintptr_t addr)
{
	int result = driver_enter("cuPointerGetAttributes");

	if (result)
		return result;
	for (unsigned int i = 0; i < n && !result; i++)
		result = pointer_get_attribute(range_find(addr), which[i], data[i]);
	return driver_leave(result);
}

API int cuPointerGetAttribute(void *data, int which, uintptr_t addr);
API int cuPointerGetAttribute(void *data, int which, uintptr_t addr)
{
	struct range *r;
	int result = driver_enter("cuPointerGetAttribute");

	if (result)
		return result;
	r = range_find(addr);
	return driver_leave(r ? pointer_get_attribute(r, which, data) : CUDA_INVALID_VALUE);
}

API int cuPointerSetAttribute(const void *value, int which, uintptr_t addr);
API int cuPointerSetAttribute(const void *value, int which, uintptr_t addr)
{
	struct range *r;
	int result = driver_enter("cuPointerSetAttribute");

	if (result)
		return result;
	r = range_find(addr);
	if (!r || which != CUDA_POINTER_SYNC_MEMOPS || r->kind == KIND_HOST)
		return driver_leave(CUDA_INVALID_VALUE);
	if (r->kind == KIND_VMM && no_vmm_sync)
		return driver_leave(CUDA_NOT_SUPPORTED);
	r->sync = *(const unsigned int *)value;
	return driver_leave(CUDA_SUCCESS);
}

API void fake_cuda_set_no_vmm_sync(bool refused)
{
	no_vmm_sync = refused;
}

/* Numba's. */
API int cuMemGetAddressRange_v2(uintptr_t *base, size_t *size, uintptr_t addr);
API int cuMemGetAddressRange_v2(uintptr_t *base, size_t *size, uintptr_t addr)
{
	struct range *r;
	int result = driver_enter("cuMemGetAddressRange_v2");

	if (result)
		return result;
	r = range_find(addr);
	if (!context_get_current())
		return driver_leave(CUDA_INVALID_CONTEXT);
	if (!r || r->kind == KIND_REGISTERED)
		return driver_leave(CUDA_NOT_FOUND);
	*base = r->kind == KIND_VMM && r->device < 0 ? 0 : r->addr;
	*size = r->size;
	return driver_leave(CUDA_SUCCESS);
}
