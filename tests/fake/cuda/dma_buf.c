/* SPDX-License-Identifier: Apache-2.0 */
#include "device.h"
#include "driver.h"
#include "fake_cuda.h"
#include "import/nvidia/cuda/cuda_driver.h"
#include "range.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static bool pcie;
static unsigned long long last_flags;

void dma_buf_reset(void)
{
	pcie = false;
}

/* The range of @device whose block contains @addr, or NULL. */
static struct range *range_find_pages(uintptr_t addr, int device)
{
	struct range *r = range_first();

	while (r && addr - r->block >= r->block_size)
		r = r->next;
	if (!r || r->device != device || (r->kind != KIND_DEVICE && r->kind != KIND_VMM))
		return NULL;
	return r;
}

/* A memfd with a copy of the range as @device sees the bytes. */
static int range_copy(int *fd, uintptr_t addr, size_t size, int device)
{
	uintptr_t end = addr + size;
	const struct range *r;
	int copy = memfd_create("fake-dmabuf-cuda", MFD_CLOEXEC); /* as of nv-dmabuf.c */

	if (copy < 0)
		return CUDA_OPERATING_SYSTEM;
	for (uintptr_t at = addr; at < end; at = r->block + r->block_size) {
		r = range_find_pages(at, device);
		if (!r) {
			close(copy);
			return CUDA_INVALID_VALUE;
		}
		size_t n = r->block + r->block_size < end ? r->block + r->block_size - at
							  : end - at;

		if (pwrite(copy, r->memory + (at - r->block), n, (off_t)(at - addr)) != (ssize_t)n)
			abort();
	}
	*fd = copy;
	return CUDA_SUCCESS;
}

API int cuMemGetHandleForAddressRange(void *handle, uintptr_t addr, size_t size, int type,
				      unsigned long long flags);
API int cuMemGetHandleForAddressRange(void *handle, uintptr_t addr, size_t size, int type,
				      unsigned long long flags)
{
	int result = driver_enter("cuMemGetHandleForAddressRange");

	if (result)
		return result;
	if (!context_get_current())
		return driver_leave(CUDA_INVALID_CONTEXT);
	if (pages_round_up(addr) != addr || pages_round_up(size) != size || !size || flags > 1 ||
	    type != CUDA_RANGE_DMA_BUF_FD)
		return driver_leave(CUDA_INVALID_VALUE);
	if (flags && !pcie)
		return driver_leave(CUDA_NOT_SUPPORTED);
	result = range_copy(handle, addr, size, context_get_current()->device);
	if (!result)
		last_flags = flags;
	return driver_leave(result);
}

API void fake_cuda_set_pcie(bool supported)
{
	pcie = supported;
}

API unsigned long long fake_cuda_range_flags(void)
{
	return last_flags;
}
