/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA's device memory as CUDA's own dma-bufs, which EXPORT_KEEP keeps as registrations. */
#include <errno.h>

#include "import/export/exporter.h"
#include "import/export/registration.h"
#include "util/log.h"

static bool exporter_cuda_takes(const struct export_request *request)
{
	return request->memory.kind == CUDA_DEVICE &&
	       !(request->options & (EXPORT_MAPPABLE | EXPORT_REVOCABLE));
}

static int exporter_cuda_make(const struct export_request *request, struct export_range *out)
{
	struct origin origin = {
		.buffer_id = request->memory.buffer_id,
		.inside = request->address,
	};
	struct cuda_export made;
	int ret = cuda_export_dmabuf(&request->memory, request->address, request->size, &made);

	if (ret)
		return ret;
	origin.address = request->address - made.offset;
	return export_hand_out(&(struct export_range){ made.fd, made.offset, made.size }, &origin,
			       NULL, out);
}

static int exporter_cuda_keep(const struct export_request *request, struct export_range *out)
{
	struct registration registration;
	int ret = registration_get(request, REGISTRATION_BY_CUDA, &registration);

	if (ret)
		return ret;
	ret = registration_export(&registration, out);
	if (ret == -ESTALE)
		registration_invalidate(registration.ref.pin->base, registration.ref.pin->size);
	registration_put(&registration);
	return ret;
}

/* The program may close the descriptor of a registration.  The registration is then made anew. */
static int exporter_cuda_keep_open(const struct export_request *request, struct export_range *out)
{
	int ret = exporter_cuda_keep(request, out);

	if (ret == -ESTALE)
		ret = exporter_cuda_keep(request, out);
	return ret == -ESTALE ? log_errno(EBADF, "the program closes descriptors of climport")
			      : ret;
}

/* -EOPNOTSUPP: the driver makes no dma-bufs of the memory. */
static enum export_outcome exporter_cuda_export(const struct export_request *request,
						struct export_range *out, int *error)
{
	bool keep = request->options & EXPORT_KEEP && registration_can_keep(request);

	*error = keep ? exporter_cuda_keep_open(request, out) : exporter_cuda_make(request, out);
	return *error == -EOPNOTSUPP ? EXPORT_DECLINED : EXPORT_DONE;
}

const struct exporter exporter_cuda = {
	.name = "CUDA",
	.takes = exporter_cuda_takes,
	.export = exporter_cuda_export,
};
