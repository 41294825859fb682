/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order of a device's work: streams, and events on the legacy default stream.  And memory as
 * programs allocate memory (cuMemAlloc).  All in the device's primary context, which an open order
 * holds.
 *
 * Functions may be called from any thread.  Results are 0 or a negative errno, logged.
 */
#ifndef IMPORT_NVIDIA_CUDA_CUDA_ORDER_H
#define IMPORT_NVIDIA_CUDA_CUDA_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "import/nvidia/cuda/cuda.h"

struct cuda_order {
	const struct cuda_driver *cu;
	int device;
	void *context;
	unsigned char uuid[CUDA_UUID_SIZE];
	size_t memory; /* bytes of the device */
};

/*
 * Loads libcuda.  @ordinal: of the device, as cudaSetDevice() has the number.  -ENODEV: no such
 * device, or no libcuda.
 */
int cuda_order_open(struct cuda_order *order, int ordinal);
void cuda_order_close(struct cuda_order *order);

/* Records *@event, which comes after all earlier work of blocking streams.  Makes *@event if NULL. */
int cuda_order_record(const struct cuda_order *order, void **event);
bool cuda_order_is_reached(const struct cuda_order *order, void *event);
int cuda_order_wait(const struct cuda_order *order, void *event);
void cuda_order_event_destroy(const struct cuda_order *order, void *event);

/* Waits for all work of the context. */
int cuda_order_drain(const struct cuda_order *order);

/* A number that no other stream of the process ever has.  False: the driver gives no such number. */
bool cuda_order_stream_id(const struct cuda_order *order, void *stream, uint64_t *id);

/* Whether work in the stream becomes a part of a CUDA graph, and runs later, any number of times. */
bool cuda_order_is_capturing(const struct cuda_order *order, void *stream);

/* The end of the capture fails: no graph is made. */
void cuda_order_spoil_capture(const struct cuda_order *order, void *stream);

/* cuMemAlloc(), which CUDA's IPC handles are for, and cuMemFree(). */
int cuda_order_alloc(const struct cuda_order *order, size_t size, uintptr_t *address);
void cuda_order_free(const struct cuda_order *order, uintptr_t address);

/* cuMemHostAlloc() for all contexts, mapped, and cuMemFreeHost(), also after cuda_order_close(). */
int cuda_order_host_alloc(const struct cuda_order *order, size_t size, uintptr_t *address);
void cuda_order_host_free(const struct cuda_order *order, uintptr_t address);

#endif
