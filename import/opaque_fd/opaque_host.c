/* SPDX-License-Identifier: Apache-2.0 */
#include "import/opaque_fd/opaque_host.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "import/nvidia/rm/rm.h"
#include "import/opaque_fd/exporter.h"
#include "import/opaque_fd/opaque.h"
#include "import/opaque_fd/opaque_registered.h"
#include "import/opaque_fd/watcher.h"
#include "util/log.h"

/*
 * Idle pages are pages that the kernel cannot give to others, and each entry keeps two descriptors
 * of the process open: the cache's and the driver's.
 */
#define OPAQUE_HOST_BYTES ((size_t)1 << 30)
#define OPAQUE_HOST_ENTRIES 32u

/* Names of registrations, apart from CUDA's buffer ids. */
#define OPAQUE_HOST_NAMES ((uint64_t)1 << 63)

struct opaque_host_made {
	struct opaque_made made; /* first */
	struct watcher_watch watch;
};

static uint64_t opaque_host_name(void)
{
	static _Atomic uint64_t last;

	return OPAQUE_HOST_NAMES | (atomic_fetch_add(&last, 1) + 1);
}

int opaque_host_export(const unsigned char *uuid, uintptr_t base, size_t size, int *fd,
		       struct opaque_made *made)
{
	int ret = rm_import_host(uuid, (void *)base, size, fd);

	if (ret)
		return ret;
	made->exporter = OPAQUE_BY_RM;
	made->kept = opaque_host_name();
	ret = descriptor_identify(*fd, &made->id);
	if (ret)
		close(*fd);
	return ret;
}

static void opaque_host_told(uintptr_t address, size_t size);

/* The watch comes first: what changes before the pin makes the watch stale. */
static int opaque_host_fill(const unsigned char *uuid, uintptr_t base, size_t size,
			    struct cache_pin *pin, struct opaque_host_made *made)
{
	int ret = watcher_watch(base, size, opaque_host_told, &made->watch);

	if (ret)
		return ret;
	ret = opaque_host_export(uuid, base, size, &pin->fd, &made->made);
	if (ret) {
		watcher_put(&made->watch);
		return ret;
	}
	pin->base = base;
	pin->size = size;
	pin->status = made->watch.status;
	pin->valid = made->watch.valid;
	return 0;
}

static int opaque_host_pin(void *uuid, const void *unused, uintptr_t address, size_t size,
			   struct cache_pin *pin)
{
	uintptr_t mask = (uintptr_t)sysconf(_SC_PAGESIZE) - 1, base = address & ~mask;
	struct opaque_host_made *made = calloc(1, sizeof(*made));
	int ret;

	(void)unused;
	if (!made)
		return log_errno(ENOMEM, "no memory for an opaque descriptor");
	ret = opaque_host_fill(uuid, base, ((address + size + mask) & ~mask) - base, pin, made);
	if (ret)
		free(made);
	else
		pin->data = made;
	return ret;
}

/* The layer's backing buffer keeps the pages, too, and goes first. */
static void opaque_host_unpin(void *uuid, const struct cache_pin *pin)
{
	struct opaque_host_made *made = pin->data;

	(void)uuid;
	opaque_forget(made->made.kept);
	descriptor_close(pin->fd, &made->made.id);
	watcher_put(&made->watch);
	free(made);
}

static bool opaque_host_is_current(void *uuid, const struct cache_pin *pin)
{
	const struct opaque_host_made *made = pin->data;

	(void)uuid;
	return watcher_is_current(&made->watch);
}

static const struct cache_source opaque_host_source = {
	.pin = opaque_host_pin,
	.unpin = opaque_host_unpin,
	.is_current = opaque_host_is_current,
};

/* The program's own descriptors come first: a device's registrations get an eighth of the limit. */
static uint32_t opaque_host_entries(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur / 16 >= OPAQUE_HOST_ENTRIES)
		return OPAQUE_HOST_ENTRIES;
	return limit.rlim_cur < 16 ? 1 : (uint32_t)(limit.rlim_cur / 16);
}

static struct opaque_caches opaque_host_caches = {
	.source = &opaque_host_source,
	.config = { .bytes = OPAQUE_HOST_BYTES },
	.entries = opaque_host_entries,
};

/* On a watcher's thread. */
static void opaque_host_told(uintptr_t address, size_t size)
{
	opaque_cache_drop_stale(&opaque_host_caches, address, size);
}

int opaque_host_get(const unsigned char uuid[IMPORT_UUID_SIZE], uintptr_t address, size_t size,
		    struct opaque_hold *hold)
{
	if (!opaque_registered_get(uuid, address, size, hold))
		return 0;
	if (size > OPAQUE_HOST_BYTES || !watcher_is_possible(size))
		return -EOPNOTSUPP;
	return opaque_cache_get(&opaque_host_caches, uuid, address, size, NULL, hold);
}

void opaque_host_add_stats(struct cache_stats *sum)
{
	opaque_cache_add_stats(&opaque_host_caches, sum);
	opaque_registered_add_stats(sum);
}
