/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handles of memory for other processes, of cuMemAlloc's memory alone, as with the real driver.  The
 * first handle of an allocation moves the allocation's bytes to a memfd.
 */
#include "device.h"
#include "driver.h"
#include "fake_cuda.h"
#include "import/nvidia/cuda/cuda_driver.h"
#include "range.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct ipc_handle {
	int pid, fd;
	uint64_t size, block_size, begin; /* @begin: of the allocation in its block */
	char unused[32];
};

_Static_assert(sizeof(struct ipc_handle) == 64, "CUipcMemHandle has 64 bytes");

static int range_share(struct range *r)
{
	int fd = r->shared ? r->shared : driver_memfd("fake-ipc-cuda");

	if (fd == r->shared)
		return CUDA_SUCCESS;
	if (fd < 0)
		return CUDA_OPERATING_SYSTEM;
	if (pwrite(fd, r->memory, r->block_size, 0) != (ssize_t)r->block_size ||
	    driver_map(r->memory, r->block_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
		       fd) == MAP_FAILED) {
		close(fd);
		return CUDA_OUT_OF_MEMORY;
	}
	r->shared = fd;
	return CUDA_SUCCESS;
}

API int cuIpcGetMemHandle(struct ipc_handle *handle, uintptr_t addr);
API int cuIpcGetMemHandle(struct ipc_handle *handle, uintptr_t addr)
{
	struct range *r;
	int result = driver_enter("cuIpcGetMemHandle");

	if (result)
		return result;
	r = range_find(addr);
	if (!r || r->kind != KIND_DEVICE || r->addr != addr)
		return driver_leave(CUDA_INVALID_VALUE);
	result = range_share(r);
	if (result)
		return driver_leave(result);
	*handle = (struct ipc_handle){
		.pid = getpid(),
		.fd = r->shared,
		.size = r->size,
		.block_size = r->block_size,
		.begin = r->addr - r->block,
	};
	return driver_leave(CUDA_SUCCESS);
}

static int ipc_open(const struct ipc_handle *handle)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", handle->pid, handle->fd);
	return open(path, O_RDWR | O_CLOEXEC);
}

static bool ipc_map(struct range *r, size_t begin)
{
	void *memory;

	r->block = device_pages_reserve(0, r->block_size);
	r->addr = r->block + begin;
	memory = driver_map(NULL, r->block_size, PROT_READ | PROT_WRITE, MAP_SHARED, r->shared);
	r->memory = memory == MAP_FAILED ? NULL : memory;
	return r->block && r->memory && range_add(r);
}

API int cuIpcOpenMemHandle_v2(uintptr_t *addr, struct ipc_handle handle, unsigned int flags);
API int cuIpcOpenMemHandle_v2(uintptr_t *addr, struct ipc_handle handle, unsigned int flags)
{
	struct range r = { .kind = KIND_DEVICE, .size = handle.size };
	int result = driver_enter("cuIpcOpenMemHandle_v2");

	(void)flags;
	if (result)
		return result;
	if (!context_get_current() || handle.pid == getpid())
		return driver_leave(CUDA_INVALID_CONTEXT);
	r.shared = ipc_open(&handle);
	if (r.shared < 0)
		return driver_leave(CUDA_INVALID_VALUE);
	r.block_size = handle.block_size;
	r.device = context_get_current()->device;
	r.context = context_get_current();
	if (!ipc_map(&r, handle.begin)) {
		range_unmap(&r);
		return driver_leave(CUDA_OUT_OF_MEMORY);
	}
	*addr = r.addr;
	return driver_leave(CUDA_SUCCESS);
}

API int cuIpcCloseMemHandle(uintptr_t addr);
API int cuIpcCloseMemHandle(uintptr_t addr)
{
	const struct range *r;
	int result = driver_enter("cuIpcCloseMemHandle");

	if (result)
		return result;
	r = range_find(addr);
	result = driver_leave(r && r->shared ? CUDA_SUCCESS : CUDA_INVALID_VALUE);
	if (!result)
		fake_cuda_free(addr);
	return result;
}
