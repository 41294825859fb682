/* SPDX-License-Identifier: Apache-2.0 */
#include "import/export/export.h"

#include <errno.h>
#include <stdbool.h>

#include "import/cache/cache.h"
#include "import/export/gdmabuf.h"
#include "import/export/origin.h"
#include "import/export/registration.h"
#include "import/kinds/maps.h"
#include "import/kinds/range.h"
#include "util/descriptor.h"
#include "util/log.h"
#include "util/shortage.h"
#include "util/thread.h"

/* Passes a dma-buf of CUDA's device memory on, and remembers of what memory it is. */
static int export_hand_out(const struct export_request *request, const struct export_range *made,
			   struct export_range *out)
{
	const struct origin origin = {
		.address = request->address - made->offset,
		.buffer_id = request->memory.buffer_id,
		.inside = request->address,
	};
	struct descriptor_id id;
	int ret = descriptor_identify(made->fd, &id);

	if (ret)
		return ret;
	origin_add(&id, &origin);
	*out = *made;
	return 0;
}

/* Registrations of memory that was at the address before end here. */
static int export_identify(struct export_request *request)
{
	int ret = cuda_identify(request->address, &request->memory);

	if (ret)
		return ret;
	if (request->memory.kind == CUDA_MANAGED)
		return log_errno(EOPNOTSUPP, "%#zx is CUDA managed memory, which moves",
				 (size_t)request->address);
	if (request->memory.kind != CUDA_DEVICE) {
		registration_drop_stale(request->address, request->size);
		return 0;
	}
	if (request->options & EXPORT_READ_ONLY)
		return log_errno(EOPNOTSUPP, "%#zx is CUDA memory: no read-only dma-buf of that",
				 (size_t)request->address);
	registration_drop_stale(request->memory.base, request->memory.size);
	return 0;
}

static bool export_is_kept(const struct export_request *request)
{
	return request->options & EXPORT_KEEP && registration_can_keep(request);
}

/* -EOPNOTSUPP: the driver makes no dma-bufs of the memory. */
static int export_by_cuda(const struct export_request *request, struct export_range *out)
{
	struct cuda_export made;
	int ret;

	if (export_is_kept(request))
		return registration_export_kept(REGISTRATION_BY_CUDA, request, out);
	ret = cuda_export_dmabuf(&request->memory, request->address, request->size, &made);
	if (ret)
		return ret;
	return export_hand_out(request, &(struct export_range){ made.fd, made.offset, made.size },
			       out);
}

static int export_by_module(const struct export_request *request, struct export_range *out)
{
	struct export_range made;
	int ret;

	if (export_is_kept(request))
		return registration_export_kept(REGISTRATION_BY_MODULE, request, out);
	ret = registration_export_by_module(&request->memory, request->address, request->size,
					    &made);
	return ret ? ret : export_hand_out(request, &made, out);
}

/* A dma-buf of CUDA's own cannot be mapped. */
static int export_device(const struct export_request *request, struct export_range *out)
{
	int ret = request->options & EXPORT_MAPPABLE ? -EOPNOTSUPP : export_by_cuda(request, out);

	return ret == -EOPNOTSUPP ? export_by_module(request, out) : ret;
}

/*
 * A registration is for exports that may write.  What cannot be kept, because a watch or a second
 * descriptor is missing or the pages change all the time, is exported all the same.
 */
static int export_pages(const struct export_request *request, struct export_range *out)
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

/*
 * What is no memory of the host may be a GPU's that CUDA does not know; nobody tells of its free, and
 * it is not kept.
 */
static int export_pages_or_gpu(const struct export_request *request, struct export_range *out)
{
	unsigned int have;
	int ret = export_pages(request, out);

	/* An unmapped range is the caller's mistake, with the module or without. */
	if (ret == -ENXIO)
		return maps_check((void *)request->address, request->size, 0, &have, NULL) ==
				       -EFAULT
			       ? -EFAULT
			       : ret;
	if (ret != -EFAULT || request->options & EXPORT_READ_ONLY)
		return ret;
	ret = gdmabuf_export(GDMABUF_MEMORY_GPU, request->address, request->size, false, out);
	return ret == -EOPNOTSUPP ? -EFAULT : ret;
}

