/* SPDX-License-Identifier: Apache-2.0 */
/* The first GPU by libcuda.so.1: the driver's, or the fake of tests/fake. */
#ifndef TESTS_NCCL_NCCL_GPU_H
#define TESTS_NCCL_NCCL_GPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct nccl_gpu {
	bool is_fake;
	unsigned char uuid[16];
	int (*init)(unsigned int flags);
	int (*device_get)(int *device, int ordinal);
	int (*device_uuid)(void *uuid, int device);
	int (*primary_retain)(void **context, int device);
	int (*push)(void *context);
	int (*synchronize)(void);
	int (*alloc)(uint64_t *address, size_t size);
	int (*free)(uint64_t address);
	int (*memory_info)(size_t *free, size_t *total);
	int (*to_device)(uint64_t to, const void *from, size_t size);
	int (*to_host)(void *to, uint64_t from, size_t size);
	int (*export)(int *fd, uint64_t address, size_t size, int type, unsigned long long flags);
};

#define NCCL_GPU_DMA_BUF 1 /* CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD */

extern struct nccl_gpu nccl_gpu;

/*
 * Makes the GPU's context current, as the core does before the core starts the plugin.  Not in a
 * process whose parent has a context.  false: there is no GPU.
 */
bool nccl_gpu_open(void);

#endif /* TESTS_NCCL_NCCL_GPU_H */
