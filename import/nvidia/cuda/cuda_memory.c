/* SPDX-License-Identifier: Apache-2.0 */
#include "import/nvidia/cuda/cuda.h"
#include "import/nvidia/cuda/cuda_driver.h"
#include "util/log.h"

#include <errno.h>
#include <string.h>

/* An allocation in the making. */
struct allocation {
	const struct cuda_driver *cu;
	int device;
	struct cuda_properties properties;
	size_t granularity;
	size_t align;
	struct cuda_memory memory;
};

static int cuda_memory_device_of(const struct cuda_driver *cu,
				 const unsigned char uuid[CUDA_UUID_SIZE])
{
	unsigned char have[CUDA_UUID_SIZE];
	int device, count;
	int result = cu->device_count(&count);

	if (result)
		return cuda_failed(cu, result, "cuDeviceGetCount");
	for (int i = 0; i < count; i++) {
		if (cu->device_get(&device, i) || cu->device_uuid(have, device))
			continue;
		if (!memcmp(have, uuid, sizeof(have)))
			return device;
	}
	return log_errno(ENODEV, "none of %d CUDA devices has the UUID that was asked for", count);
}

/* HOST_NUMA, not HOST: the driver gives memory of HOST no descriptor. */
static struct cuda_location cuda_memory_location_of(const struct cuda_driver *cu,
						    enum cuda_kind kind, int device)
{
	int node;

	if (kind == CUDA_DEVICE)
		return (struct cuda_location){ CUDA_LOCATION_DEVICE, device };
	node = cuda_device_attribute(cu, CUDA_DEVICE_HOST_NUMA_ID, device);
	return (struct cuda_location){ CUDA_LOCATION_HOST_NUMA, node < 0 ? 0 : node };
}

static void cuda_memory_properties_init(struct allocation *a, enum cuda_kind kind)
{
	a->properties = (struct cuda_properties){
		.type = CUDA_ALLOCATION_PINNED,
		.handle_types = CUDA_HANDLE_POSIX_FD,
		.location = cuda_memory_location_of(a->cu, kind, a->device),
	};
	/* gdmabuf and other peers can pin memory with the flag alone. */
	if (kind == CUDA_DEVICE)
		a->properties.rdma_capable =
			cuda_device_attribute(a->cu, CUDA_DEVICE_RDMA_WITH_VMM, a->device) != 0;
}

static int cuda_memory_failed(const struct allocation *a, int result, const char *call)
{
	int err = cuda_descriptor_failed(
		a->cu, result, "%s of %zu bytes of %s memory", call, a->memory.size,
		a->properties.location.type == CUDA_LOCATION_DEVICE ? "CUDA device" : "CUDA host");

	return err == -EINVAL ? -EOPNOTSUPP
			      : err; /* the request is valid: the driver does not know the kind */
}

static int cuda_memory_round_up(struct allocation *a, size_t size)
{
	int result = a->cu->granularity(&a->granularity, &a->properties, CUDA_GRANULARITY_MINIMUM);

	if (result)
		return cuda_memory_failed(a, result, "cuMemGetAllocationGranularity");
	if (__builtin_add_overflow(size, a->granularity - 1, &a->memory.size))
		return log_errno(ENOMEM, "%zu bytes of CUDA memory", size);
	a->memory.size -= a->memory.size % a->granularity;
	return 0;
}

static int cuda_memory_set_access(const struct allocation *a)
{
	const struct cuda_access access[] = {
		{ { CUDA_LOCATION_DEVICE, a->device }, CUDA_ACCESS_READ_WRITE },
		{ a->properties.location, CUDA_ACCESS_READ_WRITE },
	};
	size_t count = a->properties.location.type == CUDA_LOCATION_DEVICE ? 1 : 2;

	return a->cu->set_access(a->memory.addr, a->memory.size, access, count);
}

