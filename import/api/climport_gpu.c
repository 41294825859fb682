/* SPDX-License-Identifier: Apache-2.0 */
/* libclimport's question to the thread's CUDA context: climport_get_current_gpu(). */
#include <CL/climport.h>

#include <errno.h>
#include <string.h>

#include "import/api/caller.h"
#include "import/api/error.h"
#include "import/api/public.h"
#include "import/nvidia/cuda/cuda.h"
#include "util/thread.h"

/* Struct of version 0.2.0. */
#define GPU_SIZE SIZE_TO(struct climport_gpu, needs_flush)

/* Errors of cuda.h that the function does not have are -EIO. */
static int climport_gpu_error(int ret)
{
	return !ret || ret == -ENODEV ? ret : -EIO;
}

PUBLIC int climport_get_current_gpu(struct climport_gpu *out, size_t out_size)
{
	struct climport_gpu made = { .needs_flush = 0 };
	struct cuda_gpu gpu;
	int ret;
	THREAD_NO_CANCEL();

	climport_error_begin();
	ret = climport_check_caller(0, 0, out_size, GPU_SIZE);
	if (!ret)
		ret = climport_gpu_error(cuda_get_current_gpu(&gpu));
	if (ret)
		return climport_error_end(ret);
	memcpy(made.uuid, gpu.uuid, sizeof(made.uuid));
	made.needs_flush = gpu.needs_flush;
	climport_fill(out, out_size, &made, sizeof(made));
	return climport_error_end(0);
}
