/* SPDX-License-Identifier: Apache-2.0 */
#include "cuda.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "gpu.h"

struct cuda cuda;

#define AT(member) offsetof(struct cuda, member)

static const struct {
	const char *name;
	size_t at;
} functions[] = {
	{ "cuInit", AT(init) },
	{ "cuDeviceGetCount", AT(device_count) },
	{ "cuDeviceGet", AT(device_get) },
	{ "cuDeviceGetUuid", AT(device_uuid) },
	{ "cuDevicePrimaryCtxRetain", AT(primary_retain) },
	{ "cuCtxPushCurrent_v2", AT(push) },
	{ "cuCtxSynchronize", AT(synchronize) },
	{ "cuMemAlloc_v2", AT(alloc) },
	{ "cuMemFree_v2", AT(free) },
	{ "cuMemAllocManaged", AT(alloc_managed) },
	{ "cuMemHostAlloc", AT(alloc_host) },
	{ "cuMemFreeHost", AT(free_host) },
	{ "cuMemcpyHtoD_v2", AT(to_device) },
	{ "cuMemcpyDtoH_v2", AT(to_host) },
	{ "cuMemGetInfo_v2", AT(info) },
	{ "cuMemCreate", AT(create) },
	{ "cuMemRelease", AT(release) },
	{ "cuMemAddressReserve", AT(reserve) },
	{ "cuMemAddressFree", AT(unreserve) },
	{ "cuMemMap", AT(map) },
	{ "cuMemUnmap", AT(unmap) },
	{ "cuMemSetAccess", AT(set_access) },
	{ "cuMemExportToShareableHandle", AT(share) },
	{ "cuMemGetHandleForAddressRange", AT(get_handle) },
};

static const char *cuda_load(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL), *found;
	static char why[128];

	if (!library)
		return "there is no libcuda.so.1";
	for (size_t i = 0; i < sizeof(functions) / sizeof(*functions); i++) {
		found = dlsym(library, functions[i].name);
		if (!found) {
			snprintf(why, sizeof(why), "this libcuda has no %s", functions[i].name);
			return why;
		}
		memcpy((char *)&cuda + functions[i].at, &found, sizeof(found));
	}
	return NULL;
}

static bool cuda_find_device(const unsigned char uuid[16])
{
	unsigned char have[16];
	int count = 0;

	cuda.device_count(&count);
	for (int i = 0; i < count; i++)
		if (!cuda.device_get(&cuda.device, i) && !cuda.device_uuid(have, cuda.device) &&
		    !memcmp(have, uuid, sizeof(have)))
			return true;
	return false;
}

static const char *cuda_open_device(const unsigned char uuid[16])
{
	const char *why = cuda_load();
	void *context;

	if (why)
		return why;
	if (cuda.init(0))
		return "cuInit fails";
	if (!cuda_find_device(uuid))
		return "CUDA does not know this device";
	if (cuda.primary_retain(&context, cuda.device) || cuda.push(context))
		return "CUDA gives no context";
	return NULL;
}

const char *cuda_open(const unsigned char uuid[16])
{
	static const char *why;
	static bool tried;

	if (!tried)
		why = cuda_open_device(uuid);
	tried = true;
	return why;
}

void cuda_need(void)
{
	const char *why = gpu.has_uuid ? cuda_open(gpu.uuid) : "the device has no UUID";

	if (why)
		test_skip("%s", why);
}

/* A copy from pageable memory may return after staging, so synchronize. */
void cuda_write(uint64_t to, const void *from, size_t size)
{
	EXPECT_EQ(cuda.to_device(to, from, size), 0);
	EXPECT_EQ(cuda.synchronize(), 0);
}

void cuda_read(void *to, uint64_t from, size_t size)
{
	EXPECT_EQ(cuda.to_host(to, from, size), 0);
	EXPECT_EQ(cuda.synchronize(), 0);
}

void vmm_create_sized(struct vmm *vmm, int location, int handle_types, size_t size)
{
	const struct properties properties = {
		.type = 1,
		.handle_types = handle_types,
		.location = { location, location == LOCATION_DEVICE ? cuda.device : 0 },
	};
	const struct access access[] = {
		{ { LOCATION_DEVICE, cuda.device }, 3 },
		{ properties.location, 3 },
	};

	vmm->size = size;
	EXPECT_EQ(cuda.create(&vmm->handle, vmm->size, &properties, 0), 0);
	EXPECT_EQ(cuda.reserve(&vmm->address, vmm->size, 0, 0, 0), 0);
	EXPECT_EQ(cuda.map(vmm->address, vmm->size, 0, vmm->handle, 0), 0);
	EXPECT_EQ(cuda.set_access(vmm->address, vmm->size, access,
				  location == LOCATION_DEVICE ? 1 : 2),
		  0);
}

void vmm_create(struct vmm *vmm, int location, int handle_types)
{
	vmm_create_sized(vmm, location, handle_types, VMM_SIZE);
}

void vmm_destroy(const struct vmm *vmm)
{
	cuda.unmap(vmm->address, vmm->size);
	cuda.unreserve(vmm->address, vmm->size);
	cuda.release(vmm->handle);
}
