/* SPDX-License-Identifier: Apache-2.0 */
#include "import/export/export.h"

#include <errno.h>
#include <stdbool.h>

#include "import/cache/cache.h"
#include "import/export/exporter.h"
#include "import/export/registration.h"
#include "import/kinds/ranges.h"
#include "util/descriptor.h"
#include "util/log.h"
#include "util/shortage.h"
#include "util/thread.h"

/* The first exporter that takes the memory exports the memory. */
static const struct exporter *const exporters[] = {
	&exporter_cuda,		&exporter_gdmabuf_cuda, &exporter_udmabuf,
	&exporter_gdmabuf_host, &exporter_gdmabuf_gpu,
};

int export_hand_out(const struct export_request *request, const struct export_range *made,
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

/* An exporter takes every request. */
static int export_by_first(const struct export_request *request, struct export_range *out)
{
	int error = -EFAULT;

	for (size_t i = 0; i < sizeof(exporters) / sizeof(*exporters); i++) {
		if (!exporters[i]->takes(request))
			continue;
		log_debug("export of %zu bytes at %#zx: %s", request->size,
			  (size_t)request->address, exporters[i]->name);
		if (exporters[i]->export(request, out, &error) == EXPORT_DONE)
			break;
	}
	return error;
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

	return error ? error : export_by_first(request, out);
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
		       : log_errno(EOPNOTSUPP, "CUDA gives memory at %#zx no buffer id", address);
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
