/* SPDX-License-Identifier: Apache-2.0 */
/* A GPU, as a client of RM sees it. */
#ifndef IMPORT_NVIDIA_RM_RM_DEVICE_H
#define IMPORT_NVIDIA_RM_RM_DEVICE_H

#include <stdbool.h>

#include "import/nvidia/rm/rm_client.h"

struct rm_device {
	struct rm_device *next;
	unsigned char uuid[RM_UUID_SIZE];
	struct rm_client *client;
	struct descriptor_own node; /* /dev/nvidiaN */
	struct descriptor_own anchor;
	uint32_t handle;
	bool is_retired; /* RM has freed the device; of the thread that makes a device */
};

/* The device of the process's client.  Never freed.  0 or a negative errno, logged. */
int rm_device_get(const unsigned char uuid[RM_UUID_SIZE], struct rm_device **device);

/* Host pages, pinned, as an object of the device; rm_device_free() ends the object. */
int rm_device_pin(const struct rm_device *device, const void *addr, size_t size, uint32_t *object);

/* The memory of a dma-buf as an object of the device. */
int rm_device_attach(const struct rm_device *device, int dmabuf, size_t size, uint32_t *object);

/* A new descriptor of an object; the descriptor keeps the memory.  -errno. */
int rm_device_export(const struct rm_device *device, uint32_t object);

void rm_device_free(const struct rm_device *device, uint32_t object);

#endif
