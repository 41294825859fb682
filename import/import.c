/* SPDX-License-Identifier: Apache-2.0 */
#include "import.h"

#include <errno.h>
#include <stdlib.h>

#include "log.h"
#include "ops.h"

static const struct import_ops *const kinds[IMPORT_TYPES] = {
	[IMPORT_HOST] = &import_host_ops,
	[IMPORT_DMABUF] = &import_dmabuf_ops,
};

int import_get(const struct import_desc *desc, struct import_region **region)
{
	struct import_region *r = malloc(sizeof(*r));
	int ret;

	if (!r)
		return log_errno(ENOMEM, "no memory for an import");
	*r = (struct import_region){
		.ops = kinds[desc->type],
		.refs = 1,
		.size = desc->size,
		.fd = -1,
		.wanted = desc->access,
	};
	ret = r->ops->pin(desc, r);
	if (ret) {
		free(r);
		return ret;
	}
	*region = r;
	return 0;
}

void import_hold(struct import_region *region)
{
	atomic_fetch_add_explicit(&region->refs, 1, memory_order_relaxed);
}

void import_put(struct import_region *region)
{
	if (!region || atomic_fetch_sub_explicit(&region->refs, 1, memory_order_acq_rel) != 1)
		return;
	region->ops->unpin(region);
	free(region);
}

int import_needs_bracket(const struct import_region *region)
{
	return region->ops->begin_access != NULL;
}

int import_begin_access(struct import_region *region, unsigned int access)
{
	return import_needs_bracket(region) ? region->ops->begin_access(region, access) : 0;
}

int import_end_access(struct import_region *region, unsigned int access)
{
	return import_needs_bracket(region) ? region->ops->end_access(region, access) : 0;
}
