/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of the host and of GPUs as dma-bufs of the kernel module. */
#include <errno.h>
#include <unistd.h>

#include "import/export/exporter.h"
#include "import/export/gdmabuf.h"
#include "import/export/registration.h"
#include "import/kinds/maps.h"
#include "util/log.h"
#include "util/shortage.h"

static bool exporter_gdmabuf_cuda_takes(const struct export_request *request)
{
	return request->memory.kind == CUDA_DEVICE;
}

/* CUDA may have given the address to other memory before the module pinned. */
int exporter_gdmabuf_make_cuda(const struct cuda_range *memory, uintptr_t address, size_t size,
			       struct export_range *made)
{
	int ret = gdmabuf_export(GDMABUF_MEMORY_GPU, address, size, false, made);

	if (ret || cuda_buffer_id(address) == memory->buffer_id)
		return ret;
	close(made->fd);
	return log_errno(ENODEV, "the CUDA memory at %#zx was freed meanwhile", (size_t)address);
}

static int exporter_gdmabuf_export_cuda(const struct export_request *request,
					struct export_range *out)
{
	struct export_range made;
	int ret;

	if (request->options & EXPORT_KEEP && registration_can_keep(request))
		return registration_export_kept(REGISTRATION_BY_MODULE, request, out);
	ret = exporter_gdmabuf_make_cuda(&request->memory, request->address, request->size, &made);
	return ret ? ret : export_hand_out(request, &made, out);
}

static enum export_outcome exporter_gdmabuf_cuda_export(const struct export_request *request,
							struct export_range *out, int *error)
{
	*error = exporter_gdmabuf_export_cuda(request, out);
	return EXPORT_DONE;
}

static bool exporter_gdmabuf_host_takes(const struct export_request *request)
{
	return request->memory.kind != CUDA_DEVICE;
}

/*
 * A registration is for exports that may write.  What cannot be kept, because a watch or a second
 * descriptor is missing or the pages change all the time, is exported all the same.
 */
static int exporter_gdmabuf_export_host(const struct export_request *request,
					struct export_range *out)
{
	const bool is_read_only = request->options & EXPORT_READ_ONLY;

	if (request->options & EXPORT_KEEP && !is_read_only) {
		int ret = registration_export_kept(REGISTRATION_OF_HOST, request, out);

		if (ret != -EAGAIN && !shortage_is(ret))
			return ret;
	}
	return gdmabuf_export(GDMABUF_MEMORY_HOST, request->address, request->size, is_read_only,
			      out);
}

/* -EFAULT: no host memory, but maybe a GPU's. */
static enum export_outcome exporter_gdmabuf_host_export(const struct export_request *request,
							struct export_range *out, int *error)
{
	unsigned int have;

	*error = exporter_gdmabuf_export_host(request, out);
	/* An unmapped range is the caller's mistake, with the module or without. */
	if (*error == -ENXIO &&
	    maps_check((void *)request->address, request->size, 0, &have, NULL) == -EFAULT) {
		*error = -EFAULT;
		return EXPORT_DONE;
	}
	return *error == -EFAULT ? EXPORT_DECLINED : EXPORT_DONE;
}

/* GPU memory has no read-only dma-buf. */
static bool exporter_gdmabuf_gpu_takes(const struct export_request *request)
{
	return request->memory.kind != CUDA_DEVICE && !(request->options & EXPORT_READ_ONLY);
}

/* A GPU's driver may know memory that CUDA does not know.  Nobody tells of its free: it is not kept. */
static enum export_outcome exporter_gdmabuf_gpu_export(const struct export_request *request,
						       struct export_range *out, int *error)
{
	*error = gdmabuf_export(GDMABUF_MEMORY_GPU, request->address, request->size, false, out);
	if (*error == -EOPNOTSUPP)
		*error = -EFAULT;
	return EXPORT_DONE;
}

const struct exporter exporter_gdmabuf_cuda = {
	.name = "gdmabuf, of CUDA's memory",
	.takes = exporter_gdmabuf_cuda_takes,
	.export = exporter_gdmabuf_cuda_export,
};

const struct exporter exporter_gdmabuf_host = {
	.name = "gdmabuf, of the host's memory",
	.takes = exporter_gdmabuf_host_takes,
	.export = exporter_gdmabuf_host_export,
};

const struct exporter exporter_gdmabuf_gpu = {
	.name = "gdmabuf, of a GPU's memory",
	.takes = exporter_gdmabuf_gpu_takes,
	.export = exporter_gdmabuf_gpu_export,
};