/* A failure is looked at before descriptors are given back. */
static int cuda_memory_create(struct allocation *a)
{
	const struct cuda_driver *cu = a->cu;
	struct cuda_memory *m = &a->memory;
	int err, result = cu->create(&m->handle, m->size, &a->properties, 0);

	if (result)
		return cuda_memory_failed(a, result, "cuMemCreate");
	result = cu->reserve(&m->addr, m->size, a->align, 0, 0);
	if (result) {
		err = cuda_memory_failed(a, result, "cuMemAddressReserve");
		goto err_release;
	}
	result = cu->map(m->addr, m->size, 0, m->handle, 0);
	if (result) {
		err = cuda_memory_failed(a, result, "cuMemMap");
		goto err_unreserve;
	}
	result = cuda_memory_set_access(a);
	if (!result)
		return 0;

	err = cuda_memory_failed(a, result, "cuMemSetAccess");
	cu->unmap(m->addr, m->size);
err_unreserve:
	cu->unreserve(m->addr, m->size);
err_release:
	cu->release(m->handle);
	return err;
}

/* The device's primary context lives as long as the memory. */
static int cuda_memory_create_on_device(struct allocation *a)
{
	struct cuda_scope scope;
	void *context;
	int result = a->cu->primary_retain(&context, a->device), err;

	if (result)
		return cuda_failed(a->cu, result, "context of CUDA device %d", a->device);
	result = cuda_scope_enter(&scope, a->cu, context, a->device);
	if (result) {
		err = cuda_failed(a->cu, result, "context of CUDA device %d", a->device);
	} else {
		err = cuda_memory_create(a);
		cuda_scope_leave(&scope);
	}
	if (err)
		a->cu->primary_release(a->device);
	return err;
}

static int cuda_memory_begin(struct allocation *a, enum cuda_kind kind,
			     const unsigned char uuid[CUDA_UUID_SIZE])
{
	a->cu = cuda_driver_load();
	if (!a->cu)
		return -ENODEV;
	a->device = cuda_memory_device_of(a->cu, uuid);
	if (a->device < 0)
		return a->device;
	if (!cuda_device_attribute(a->cu, CUDA_DEVICE_VMM, a->device))
		return log_errno(EOPNOTSUPP, "CUDA device %d has no virtual memory management",
				 a->device);
	a->memory.device = a->device;
	cuda_memory_properties_init(a, kind);
	return 0;
}

int cuda_check_alloc(enum cuda_kind kind, const unsigned char uuid[CUDA_UUID_SIZE])
{
	struct allocation a = { 0 };
	int err = cuda_memory_begin(&a, kind, uuid);

	return err ? err : cuda_memory_round_up(&a, 1);
}

int cuda_alloc(enum cuda_kind kind, const unsigned char uuid[CUDA_UUID_SIZE], size_t size,
	       size_t align, struct cuda_memory *memory)
{
	struct allocation a = { .align = align };
	int err;

	if ((kind != CUDA_DEVICE && kind != CUDA_HOST) || !size || (align & (align - 1)))
		return log_errno(EINVAL, "%zu bytes of CUDA memory, aligned to %zu", size, align);
	err = cuda_memory_begin(&a, kind, uuid);
	if (!err)
		err = cuda_memory_round_up(&a, size);
	if (!err)
		err = cuda_memory_create_on_device(&a);
	if (!err)
		*memory = a.memory;
	return err;
}

void cuda_free(struct cuda_memory *memory)
{
	const struct cuda_driver *cu = cuda_driver_loaded();
	struct cuda_scope scope;
	int outside;

	if (!cu || !memory->size)
		return;
	outside = cuda_scope_enter(&scope, cu, NULL, memory->device);
	cu->unmap(memory->addr, memory->size);
	cu->unreserve(memory->addr, memory->size);
	cu->release(memory->handle);
	if (!outside)
		cuda_scope_leave(&scope);
	cu->primary_release(memory->device);
	*memory = (struct cuda_memory){ 0 };
}