static int export_host(const struct export_request *request, struct export_range *out)
{
	int ret = exporter_udmabuf_takes(request) ? exporter_udmabuf_export(request, out) : -ENOENT;

	return ret == -ENOENT ? export_pages_or_gpu(request, out) : ret;
}

/*
 * The hit is most of the calls, so a registration is looked for before the memory is identified, and
 * without THREAD_NO_CANCEL(): the registration guards its calls that may be cancellation points.
 */
static bool export_registered(const struct export_request *request, struct export_range *out)
{
	const bool is_mappable = request->options & EXPORT_MAPPABLE;
	struct cache_ref ref;
	int ret;

	if (!(request->options & EXPORT_KEEP) || request->options & EXPORT_READ_ONLY ||
	    !registration_find(is_mappable ? REGISTRATION_BY_MODULE : REGISTRATION_BY_CUDA,
			       REGISTRATION_OF_HOST, request->address, request->size, &ref))
		return false;
	ret = registration_export(&ref, out);
	registration_put(&ref);
	return !ret;
}

static int export_once(struct export_request *request, struct export_range *out)
{
	int error = export_identify(request);

	if (error)
		return error;
	return request->memory.kind == CUDA_DEVICE ? export_device(request, out)
						   : export_host(request, out);
}

static int export_unregistered(struct export_request *request, struct export_range *out)
{
	struct shortage_retry retry = { 0 };
	int ret;
	THREAD_NO_CANCEL();

	do
		ret = export_once(request, out);
	while (shortage_retry(&retry, ret));
	return ret;
}

int export_dmabuf(uintptr_t address, size_t size, unsigned int options, struct export_range *out)
{
	struct export_request request = { .address = address, .size = size, .options = options };
	uintptr_t last;

	if (!size || __builtin_add_overflow(address, size - 1, &last))
		return range_refuse(address, size);
	return export_registered(&request, out) ? 0 : export_unregistered(&request, out);
}

/* 0 or the reason why @request's device memory cannot be registered. */
static int export_check_device(const struct export_request *request)
{
	const struct cuda_range *memory = &request->memory;
	size_t address = request->address;

	if (!cuda_range_contains(memory, request->address, request->size))
		return log_errno(ERANGE,
				 "%zu bytes at %#zx reach beyond the CUDA allocation, to %#zx",
				 request->size, address, (size_t)(memory->base + memory->size));
	return registration_can_keep(request)
		       ? 0
		       : log_errno(EOPNOTSUPP,
				   "CUDA memory at %#zx has no buffer id, so climport cannot tell "
				   "when it is freed: use climport_export_dmabuf()",
				   address);
}

static int export_register_device(const struct export_request *request, struct cache_ref *ref)
{
	int ret = export_check_device(request);

	if (ret)
		return ret;
	ret = registration_get(REGISTRATION_BY_CUDA, request, ref);
	return ret == -EOPNOTSUPP ? registration_get(REGISTRATION_BY_MODULE, request, ref) : ret;
}

static int export_register_once(struct export_request *request, struct registration *registration)
{
	int ret = export_identify(request);

	*registration = (struct registration){ 0 };
	if (ret)
		return ret;
	return request->memory.kind == CUDA_DEVICE
		       ? export_register_device(request, &registration->ref)
		       : host_registration_make(request->address, request->size,
						&registration->host);
}

int export_register(uintptr_t address, size_t size, struct registration *registration)
{
	struct export_request request = { .address = address, .size = size };
	struct shortage_retry retry = { 0 };
	uintptr_t last;
	int ret;

	if (!size || __builtin_add_overflow(address, size - 1, &last))
		return range_refuse(address, size);
	do
		ret = export_register_once(&request, registration);
	while (shortage_retry(&retry, ret));
	return ret;
}

void export_unregister(struct registration *registration)
{
	if (registration->ref.pin)
		registration_put(&registration->ref);
	else
		host_registration_put(registration->host.slot, registration->host.number);
}

void export_invalidate(uintptr_t address, size_t size)
{
	registration_invalidate(address, size);
	host_registration_invalidate(address, size);
}

void export_stats(struct cache_stats *stats)
{
	*stats = (struct cache_stats){ 0 };
	registration_add_stats(stats);
	host_registration_add_stats(stats);
}
