/* SPDX-License-Identifier: Apache-2.0 */
#include "import/export/export.h"

#include <errno.h>
#include <stdbool.h>
#include <unistd.h>

#include "import/cache/cache.h"
#include "import/export/exporter.h"
#include "import/export/gdmabuf.h"
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

int export_hand_out(const struct export_range *made, const struct origin *origin,
		    const struct descriptor_id *expected, struct export_range *out)
{
	struct export_range range = *made;
	int ret = origin_add(range.fd, origin, expected);

	if (!ret && !range.whole)
		ret = descriptor_measure(range.fd, &range.whole);
	if (ret) {
		THREAD_NO_CANCEL();

		close(range.fd);
		return ret;
	}
	*out = range;
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
		registration_invalidate(request->address, request->size);
		return 0;
	}
	if (request->options & EXPORT_READ_ONLY)
		return log_errno(EOPNOTSUPP, "%#zx is CUDA memory: no read-only dma-buf of that",
				 (size_t)request->address);
	registration_drop_stale(request->memory.base, request->memory.size);
	return 0;
}

/* Host memory cannot be revoked, and a GPU's memory has no read-only dma-buf. */
static int export_refuse(const struct export_request *request)
{
	return log_errno(
		EFAULT,
		"no exporter makes a %s%sdma-buf of %zu bytes at %#zx: only a GPU's memory "
		"can be revoked, and only host memory can be read-only",
		request->options & EXPORT_REVOCABLE ? "revocable " : "",
		request->options & EXPORT_READ_ONLY ? "read-only " : "", request->size,
		(size_t)request->address);
}

static int export_by_first(const struct export_request *request, struct export_range *out)
{
	bool is_taken = false;
	int error = -EFAULT;

	for (size_t i = 0; i < sizeof(exporters) / sizeof(*exporters); i++) {
		if (!exporters[i]->takes(request))
			continue;
		log_debug("export of %zu bytes at %#zx: %s", request->size,
			  (size_t)request->address, exporters[i]->name);
		is_taken = true;
		if (exporters[i]->export(request, out, &error) == EXPORT_DONE)
			break;
	}
	return is_taken ? error : export_refuse(request);
}

/*
 * The hit is most of the calls, so a registration is looked for before the memory is identified, and
 * without THREAD_NO_CANCEL(): registration_is_current() guards the only call that may be a
 * cancellation point.
 */
static bool export_registered(const struct export_request *request, struct export_range *out)
{
	struct registration registration;
	int ret;

	if (request->options != EXPORT_KEEP ||
	    !registration_find(request->address, request->size, &registration))
		return false;
	ret = registration_export(&registration, out);
	registration_put(&registration);
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

int export_register(uintptr_t address, size_t size, struct registration *registration)
{
	struct export_request request = { .address = address, .size = size };
	uintptr_t last;
	int ret;

	if (!size || __builtin_add_overflow(address, size - 1, &last))
		return range_refuse(address, size);
	ret = export_identify(&request);
	if (ret)
		return ret;
	*registration = (struct registration){ 0 };
	if (request.memory.kind != CUDA_DEVICE)
		return host_registration_make(address, size, &registration->host);
	ret = export_check_device(&request);
	return ret ? ret : registration_get(&request, REGISTRATION_BY_ANYONE, registration);
}

void export_invalidate(uintptr_t address, size_t size)
{
	registration_invalidate(address, size);
	host_registration_invalidate(address, size);
	gdmabuf_drop(address, size);
}

/* The module knows no limit of entries but none. */
void export_set_limits(bool gpu, uint64_t bytes, uint64_t entries)
{
	gdmabuf_set_limit(gpu ? GDMABUF_MEMORY_GPU : GDMABUF_MEMORY_HOST, entries ? bytes : 0);
	if (gpu)
		registration_set_limits(bytes, entries);
}

void export_drop_idle(void)
{
	registration_drop_idle();
	gdmabuf_drop_idle();
}

void export_stats(struct cache_stats *stats)
{
	struct gdmabuf_counts module;

	registration_stats(stats);
	host_registration_add_stats(stats);
	gdmabuf_counts(&module);
	stats->hits += module.hits;
	stats->misses += module.exports - module.hits;
	stats->evictions += module.evictions;
	stats->stale += module.stale;
	stats->bytes_pinned += module.bytes_pinned;
	stats->bytes_idle += module.bytes_idle;
}
