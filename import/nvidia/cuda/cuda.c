/* SPDX-License-Identifier: Apache-2.0 */
#include "import/nvidia/cuda/cuda.h"
#include "import/nvidia/cuda/cuda_driver.h"
#include "util/log.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* What cuPointerGetAttributes() says.  All zero for an address that is not CUDA's. */
struct pointer {
	uintptr_t addr;
	void *context; /* NULL: VMM and pools */
	int memory_type;
	int device;
	bool managed;
	uintptr_t start;
	size_t size;
	unsigned long long buffer_id;
};

static int pointer_get(const struct cuda_driver *cu, uintptr_t addr, struct pointer *p)
{
	int attributes[] = {
		CUDA_POINTER_CONTEXT,	     CUDA_POINTER_MEMORY_TYPE, CUDA_POINTER_IS_MANAGED,
		CUDA_POINTER_DEVICE_ORDINAL, CUDA_POINTER_RANGE_START, CUDA_POINTER_RANGE_SIZE,
		CUDA_POINTER_BUFFER_ID,
	};
	/* The driver writes one byte or four for a boolean, by its version. */
	unsigned int managed = 0;
	void *data[] = { &p->context, &p->memory_type, &managed,     &p->device,
			 &p->start,   &p->size,	       &p->buffer_id };
	int result;

	*p = (struct pointer){ .addr = addr, .device = -1 };
	result = cu->pointer_attributes(sizeof(attributes) / sizeof(*attributes), attributes, data,
					addr);
	p->managed = managed;
	return result;
}

/* A driver that nobody has initialized, or that is going away, has no memory. */
static bool means_none(int result)
{
	return result == CUDA_NOT_INITIALIZED || result == CUDA_DEINITIALIZED ||
	       result == CUDA_INVALID_CONTEXT || result == CUDA_INVALID_VALUE ||
	       result == CUDA_NOT_FOUND;
}

/* The attributes call VMM memory of the host the device's: only its handle tells. */
static bool is_host_vmm(const struct cuda_driver *cu, uintptr_t addr)
{
	struct cuda_properties properties = { 0 };
	uint64_t handle;
	int result;

	if (cu->no_vmm || cu->retain(&handle, (void *)addr))
		return false;
	result = cu->properties(&properties, handle);
	cu->release(handle);
	return !result && properties.location.type >= CUDA_LOCATION_HOST &&
	       properties.location.type <= CUDA_LOCATION_HOST_NUMA_CURRENT;
}

static enum cuda_kind kind_of(const struct cuda_driver *cu, const struct pointer *p)
{
	if (p->managed)
		return CUDA_MANAGED;
	if (p->memory_type == CUDA_TYPE_HOST)
		return CUDA_HOST;
	if (p->memory_type != CUDA_TYPE_DEVICE)
		return CUDA_NONE;
	return is_host_vmm(cu, p->addr) ? CUDA_HOST : CUDA_DEVICE;
}

static int mapping_get(const struct cuda_driver *cu, uintptr_t addr, uintptr_t *base, size_t *size)
{
	int result = cu->pointer_attribute(base, CUDA_POINTER_MAPPING_BASE, addr);

	return result ? result : cu->pointer_attribute(size, CUDA_POINTER_MAPPING_SIZE, addr);
}

/* Drivers without the attributes of mappings.  Host VMM memory has a base of 0 there. */
static int segment_get(const struct cuda_driver *cu, uintptr_t addr, int device, uintptr_t *base,
		       size_t *size)
{
	struct cuda_scope scope;
	int result = cuda_scope_enter(&scope, cu, NULL, device);

	if (result)
		return result;
	result = cu->address_range(base, size, addr);
	cuda_scope_leave(&scope);
	return !result && addr - *base >= *size ? CUDA_NOT_FOUND : result;
}

static void cuda_intersect(struct cuda_range *range, uintptr_t base, size_t size)
{
	uintptr_t end = base + size, range_end = range->base + range->size;

	range->base = base > range->base ? base : range->base;
	range->size = (end < range_end ? end : range_end) - range->base;
}

