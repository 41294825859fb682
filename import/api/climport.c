/* SPDX-License-Identifier: Apache-2.0 */
/* libclimport's functions without OpenCL: see <CL/climport.h>. */
#include <CL/climport.h>

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "import/alloc/memory.h"
#include "import/api/public.h"
#include "import/cache/cache.h"
#include "import/export/export.h"
#include "import/export/registration.h"
#include "import/opaque_fd/opaque.h"
#include "util/log.h"
#include "util/thread.h"

#define LARGEST_ALIGNMENT ((size_t)2 << 20)

PUBLIC int climport_export_dmabuf(const void *address, size_t size, unsigned int flags,
				  struct climport_dmabuf *out)
{
	const unsigned int known = CLIMPORT_READ_ONLY | CLIMPORT_KEEP | CLIMPORT_MAPPABLE |
				   CLIMPORT_REVOCABLE;
	struct export_range range;
	unsigned int options = 0;
	int ret;

	if (flags & ~known)
		return log_errno(EINVAL, "unknown flags %#x", flags & ~known);
	options |= flags & CLIMPORT_READ_ONLY ? EXPORT_READ_ONLY : 0;
	options |= flags & CLIMPORT_KEEP ? EXPORT_KEEP : 0;
	options |= flags & CLIMPORT_MAPPABLE ? EXPORT_MAPPABLE : 0;
	options |= flags & CLIMPORT_REVOCABLE ? EXPORT_REVOCABLE : 0;
	ret = export_dmabuf((uintptr_t)address, size, options, &range);
	if (ret)
		return ret;
	*out = (struct climport_dmabuf){ .fd = range.fd, .offset = range.offset, .size = size };
	return 0;
}

PUBLIC void climport_invalidate(const void *address, size_t size)
{
	THREAD_NO_CANCEL();

	export_invalidate((uintptr_t)address, size);
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
		.reserved = { NULL, (void *)(uintptr_t)host->slot },
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
		.reserved = { (void *)pin, registration->ref.slot },
	};
}

PUBLIC int climport_register(const void *address, size_t size, struct climport_registration *out)
{
	struct registration registration = { 0 };
	int ret = 0;

	if (!registration_find((uintptr_t)address, size, &registration) &&
	    !host_registration_find((uintptr_t)address, size, &registration.host)) {
		THREAD_NO_CANCEL();

		ret = export_register((uintptr_t)address, size, &registration);
	}
	if (!ret)
		climport_registration_fill(&registration, out);
	return ret;
}

PUBLIC void climport_unregister(struct climport_registration *out)
{
	struct registration registration = {
		.ref = { .pin = out->reserved[0], .slot = out->reserved[1] },
		.host = { .number = out->id },
	};

	if (!registration.ref.pin)
		registration.host.slot = (uint32_t)(uintptr_t)out->reserved[1];
	if (!out->id)
		return;
	registration_put(&registration);
	out->id = 0; /* a second call with the struct does nothing */
}

PUBLIC int climport_set_keep_limit(unsigned int kind, uint64_t bytes)
{
	if (kind != CLIMPORT_HOST && kind != CLIMPORT_DEVICE)
		return log_errno(EINVAL, "there is no kind of memory %u", kind);
	export_set_limit(kind == CLIMPORT_DEVICE, bytes);
	return 0;
}

static int climport_check_request(unsigned int kind, size_t size, size_t alignment,
				  const unsigned char *uuid)
{
	if (kind != CLIMPORT_HOST && kind != CLIMPORT_DEVICE)
		return log_errno(EINVAL, "there is no kind of memory %u", kind);
	if (!size)
		return log_errno(EINVAL, "size is 0");
	if (alignment & (alignment - 1) || alignment > LARGEST_ALIGNMENT)
		return log_errno(EINVAL, "alignment %zu is no power of two up to 2 MiB", alignment);
	if (kind == CLIMPORT_DEVICE && !uuid)
		return log_errno(ENODEV, "CLIMPORT_DEVICE memory needs the UUID of a device");
	return 0;
}

PUBLIC int climport_alloc(unsigned int kind, size_t size, size_t alignment,
			  const unsigned char *uuid, void **address)
{
	uintptr_t at;
	THREAD_NO_CANCEL();
	int ret = climport_check_request(kind, size, alignment, uuid);

	if (!ret)
		ret = memory_alloc(kind == CLIMPORT_HOST ? MEMORY_HOST : MEMORY_DEVICE, size,
				   alignment, uuid, &at);
	if (!ret)
		*address = (void *)at;
	return ret;
}

PUBLIC void climport_free(void *address)
{
	THREAD_NO_CANCEL();

	if (!address || memory_free((uintptr_t)address))
		return;
	fprintf(stderr, "climport_free: %p is not allocated\n", address);
	abort();
}

PUBLIC void climport_get_stats(struct climport_stats *stats)
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
