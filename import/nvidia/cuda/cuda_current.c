/* SPDX-License-Identifier: Apache-2.0 */
#include "import/nvidia/cuda/cuda.h"
#include "import/nvidia/cuda/cuda_driver.h"
#include "util/log.h"

#include <errno.h>

/*
 * The first compute capability whose kernels see what a device has written without a flush.  The rule
 * is NCCL's (ncclTopoNeedFlush).
 */
#define CUDA_NO_FLUSH_MAJOR 9

int cuda_get_current_gpu(struct cuda_gpu *gpu)
{
	const struct cuda_driver *cu = cuda_driver_loaded();
	struct cuda_gpu found;
	int device, major, result;

	if (!cu)
		return log_errno(ENODEV, "the process has not loaded libcuda.so.1");
	result = cu->context_device(&device);
	if (result)
		return cuda_failed(cu, result, "the thread's CUDA context");
	result = cu->device_attribute(&major, CUDA_DEVICE_COMPUTE_MAJOR, device);
	if (!result)
		result = cu->device_uuid(found.uuid, device);
	if (result)
		return cuda_failed(cu, result, "CUDA device %d", device);
	found.needs_flush = major < CUDA_NO_FLUSH_MAJOR;
	*gpu = found;
	return 0;
}
