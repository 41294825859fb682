/* SPDX-License-Identifier: Apache-2.0 */
#include "import/import.h"

#include <errno.h>
#include <stdlib.h>

#include "util/log.h"
#include "util/shortage.h"
#include "util/thread.h"

static const struct import_ops *const import_kinds[IMPORT_TYPES] = {
	[IMPORT_HOST] = &import_host_ops,
	[IMPORT_DMABUF] = &import_dmabuf_ops,
};

int import_get(const struct import_desc *desc, struct import_region **region)
{
	struct import_region *r = malloc(sizeof(*r) + desc->room);
	struct shortage_retry retry = { 0 };
	int ret;

	if (!r)
		return log_errno(ENOMEM, "no memory for an import");
	*r = (struct import_region){
		.ops = import_kinds[desc->type],
		.refs = 1,
		.size = desc->size,
		.fd = -1,
		.wanted = desc->access,
	};
	do
		ret = r->ops->open(desc, r);
	while (ret && shortage_retry(&retry, ret));
	/* A descriptor's mode takes precedence over the request: reading is left of reading and writing. */
	if (!ret && !(r->wanted & r->access)) {
		r->ops->close(r);
		ret = log_errno(EACCES, "the import is write-only, and the dma-buf read-only: %s",
				r->read_only);
	}
	if (ret) {
		free(r);
		return ret;
	}
	*region = r;
	return 0;
}

void import_region_init(struct import_region *region, const struct import_ops *ops, void *addr,
			size_t size)
{
	*region = (struct import_region){
		.ops = ops,
		.refs = 1,
		.addr = addr,
		.size = size,
		.fd = -1,
		.access = IMPORT_READ | IMPORT_WRITE,
		.wanted = IMPORT_READ | IMPORT_WRITE,
	};
}

static void import_driver_close(struct import_region *region)
{
	(void)region;
}

static const struct import_ops import_driver_ops = { .close = import_driver_close };

int import_of_driver(size_t size, size_t room, struct import_region **region)
{
	struct import_region *r = malloc(sizeof(*r) + room);

	if (!r)
		return log_errno(ENOMEM, "no memory for an import");
	import_region_init(r, &import_driver_ops, NULL, size);
	*region = r;
	return 0;
}

void import_hold(struct import_region *region)
{
	atomic_fetch_add_explicit(&region->refs, 1, memory_order_relaxed);
}

/* Pairs with itself. */
void import_put(struct import_region *region)
{
	if (!region || atomic_fetch_sub_explicit(&region->refs, 1, memory_order_acq_rel) != 1)
		return;
	if (region->opaque)
		region->opaque->put(region->opaque);
	region->ops->close(region);
	free(region);
}

void import_released(struct import_region *region)
{
	if (region->ops->released)
		region->ops->released(region);
}

bool import_needs_bracket(const struct import_region *region)
{
	return region->ops->sync && region->addr && !region->unsynced;
}

int import_check_access(const struct import_region *region)
{
	return import_needs_bracket(region) ? region->ops->check_access(region) : 0;
}

int import_sync(struct import_region *region, unsigned int access, enum import_edge edge)
{
	return import_needs_bracket(region) ? region->ops->sync(region, access, edge) : 0;
}
