/* SPDX-License-Identifier: Apache-2.0 */
/* Copies and fills, which happen at once: streams are in stream.c. */
#include "device.h"
#include "driver.h"
#include "fake_cuda.h"
#include "import/nvidia/cuda/cuda_driver.h"
#include "range.h"

#include <string.h>

/* The bytes of @size bytes at @addr; NULL for a range that is not in one allocation. */
static char *copy_bytes_at(uintptr_t addr, size_t size)
{
	const struct range *r = range_find(addr);

	if (!r)
		return NULL;
	return addr + size <= r->addr + r->size ? r->memory + (addr - r->block) : NULL;
}

static int copy_run(const char *function, void *to, const void *from, size_t size,
		    const uintptr_t *to_device, const uintptr_t *from_device)
{
	int result = driver_enter(function);

	if (result)
		return result;
	if (!context_get_current())
		return driver_leave(CUDA_INVALID_CONTEXT);
	if (to_device)
		to = copy_bytes_at(*to_device, size);
	if (from_device)
		from = copy_bytes_at(*from_device, size);
	if (!to || !from)
		return driver_leave(CUDA_INVALID_VALUE);
	memmove(to, from, size);
	return driver_leave(CUDA_SUCCESS);
}

API int cuMemcpyHtoD_v2(uintptr_t to, const void *from, size_t size);
API int cuMemcpyHtoD_v2(uintptr_t to, const void *from, size_t size)
{
	return copy_run("cuMemcpyHtoD_v2", NULL, from, size, &to, NULL);
}

API int cuMemcpyDtoH_v2(void *to, uintptr_t from, size_t size);
API int cuMemcpyDtoH_v2(void *to, uintptr_t from, size_t size)
{
	return copy_run("cuMemcpyDtoH_v2", to, NULL, size, NULL, &from);
}

API int cuMemcpyDtoD_v2(uintptr_t to, uintptr_t from, size_t size);
API int cuMemcpyDtoD_v2(uintptr_t to, uintptr_t from, size_t size)
{
	return copy_run("cuMemcpyDtoD_v2", NULL, NULL, size, &to, &from);
}

API int cuMemcpyHtoDAsync_v2(uintptr_t to, const void *from, size_t size, void *stream);
API int cuMemcpyHtoDAsync_v2(uintptr_t to, const void *from, size_t size, void *stream)
{
	(void)stream;
	return cuMemcpyHtoD_v2(to, from, size);
}

API int cuMemcpyDtoHAsync_v2(void *to, uintptr_t from, size_t size, void *stream);
API int cuMemcpyDtoHAsync_v2(void *to, uintptr_t from, size_t size, void *stream)
{
	(void)stream;
	return cuMemcpyDtoH_v2(to, from, size);
}

API int cuMemcpyDtoDAsync_v2(uintptr_t to, uintptr_t from, size_t size, void *stream);
API int cuMemcpyDtoDAsync_v2(uintptr_t to, uintptr_t from, size_t size, void *stream)
{
	(void)stream;
	return cuMemcpyDtoD_v2(to, from, size);
}

API int cuMemsetD8_v2(uintptr_t to, unsigned char value, size_t size);
API int cuMemsetD8_v2(uintptr_t to, unsigned char value, size_t size)
{
	int result = driver_enter("cuMemsetD8_v2");
	char *bytes;

	if (result)
		return result;
	bytes = copy_bytes_at(to, size);
	if (!bytes)
		return driver_leave(CUDA_INVALID_VALUE);
	memset(bytes, value, size);
	return driver_leave(CUDA_SUCCESS);
}

API int cuMemsetD8Async(uintptr_t to, unsigned char value, size_t size, void *stream);
API int cuMemsetD8Async(uintptr_t to, unsigned char value, size_t size, void *stream)
{
	(void)stream;
	return cuMemsetD8_v2(to, value, size);
}
