/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Descriptors of CUDA's memory: dma-bufs, and opaque descriptors.
 *
 * The caller has identified the memory (cuda_identify()).  The program may free the memory before
 * the descriptor exists, and CUDA may give the address to other memory.  A descriptor keeps its
 * memory allocated, so a buffer id that is equal before and after proves whose descriptor CUDA
 * made.
 */
#include "import/kinds/range.h"
#include "import/nvidia/cuda/cuda.h"
#include "import/nvidia/cuda/cuda_driver.h"
#include "import/nvidia/cuda/cuda_facts.h"
#include "util/log.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* A range, with the memory of its first and of its last byte. */
struct cuda_request {
	const struct cuda_driver *cu;
	uintptr_t addr, end;
	struct cuda_range first, last;
};

static int cuda_request_begin(struct cuda_request *r, const struct cuda_range *memory,
			      uintptr_t addr, size_t size)
{
	if (!size || __builtin_add_overflow(addr, size, &r->end))
		return range_refuse(addr, size);
	r->addr = addr;
	r->cu = cuda_driver_loaded();
	r->first = r->last = *memory;
	return 0;
}

static bool cuda_request_is_current(const struct cuda_request *r)
{
	return cuda_buffer_id(r->addr) == r->first.buffer_id &&
	       (r->last.base == r->first.base || cuda_buffer_id(r->end - 1) == r->last.buffer_id);
}

static int cuda_request_freed(const struct cuda_request *r)
{
	return log_errno(ENODEV, "the CUDA memory at %#zx was freed meanwhile", (size_t)r->addr);
}

/* Gives the caller a descriptor of the memory that was identified, or closes the descriptor. */
static int cuda_request_finish(const struct cuda_request *r, const struct cuda_export *made,
			       struct cuda_export *out)
{
	if (!cuda_request_is_current(r)) {
		close(made->fd);
		return cuda_request_freed(r);
	}
	*out = *made;
	return 0;
}

/* The error of a driver that made no dma-buf. */
static int cuda_request_refused(const struct cuda_request *r, int result)
{
	int err;

	if (!cuda_request_is_current(r))
		return cuda_request_freed(r);
	err = cuda_descriptor_failed(r->cu, result, "dma-buf of CUDA memory at %#zx",
				     (size_t)r->addr);
	return err == -EINVAL ? -EOPNOTSUPP : err;
}

static bool cuda_takes_sync_memops(const struct cuda_range *memory, uintptr_t addr)
{
	return !memory->syncs && !(cuda_facts_get(memory->buffer_id, addr) & CUDA_FACT_NO_SYNC);
}

/*
 * Orders CUDA's copies with accesses through other mappings of the allocation.  The driver keeps
 * the flag with the allocation: setting the flag synchronizes.  Driver 580 refuses the flag for VMM
 * memory.
 */
static void cuda_set_sync_memops(const struct cuda_driver *cu, const struct cuda_range *memory,
				 uintptr_t addr)
{
	unsigned int set = 1;
	int result;

	if (!cuda_takes_sync_memops(memory, addr))
		return;
	result = cu->set_pointer_attribute(&set, CUDA_POINTER_SYNC_MEMOPS, addr);
	if (result == CUDA_NOT_SUPPORTED)
		cuda_facts_add(memory->buffer_id, addr, CUDA_FACT_NO_SYNC);
	if (result)
		log_debug("no SYNC_MEMOPS for CUDA memory at %#zx (CUDA error %d)", (size_t)addr,
			  result);
}

/* The whole range has to be memory of one device.  A range may have any number of segments. */
static int cuda_check_segments(struct cuda_request *r)
{
	int err;

	cuda_set_sync_memops(r->cu, &r->first, r->addr);
	for (uintptr_t at = r->first.base + r->first.size; at < r->end;
	     at = r->last.base + r->last.size) {
		err = cuda_identify(at, &r->last);
		if (err)
			return err;
		if (r->last.kind != CUDA_DEVICE || r->last.device != r->first.device)
			return log_errno(EFAULT, "CUDA memory at %#zx ends at %#zx, not %#zx",
					 (size_t)r->addr, (size_t)at, (size_t)r->end);
		cuda_set_sync_memops(r->cu, &r->last, at);
	}
	return 0;
}

/*
 * Where GPU and CPU share a coherent link, a dma-buf has addresses of the link, unless the flag
 * asks for PCIe addresses.  Elsewhere the driver refuses the flag.  The kernel makes the descriptor
 * close-on-exec (nv-dmabuf.c of the open modules 515 to 595).
 */
static int cuda_range_handle(const struct cuda_request *r, uintptr_t start, size_t size, int *fd)
{
	int result;

	if (cuda_device_attribute(r->cu, CUDA_DEVICE_HOST_NATIVE_ATOMIC, r->first.device)) {
		result = r->cu->range_handle(fd, start, size, CUDA_RANGE_DMA_BUF_FD,
					     CUDA_RANGE_FLAG_PCIE);
		if (result != CUDA_NOT_SUPPORTED && result != CUDA_INVALID_VALUE)
			return result;
	}
	return r->cu->range_handle(fd, start, size, CUDA_RANGE_DMA_BUF_FD, 0);
}

