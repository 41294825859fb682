/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of the host and of GPUs as dma-bufs of the kernel module. */
#include <errno.h>
#include <unistd.h>

#include "import/export/exporter.h"
#include "import/export/gdmabuf.h"
#include "import/kinds/maps.h"
#include "util/log.h"

static unsigned int exporter_gdmabuf_options(unsigned int options)
{
	return (options & EXPORT_READ_ONLY ? GDMABUF_OPTION_READ_ONLY : 0u) |
	       (options & EXPORT_KEEP ? GDMABUF_OPTION_KEEP : 0u) |
	       (options & EXPORT_REVOCABLE ? GDMABUF_OPTION_REVOCABLE : 0u);
}

/* @options: the module's.  @buffer_id: for CUDA to tell of the free; 0: the module tells. */
static int exporter_gdmabuf_make(const struct export_request *request, enum gdmabuf_memory memory,
				 unsigned int options, uint64_t buffer_id, struct export_range *out)
{
	struct origin origin = { .buffer_id = buffer_id, .inside = request->address };
	struct gdmabuf_range range;
	int ret = gdmabuf_export(memory, request->address, request->size, options, &range);

	if (ret)
		return ret;
	origin.address = request->address - range.offset;
	origin.context = range.context;
	origin.slot = range.slot;
	origin.generation = range.generation;
	return export_hand_out(&(struct export_range){ range.fd, range.offset, 0 }, &origin, NULL,
			       out);
}

/*
 * The module watches revocable memory, and the first page of memory that the module keeps.  A watch
 * is a second pin, for which the driver takes as long as for the first.  The first page does not
 * speak for further allocations of a range: the module neither keeps such a range nor lets a later
 * export share the pin, as the later export might be of other memory.
 */
static unsigned int exporter_gdmabuf_cuda_options(const struct export_request *request)
{
	unsigned int options = request->options;

	if (options & EXPORT_REVOCABLE)
		return exporter_gdmabuf_options(options);
	if (!cuda_range_contains(&request->memory, request->address, request->size))
		return exporter_gdmabuf_options(options & ~EXPORT_KEEP) | GDMABUF_OPTION_UNWATCHED;
	if (options & EXPORT_KEEP || !request->memory.buffer_id)
		return exporter_gdmabuf_options(options);
	return exporter_gdmabuf_options(options) | GDMABUF_OPTION_UNWATCHED;
}

static bool exporter_gdmabuf_cuda_takes(const struct export_request *request)
{
	return request->memory.kind == CUDA_DEVICE;
}

/* Without the module's watch, CUDA tells of the free. */
static enum export_outcome exporter_gdmabuf_cuda_export(const struct export_request *request,
							struct export_range *out, int *error)
{
	unsigned int options = exporter_gdmabuf_cuda_options(request);
	uint64_t buffer_id = options & GDMABUF_OPTION_UNWATCHED ? request->memory.buffer_id : 0;
	struct export_range made;

	*error = exporter_gdmabuf_make(request, GDMABUF_MEMORY_GPU, options, buffer_id, &made);
	if (*error)
		return EXPORT_DONE;
	if (options & GDMABUF_OPTION_UNWATCHED && cuda_buffer_id(request->address) != buffer_id) {
		close(made.fd);
		*error = log_errno(ENODEV, "the CUDA memory at %#zx was freed meanwhile",
				   (size_t)request->address);
		return EXPORT_DONE;
	}
	*out = made;
	return EXPORT_DONE;
}

/* Memory of the host has no revocable dma-buf. */
static bool exporter_gdmabuf_host_takes(const struct export_request *request)
{
	return request->memory.kind != CUDA_DEVICE && !(request->options & EXPORT_REVOCABLE);
}

/* -EFAULT: no host memory, but maybe a GPU's. */
static enum export_outcome exporter_gdmabuf_host_export(const struct export_request *request,
							struct export_range *out, int *error)
{
	unsigned int have;

	*error = exporter_gdmabuf_make(request, GDMABUF_MEMORY_HOST,
				       exporter_gdmabuf_options(request->options), 0, out);
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

/* A GPU's driver may know memory that CUDA does not know. */
static enum export_outcome exporter_gdmabuf_gpu_export(const struct export_request *request,
						       struct export_range *out, int *error)
{
	*error = exporter_gdmabuf_make(request, GDMABUF_MEMORY_GPU,
				       exporter_gdmabuf_options(request->options), 0, out);
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