/*
 * Memory of a context is an allocation, whose range the attributes give.  Of a VMM address they
 * give the reservation, of memory of a pool the part that was allocated; the mapping is the
 * segment, and the chunk of the pool.  What both have is the memory (driver 580).  The attributes
 * need no current context, cuMemGetAddressRange() does.
 */
static int cuda_narrow(const struct cuda_driver *cu, const struct pointer *p,
		       struct cuda_range *range)
{
	uintptr_t base;
	size_t size;
	int result;

	if (p->context)
		return CUDA_SUCCESS;
	result = mapping_get(cu, p->addr, &base, &size);
	if (result)
		result = segment_get(cu, p->addr, range->device, &base, &size);
	if (!result)
		cuda_intersect(range, base, size);
	else if (range->kind == CUDA_HOST && means_none(result))
		result = CUDA_SUCCESS;
	return result;
}

static int cuda_describe(const struct cuda_driver *cu, const struct pointer *p,
			 struct cuda_range *range)
{
	int result;

	range->kind = kind_of(cu, p);
	if (range->kind == CUDA_NONE)
		return CUDA_SUCCESS;
	/* Of host VMM memory the driver says device 0. */
	range->device = range->kind == CUDA_HOST && !p->context ? -1 : p->device;
	range->base = p->start;
	range->size = p->size;
	range->buffer_id = p->buffer_id;
	result = cuda_narrow(cu, p, range);
	if (result || range->device < 0) /* host memory may be of no device */
		return result;
	return cu->device_uuid(range->uuid, range->device);
}

static int cuda_identify_with(const struct cuda_driver *cu, uintptr_t addr,
			      struct cuda_range *range, struct pointer *p)
{
	int result = pointer_get(cu, addr, p);

	*range = (struct cuda_range){ .kind = CUDA_NONE, .device = -1 };
	if (!result)
		result = cuda_describe(cu, p, range);
	if (!result)
		return 0;
	*range = (struct cuda_range){ .kind = CUDA_NONE, .device = -1 };
	return means_none(result) ? 0 : cuda_failed(cu, result, "CUDA pointer %#zx", (size_t)addr);
}

int cuda_identify(uintptr_t addr, struct cuda_range *range)
{
	const struct cuda_driver *cu = cuda_driver_loaded();
	struct pointer p;

	if (cu)
		return cuda_identify_with(cu, addr, range, &p);
	*range = (struct cuda_range){ .kind = CUDA_NONE, .device = -1 };
	return 0;
}

bool cuda_is_vmm(uintptr_t addr)
{
	const struct cuda_driver *cu = cuda_driver_loaded();
	uint64_t handle;

	if (!cu || cu->no_vmm || cu->retain(&handle, (void *)addr))
		return false;
	cu->release(handle);
	return true;
}

static uint64_t buffer_id(const struct cuda_driver *cu, uintptr_t addr)
{
	unsigned long long id;

	return cu->pointer_attribute(&id, CUDA_POINTER_BUFFER_ID, addr) ? 0 : id;
}

uint64_t cuda_buffer_id(uintptr_t addr)
{
	const struct cuda_driver *cu = cuda_driver_loaded();

	return cu ? buffer_id(cu, addr) : 0;
}

/* A range that is asked for, and what its first and last byte were found to be. */
struct request {
	const struct cuda_driver *cu;
	uintptr_t addr, end;
	struct cuda_range first, last;
	struct pointer pointer; /* at addr */
};

static int request_begin(struct request *r, uintptr_t addr, size_t size)
{
	if (!size || __builtin_add_overflow(addr, size, &r->end))
		return log_errno(EINVAL, "%zu bytes at %#zx are no range", size, (size_t)addr);
	r->addr = addr;
	r->cu = cuda_driver_loaded();
	if (r->cu)
		return cuda_identify_with(r->cu, addr, &r->first, &r->pointer);
	r->first = (struct cuda_range){ .kind = CUDA_NONE };
	return 0;
}