static int cuda_make_dmabuf(const struct cuda_request *r, struct cuda_export *out)
{
	uintptr_t mask = (uintptr_t)sysconf(_SC_PAGESIZE) - 1;
	uintptr_t start = r->addr & ~mask;
	struct cuda_export made = {
		.fd = -1,
		.offset = r->addr - start,
		.size = ((r->end - 1) | mask) + 1 - start,
	};
	struct cuda_scope scope;
	int result = cuda_scope_enter(&scope, r->cu, r->first.context, r->first.device);

	if (!result) {
		result = cuda_range_handle(r, start, made.size, &made.fd);
		cuda_scope_leave(&scope);
	}
	return result ? cuda_request_refused(r, result) : cuda_request_finish(r, &made, out);
}

/* Whether the driver makes dma-bufs of the memory's device: 0 or -EOPNOTSUPP. */
static int cuda_check_dmabuf(const struct cuda_request *r)
{
	if (!r->cu->range_handle)
		return log_errno(EOPNOTSUPP,
				 "this libcuda.so.1 has no cuMemGetHandleForAddressRange");
	if (cuda_device_attribute(r->cu, CUDA_DEVICE_DMA_BUF, r->first.device))
		return 0;
	return log_errno(
		EOPNOTSUPP,
		"CUDA device %d exports no dma-bufs: are these NVIDIA's open kernel modules?",
		r->first.device);
}

int cuda_export_dmabuf(const struct cuda_range *memory, uintptr_t addr, size_t size,
		       struct cuda_export *out)
{
	struct cuda_request r;
	int err = cuda_request_begin(&r, memory, addr, size);

	if (err)
		return err;
	if (memory->kind == CUDA_MANAGED)
		return log_errno(EOPNOTSUPP, "%#zx is managed memory, which moves: no dma-buf",
				 (size_t)addr);
	if (memory->kind != CUDA_DEVICE)
		return log_errno(EFAULT, "%#zx is no CUDA device memory", (size_t)addr);
	err = cuda_check_dmabuf(&r);
	if (!err)
		err = cuda_check_segments(&r);
	return err ? err : cuda_make_dmabuf(&r, out);
}

/* An opaque descriptor is of one segment. */
static int cuda_check_one_segment(const struct cuda_request *r)
{
	uintptr_t segment_end = r->first.base + r->first.size;
	struct cuda_range next;
	int err;

	if (r->end <= segment_end)
		return 0;
	err = cuda_identify(segment_end, &next);
	if (err)
		return err;
	if (next.kind == CUDA_NONE)
		return log_errno(EFAULT, "CUDA memory at %#zx ends at %#zx, not %#zx",
				 (size_t)r->addr, (size_t)segment_end, (size_t)r->end);
	return log_errno(EOPNOTSUPP,
			 "%#zx to %#zx is of several CUDA allocations: import each alone",
			 (size_t)r->addr, (size_t)r->end);
}

/* Memory of the host is for every device. */
static int cuda_check_device(const struct cuda_request *r, const unsigned char uuid[CUDA_UUID_SIZE])
{
	if (r->first.kind != CUDA_DEVICE || !memcmp(r->first.uuid, uuid, CUDA_UUID_SIZE))
		return 0;
	return log_errno(EXDEV, "%#zx is memory of CUDA device %d, not of this one",
			 (size_t)r->addr, r->first.device);
}

static int cuda_share(const struct cuda_request *r, uint64_t handle, int *fd)
{
	struct cuda_properties properties = { 0 };
	int result = r->cu->properties(&properties, handle);
	int err;

	if (!result && !(properties.handle_types & CUDA_HANDLE_POSIX_FD))
		return log_errno(EOPNOTSUPP,
				 "cuMemCreate() made the memory at %#zx without "
				 "CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR",
				 (size_t)r->addr);
	if (!result)
		result = r->cu->share(fd, handle, CUDA_HANDLE_POSIX_FD, 0);
	if (!result) {
		fcntl(*fd, F_SETFD, FD_CLOEXEC);
		return 0;
	}
	err = cuda_descriptor_failed(r->cu, result, "opaque descriptor of %#zx", (size_t)r->addr);
	return err == -EINVAL ? -EOPNOTSUPP : err;
}

static int cuda_make_opaque(const struct cuda_request *r, struct cuda_export *out)
{
	struct cuda_export made = {
		.fd = -1,
		.offset = r->addr - r->first.base, /* cuMemMap() maps from byte 0 of the handle */
		.size = r->first.size,
	};
	uint64_t handle;
	int err;

	if (r->cu->retain(&handle, (void *)r->addr))
		return cuda_request_is_current(r)
			       ? log_errno(EOPNOTSUPP, "%#zx is no VMM memory", (size_t)r->addr)
			       : cuda_request_freed(r);
	err = cuda_share(r, handle, &made.fd);
	r->cu->release(handle);
	return err ? err : cuda_request_finish(r, &made, out);
}

int cuda_export_opaque(const struct cuda_range *memory, uintptr_t addr, size_t size,
		       const unsigned char uuid[CUDA_UUID_SIZE], struct cuda_export *out)
{
	struct cuda_request r;
	int err = cuda_request_begin(&r, memory, addr, size);

	if (err)
		return err;
	if (memory->kind == CUDA_NONE)
		return log_errno(EOPNOTSUPP, "%#zx is no CUDA memory", (size_t)addr);
	if (memory->kind == CUDA_MANAGED)
		return log_errno(EOPNOTSUPP, "%#zx is managed memory, which moves: no descriptor",
				 (size_t)addr);
	err = cuda_check_device(&r, uuid);
	if (!err)
		err = cuda_check_one_segment(&r);
	return err ? err : cuda_make_opaque(&r, out);
}
