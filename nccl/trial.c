/* SPDX-License-Identifier: Apache-2.0 */
#include "nccl/trial.h"
#include "CL/climport.h"
#include "nccl/log.h"
#include "nccl/memory.h"

#include <dlfcn.h>
#include <string.h>

#define TRIAL_SIZE 131072 /* two pages of 64 KiB */

/*
 * CUDA's calls at init, before any message.  The process of a core for NVIDIA's GPUs has libcuda
 * already; a process without libcuda has no such GPU.
 */
#define CUDA_MAJOR 75 /* CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR */

/*
 * Up to compute capability 8.x a GPU may read old data after a device has written, unless the core
 * asks for a flush, which the plugin does not have (NCCL: topo, ncclTopoNeedFlush).
 */
#define NO_FLUSH_MAJOR 9

struct trial_cuda {
	int (*ctx_get_device)(int *device);
	int (*get_uuid)(void *uuid, int device);
	int (*get_attribute)(int *value, int attribute, int device);
};

static bool trial_find_cuda(struct trial_cuda *cuda)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);

	if (!library)
		return false;
	*(void **)&cuda->ctx_get_device = dlsym(library, "cuCtxGetDevice");
	*(void **)&cuda->get_uuid = dlsym(library, "cuDeviceGetUuid");
	*(void **)&cuda->get_attribute = dlsym(library, "cuDeviceGetAttribute");
	dlclose(library);
	return cuda->ctx_get_device && cuda->get_uuid && cuda->get_attribute;
}

/* The device of the thread's context, which needs no flush. */
static bool trial_get_uuid(unsigned char uuid[CLIMPORT_UUID_SIZE])
{
	struct trial_cuda cuda = { 0 };
	int device, major = 0;

	if (!trial_find_cuda(&cuda) || cuda.ctx_get_device(&device) ||
	    cuda.get_attribute(&major, CUDA_MAJOR, device) || cuda.get_uuid(uuid, device))
		return false;
	if (major >= NO_FLUSH_MAJOR)
		return true;
	net_info("GPU memory is not offered: compute capability %d needs a flush", major);
	return false;
}

static int trial_map(const struct transport *transport, int device, const void *memory)
{
	struct net_memory *mapped;
	int err = net_memory_register(transport, device, NULL, memory, TRIAL_SIZE, NET_MEMORY_CUDA,
				      &mapped);

	if (!err)
		net_memory_unregister(mapped);
	climport_invalidate(memory, TRIAL_SIZE);
	return err;
}

bool trial_passes(const struct transport *transport, int device)
{
	unsigned char uuid[CLIMPORT_UUID_SIZE];
	void *memory;
	int err;

	if (!transport->device(device)->takes_dmabufs)
		return false;
	if (transport->device(device)->is_proved)
		return true;
	if (!trial_get_uuid(uuid))
		return false;
	err = climport_alloc(CLIMPORT_DEVICE, TRIAL_SIZE, 0, uuid, &memory);
	if (!err) {
		err = trial_map(transport, device, memory);
		climport_free(memory);
	}
	if (err)
		net_info("device %s takes no GPU memory: %s", transport->device(device)->name,
			 net_error_text(err));
	return !err;
}
