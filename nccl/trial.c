/* SPDX-License-Identifier: Apache-2.0 */
#include "nccl/trial.h"
#include "CL/climport.h"
#include "nccl/log.h"
#include "nccl/memory.h"

#define TRIAL_SIZE 131072 /* two pages of 64 KiB */

/* A trial: a device, and memory of a GPU. */
struct trial {
	const struct transport *transport;
	int device;
	const struct climport_gpu *gpu;
	void *memory;
};

static int trial_flush(const struct trial *trial, const struct net_memory *mapped)
{
	int err = trial->transport->try_flush(trial->device, trial->memory,
					      net_memory_mapping(mapped));

	if (err)
		net_info("the GPU needs a flush after each receive, which device %s does not make",
			 trial->transport->device(trial->device)->name);
	return err;
}

static int trial_map(const struct trial *trial)
{
	struct net_memory *mapped = NULL;
	int err = net_memory_register(trial->transport, trial->device, NULL, trial->memory,
				      TRIAL_SIZE, NET_MEMORY_CUDA, &mapped);

	if (!err && trial->gpu->needs_flush)
		err = trial_flush(trial, mapped);
	net_memory_unregister(mapped);
	climport_invalidate(trial->memory, TRIAL_SIZE);
	return err;
}

static int trial_run(const struct transport *transport, int device, const struct climport_gpu *gpu)
{
	struct trial trial = { .transport = transport, .device = device, .gpu = gpu };
	int err = climport_alloc(CLIMPORT_DEVICE, TRIAL_SIZE, 0, gpu->uuid, &trial.memory);

	if (err)
		return err;
	err = trial_map(&trial);
	climport_free(trial.memory);
	return err;
}

bool trial_passes(const struct transport *transport, int device)
{
	const struct transport_device *properties = transport->device(device);
	struct climport_gpu gpu;
	int err;

	if (!properties->takes_dmabufs)
		return false;
	if (properties->is_proved)
		return true;
	if (climport_get_current_gpu(&gpu, sizeof(gpu))) {
		net_info("GPU memory is not offered: %s", climport_last_error());
		return false;
	}
	err = trial_run(transport, device, &gpu);
	if (err)
		net_info("device %s takes no GPU memory: %s", properties->name,
			 net_error_text(err));
	return !err;
}
