/* SPDX-License-Identifier: Apache-2.0 */
#include "nccl_gpu.h"

#include <dlfcn.h>
#include <stdlib.h>

#define COMPUTE_MAJOR 75 /* CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR */

struct nccl_gpu nccl_gpu;

static const struct {
	const char *name;
	void **at;
} nccl_gpu_functions[] = {
	{ "cuInit", (void **)&nccl_gpu.init },
	{ "cuDeviceGet", (void **)&nccl_gpu.device_get },
	{ "cuDeviceGetUuid", (void **)&nccl_gpu.device_uuid },
	{ "cuDevicePrimaryCtxRetain", (void **)&nccl_gpu.primary_retain },
	{ "cuCtxPushCurrent_v2", (void **)&nccl_gpu.push },
	{ "cuCtxSynchronize", (void **)&nccl_gpu.synchronize },
	{ "cuMemAlloc_v2", (void **)&nccl_gpu.alloc },
	{ "cuMemFree_v2", (void **)&nccl_gpu.free },
	{ "cuMemGetInfo_v2", (void **)&nccl_gpu.memory_info },
	{ "cuMemcpyHtoD_v2", (void **)&nccl_gpu.to_device },
	{ "cuMemcpyDtoH_v2", (void **)&nccl_gpu.to_host },
	{ "cuMemGetHandleForAddressRange", (void **)&nccl_gpu.export },
};

/* The fake's GPU needs no flush, but for FAKE_GPU_MAJOR in the environment. */
static void nccl_gpu_prepare_fake(void *library)
{
	void (*reset)(int devices) = NULL;
	void (*set_attribute)(int device, int attribute, int value) = NULL;
	const char *major = getenv("FAKE_GPU_MAJOR");

	*(void **)&reset = dlsym(library, "fake_cuda_reset");
	*(void **)&set_attribute = dlsym(library, "fake_cuda_set_attribute");
	if (!reset || !set_attribute)
		return;
	nccl_gpu.is_fake = true;
	reset(1);
	set_attribute(0, COMPUTE_MAJOR, major ? atoi(major) : 9);
}

bool nccl_gpu_open(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW), *context;
	int device;

	if (!library)
		return false;
	nccl_gpu_prepare_fake(library);
	for (size_t i = 0; i < sizeof(nccl_gpu_functions) / sizeof(nccl_gpu_functions[0]); i++) {
		*nccl_gpu_functions[i].at = dlsym(library, nccl_gpu_functions[i].name);
		if (!*nccl_gpu_functions[i].at)
			return false;
	}
	return !nccl_gpu.init(0) && !nccl_gpu.device_get(&device, 0) &&
	       !nccl_gpu.device_uuid(nccl_gpu.uuid, device) &&
	       !nccl_gpu.primary_retain(&context, device) && !nccl_gpu.push(context);
}