static bool is_same(const struct request *r)
{
	return buffer_id(r->cu, r->addr) == r->first.buffer_id &&
	       buffer_id(r->cu, r->end - 1) == r->last.buffer_id;
}

static int cuda_is_freed(const struct request *r)
{
	return log_errno(ENODEV, "the CUDA memory at %#zx was freed meanwhile", (size_t)r->addr);
}

/* The caller owns a descriptor of what was asked for: or it is closed. */
static int cuda_finish(const struct request *r, const struct cuda_export *made,
		       struct cuda_export *out)
{
	if (!is_same(r)) {
		close(made->fd);
		return cuda_is_freed(r);
	}
	fcntl(made->fd, F_SETFD, FD_CLOEXEC);
	*out = *made;
	return 0;
}

/*
 * Makes CUDA's copies ordered with access through other mappings of the allocation.  The driver
 * keeps the flag with the allocation: asking it costs tens of nanoseconds, setting synchronizes.
 */
static void sync_memops(const struct cuda_driver *cu, uintptr_t addr)
{
	unsigned int set = 0;
	int result = cu->pointer_attribute(&set, CUDA_POINTER_SYNC_MEMOPS, addr);

	if (!result && set)
		return;
	set = 1;
	result = cu->set_pointer_attribute(&set, CUDA_POINTER_SYNC_MEMOPS, addr);
	if (result)
		log_debug("no SYNC_MEMOPS for CUDA memory at %#zx (error %d)", (size_t)addr,
			  result);
}

/* All of the range has to be memory of one device, in as many segments as it likes. */
static int check_segments(struct request *r)
{
	struct pointer p;
	int err;

	r->last = r->first;
	sync_memops(r->cu, r->addr);
	for (uintptr_t at = r->first.base + r->first.size; at < r->end;
	     at = r->last.base + r->last.size) {
		err = cuda_identify_with(r->cu, at, &r->last, &p);
		if (err)
			return err;
		if (r->last.kind != CUDA_DEVICE || r->last.device != r->first.device)
			return log_errno(EFAULT, "CUDA memory at %#zx ends at %#zx, not %#zx",
					 (size_t)r->addr, (size_t)at, (size_t)r->end);
		sync_memops(r->cu, at);
	}
	return 0;
}

/*
 * Where GPU and CPU share a coherent link, a dma-buf has addresses of that link unless it is
 * asked for the PCIe ones; elsewhere the flag is refused.
 */
static int range_handle(const struct request *r, uintptr_t start, size_t size, int *fd)
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

static int dmabuf_refused(const struct request *r, int result)
{
	int err;

	if (!is_same(r))
		return cuda_is_freed(r);
	err = cuda_descriptor_failed(r->cu, result, "dma-buf of CUDA memory at %#zx",
				     (size_t)r->addr);
	return err == -EINVAL ? -EOPNOTSUPP : err;
}

static int dmabuf_of(const struct request *r, struct cuda_export *out)
{
	uintptr_t mask = (uintptr_t)sysconf(_SC_PAGESIZE) - 1;
	uintptr_t start = r->addr & ~mask;
	struct cuda_export made = {
		.fd = -1,
		.offset = r->addr - start,
		.size = ((r->end - 1) | mask) + 1 - start,
	};
	struct cuda_scope scope;
	int result = cuda_scope_enter(&scope, r->cu, r->pointer.context, r->first.device);

	if (!result) {
		result = range_handle(r, start, made.size, &made.fd);
		cuda_scope_leave(&scope);
	}
	return result ? dmabuf_refused(r, result) : cuda_finish(r, &made, out);
}

