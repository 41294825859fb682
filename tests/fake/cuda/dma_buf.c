/* SPDX-License-Identifier: Apache-2.0 */
#include "device.h"
#include "driver.h"
#include "fake_cuda.h"
#include "import/nvidia/cuda/cuda_driver.h"
#include "range.h"
#include "vmm.h"

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

/* The bytes of physical memory that were ever written: the rest of large memory takes no room. */
static void range_copy_written(int copy, off_t to, const struct range *r, size_t from, size_t size)
{
	const off_t end = (off_t)(from + size);
	off_t at = lseek(r->handle->fd, (off_t)from, SEEK_DATA), hole;

	for (; at >= 0 && at < end; at = lseek(r->handle->fd, hole, SEEK_DATA)) {
		hole = lseek(r->handle->fd, at, SEEK_HOLE);
		hole = hole < end ? hole : end;
		if (pwrite(copy, r->memory + at, (size_t)(hole - at), to + at - (off_t)from) !=
		    (ssize_t)(hole - at))
			abort();
	}
}

static void range_copy_part(int copy, off_t to, const struct range *r, size_t from, size_t size)
{
	if (r->kind == KIND_VMM)
		range_copy_written(copy, to, r, from, size);
	else if (pwrite(copy, r->memory + from, size, to) != (ssize_t)size)
		abort();
}

/* A memfd with a copy of the range as @device sees the bytes. */
static int range_copy(int *fd, uintptr_t addr, size_t size, int device)
{
	uintptr_t end = addr + size;
	const struct range *r;
	int copy = driver_memfd("fake-dmabuf-cuda"); /* as of nv-dmabuf.c */

	if (copy < 0)
		return CUDA_OPERATING_SYSTEM;
	if (ftruncate(copy, (off_t)size)) {
		close(copy);
		return CUDA_OUT_OF_MEMORY;
	}
	for (uintptr_t at = addr; at < end; at = r->block + r->block_size) {
		r = range_find_pages(at, device);
		if (!r) {
			close(copy);
			return CUDA_INVALID_VALUE;
		}
		size_t n = r->block + r->block_size < end ? r->block + r->block_size - at
							  : end - at;

		range_copy_part(copy, (off_t)(at - addr), r, at - r->block, n);
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
