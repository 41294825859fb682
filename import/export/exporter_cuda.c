/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA's device memory as CUDA's own dma-bufs, which EXPORT_KEEP keeps as registrations. */
#include <errno.h>

#include "import/export/exporter.h"
#include "import/export/registration.h"

static bool exporter_cuda_takes(const struct export_request *request)
{
	return request->memory.kind == CUDA_DEVICE && !(request->options & EXPORT_MAPPABLE);
}

static int exporter_cuda_make(const struct export_request *request, struct export_range *out)
{
	struct cuda_export made;
	int ret = cuda_export_dmabuf(&request->memory, request->address, request->size, &made);

	if (ret)
		return ret;
	return export_hand_out(request, &(struct export_range){ made.fd, made.offset, made.size },
			       out);
}

/* -EOPNOTSUPP: the driver makes no dma-bufs of the memory. */
static enum export_outcome exporter_cuda_export(const struct export_request *request,
						struct export_range *out, int *error)
{
	if (request->options & EXPORT_KEEP && registration_can_keep(request))
		*error = registration_export_kept(REGISTRATION_BY_CUDA, request, out);
	else
		*error = exporter_cuda_make(request, out);
	return *error == -EOPNOTSUPP ? EXPORT_DECLINED : EXPORT_DONE;
}

const struct exporter exporter_cuda = {
	.name = "CUDA",
	.takes = exporter_cuda_takes,
	.export = exporter_cuda_export,
};
