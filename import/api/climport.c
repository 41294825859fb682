/* SPDX-License-Identifier: Apache-2.0 */
/* libclimport's functions without OpenCL: see <CL/climport.h>. */
#include <CL/climport.h>

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "import/alloc/device_pool.h"
#include "import/alloc/memory.h"
#include "import/api/common.h"
#include "import/cache/cache.h"
#include "import/export/export.h"
#include "import/export/registration.h"
#include "import/nvidia/cuda/cuda.h"
#include "import/opaque_fd/opaque.h"
#include "import/opaque_fd/opaque_watched.h"
#include "util/address.h"
#include "util/log.h"
#include "util/thread.h"

#define EXPORT_FLAGS (CLIMPORT_READ_ONLY | CLIMPORT_KEEP | CLIMPORT_MAPPABLE)

/* The structs of version 0.2.0 end with these members. */
#define DMABUF_SIZE SIZE_TO(struct climport_dmabuf, whole)
#define REGISTRATION_SIZE SIZE_TO(struct climport_registration, reserved)
#define GPU_SIZE SIZE_TO(struct climport_gpu, needs_flush)
#define STATS_SIZE SIZE_TO(struct climport_stats, bytes_allocated)

PUBLIC uint32_t climport_version(void)
{
	return CLIMPORT_VERSION;
}

static unsigned int climport_export_options(uint64_t flags)
{
	return (flags & CLIMPORT_READ_ONLY ? EXPORT_READ_ONLY : 0u) |
	       (flags & CLIMPORT_KEEP ? EXPORT_KEEP : 0u) |
	       (flags & CLIMPORT_MAPPABLE ? EXPORT_MAPPABLE : 0u);
}

static int climport_make_export(const void *address, size_t size, uint64_t flags,
				struct climport_dmabuf *out, size_t out_size)
{
	struct climport_dmabuf made = { .size = size };
	struct export_range range;
	int ret = climport_check_caller(flags, EXPORT_FLAGS, out_size, DMABUF_SIZE);

	if (!ret)
		ret = export_dmabuf(address_of(address), size, climport_export_options(flags),
				    &range);
	if (ret)
		return ret;
	made.fd = range.fd;
	made.offset = range.offset;
	made.whole = range.whole;
	climport_fill(out, out_size, &made, sizeof(made));
	return 0;
}

PUBLIC int climport_export_dmabuf(const void *address, size_t size, uint64_t flags,
				  struct climport_dmabuf *out, size_t out_size)
{
	climport_error_begin();
	return climport_error_end(climport_make_export(address, size, flags, out, out_size));
}

PUBLIC void climport_invalidate(const void *address, size_t size)
{
	THREAD_NO_CANCEL();

	export_invalidate(address_of(address), size);
	opaque_watched_invalidate(address_of(address), size);
}

/* A promise has nothing of the layer's but its slot. */
static void climport_registration_fill_host(const struct host_registration *host,
					    struct climport_registration *out)
{
	*out = (struct climport_registration){
		.base = (const void *)host->base,
		.length = host->size,
		.fd = host->fd,
		.id = host->number,
		.reserved = { NULL, host->slot },
	};
}

static void climport_registration_fill(const struct registration *registration,
				       struct climport_registration *out)
{
	const struct cache_pin *pin = registration->ref.pin;

	if (!pin) {
		climport_registration_fill_host(&registration->host, out);
		return;
	}
	*out = (struct climport_registration){
		.base = (const void *)pin->base,
		.length = pin->size,
		.fd = pin->fd,
		.offset = pin->offset,
		.id = pin->number,
		.reserved = { (void *)pin },
	};
}

/*
 * In the caller's struct at once: a copy of what was just written takes 10 ns, as the processor cannot
 * forward the single stores to the copy's wide loads.
 */
static void climport_registration_give(const struct registration *registration,
				       struct climport_registration *out, size_t out_size)
{
	struct climport_registration made;

	if (out_size == sizeof(*out)) {
		climport_registration_fill(registration, out);
		return;
	}
	climport_registration_fill(registration, &made);
	climport_fill(out, out_size, &made, sizeof(made));
}

static int climport_register_missed(const void *address, size_t size,
				    struct registration *registration)
{
	THREAD_NO_CANCEL();

	climport_error_begin();
	return climport_error_end(export_register(address_of(address), size, registration));
}

static int climport_register_refused(uint64_t flags, size_t out_size)
{
	climport_error_begin();
	return climport_error_end(climport_check_caller(flags, 0, out_size, REGISTRATION_SIZE));
}

PUBLIC int climport_register(const void *address, size_t size, uint64_t flags,
			     struct climport_registration *out, size_t out_size)
{
	struct registration registration = { 0 };
	int ret = 0;

	if (flags || out_size < REGISTRATION_SIZE)
		return climport_register_refused(flags, out_size);
	if (!registration_find(REGISTRATION_BY_CUDA, REGISTRATION_BY_MODULE, address_of(address),
			       size, &registration.ref) &&
	    !host_registration_find(address_of(address), size, &registration.host))
		ret = climport_register_missed(address, size, &registration);
	if (!ret)
		climport_registration_give(&registration, out, out_size);
	return ret;
}

PUBLIC void climport_unregister(struct climport_registration *out)
{
	struct registration registration = {
		.ref = { .pin = out->reserved[0] },
		.host = { .number = out->id, .slot = out->reserved[1] },
	};

	if (!out->id)
		return;
	export_unregister(&registration);
	out->id = 0; /* a second call with the struct does nothing */
}

PUBLIC int climport_set_limits(unsigned int kind, uint64_t bytes, uint64_t entries)
{
	int ret;
	THREAD_NO_CANCEL();

	climport_error_begin();
	ret = climport_check_kind(kind);
	if (!ret)
		registration_set_limits(kind == CLIMPORT_DEVICE, bytes, entries);
	if (!ret && kind == CLIMPORT_HOST)
		opaque_watched_set_limits(bytes, entries);
	return climport_error_end(ret);
}

PUBLIC void climport_drop_all(void)
{
	THREAD_NO_CANCEL();

	registration_drop_idle();
	opaque_watched_drop_idle();
	device_pools_trim();
}

static void climport_collect_stats(struct climport_stats *stats)
{
	struct cache_stats exports, opaque;

	export_stats(&exports);
	opaque_stats(&opaque);
	*stats = (struct climport_stats){
		.hits = exports.hits + opaque.hits,
		.misses = exports.misses + opaque.misses,
		.evictions = exports.evictions + opaque.evictions,
		.stale = exports.stale + opaque.stale,
		.bytes_pinned = exports.bytes_pinned + opaque.bytes_pinned,
		.bytes_idle = exports.bytes_idle + opaque.bytes_idle,
		.bytes_allocated = memory_bytes(),
	};
}

PUBLIC int climport_get_stats(struct climport_stats *out, size_t out_size)
{
	struct climport_stats stats;
	int ret;

	climport_error_begin();
	ret = climport_check_caller(0, 0, out_size, STATS_SIZE);
	if (ret)
		return climport_error_end(ret);
	climport_collect_stats(&stats);
	climport_fill(out, out_size, &stats, sizeof(stats));
	return 0;
}

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