int cuda_export_dmabuf(uintptr_t addr, size_t size, struct cuda_export *out)
{
	struct request r;
	int err = request_begin(&r, addr, size);

	if (err)
		return err;
	if (r.first.kind == CUDA_MANAGED)
		return log_errno(EOPNOTSUPP, "%#zx is managed memory, which moves: no dma-buf",
				 (size_t)addr);
	if (r.first.kind != CUDA_DEVICE)
		return log_errno(EFAULT, "%#zx is no CUDA device memory", (size_t)addr);
	if (r.cu->no_dmabuf)
		return cuda_missing(r.cu->no_dmabuf);
	if (!cuda_device_attribute(r.cu, CUDA_DEVICE_DMA_BUF, r.first.device))
		return log_errno(EOPNOTSUPP,
				 "CUDA device %d exports no dma-bufs: are these "
				 "NVIDIA's open kernel modules?",
				 r.first.device);
	err = check_segments(&r);
	return err ? err : dmabuf_of(&r, out);
}

static int check_segment(const struct request *r, const unsigned char uuid[CUDA_UUID_SIZE])
{
	uintptr_t segment_end = r->first.base + r->first.size;
	struct cuda_range next;
	struct pointer p;
	int err;

	if (r->first.kind == CUDA_DEVICE && memcmp(r->first.uuid, uuid, CUDA_UUID_SIZE))
		return log_errno(EXDEV, "%#zx is memory of CUDA device %d, not of this one",
				 (size_t)r->addr, r->first.device);
	if (r->end <= segment_end)
		return 0;
	err = cuda_identify_with(r->cu, segment_end, &next, &p);
	if (err)
		return err;
	if (next.kind == CUDA_NONE)
		return log_errno(EFAULT, "CUDA memory at %#zx ends at %#zx, not %#zx",
				 (size_t)r->addr, (size_t)segment_end, (size_t)r->end);
	return log_errno(EOPNOTSUPP, "%#zx to %#zx has several segments: no opaque descriptor",
			 (size_t)r->addr, (size_t)r->end);
}

static int cuda_share(const struct request *r, uint64_t handle, int *fd)
{
	struct cuda_properties properties = { 0 };
	int result = r->cu->properties(&properties, handle);
	int err;

	if (!result && !(properties.handle_types & CUDA_HANDLE_POSIX_FD))
		return log_errno(EOPNOTSUPP,
				 "CUDA memory at %#zx was made without a POSIX "
				 "descriptor",
				 (size_t)r->addr);
	if (!result)
		result = r->cu->share(fd, handle, CUDA_HANDLE_POSIX_FD, 0);
	if (!result)
		return 0;
	err = cuda_descriptor_failed(r->cu, result, "opaque descriptor of %#zx", (size_t)r->addr);
	return err == -EINVAL ? -EOPNOTSUPP : err;
}

static int opaque_of(const struct request *r, struct cuda_export *out)
{
	struct cuda_export made = {
		.fd = -1,
		.offset = r->addr - r->first.base, /* cuMemMap() maps from byte 0 of the handle */
		.size = r->first.size,
	};
	uint64_t handle;
	int err;

	if (r->cu->retain(&handle, (void *)r->addr))
		return is_same(r) ? log_errno(EOPNOTSUPP, "%#zx is no VMM memory", (size_t)r->addr)
				  : cuda_is_freed(r);
	err = cuda_share(r, handle, &made.fd);
	r->cu->release(handle);
	return err ? err : cuda_finish(r, &made, out);
}

int cuda_export_opaque(uintptr_t addr, size_t size, const unsigned char uuid[CUDA_UUID_SIZE],
		       struct cuda_export *out)
{
	struct request r;
	int err = request_begin(&r, addr, size);

	if (err)
		return err;
	if (r.first.kind == CUDA_NONE)
		return log_errno(EOPNOTSUPP, "%#zx is no CUDA memory", (size_t)addr);
	if (r.first.kind == CUDA_MANAGED)
		return log_errno(EOPNOTSUPP, "%#zx is managed memory, which moves: no descriptor",
				 (size_t)addr);
	if (r.cu->no_vmm)
		return cuda_missing(r.cu->no_vmm);
	err = check_segment(&r, uuid);
	r.last = r.first;
	return err ? err : opaque_of(&r, out);
}
