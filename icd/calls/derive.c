/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/calls/derive.h"

#include "icd/calls/properties.h"
#include "icd/layer.h"
#include "icd/objects/context.h"

cl_mem derive_record(cl_mem mem, struct memobj *parent, size_t origin, bool hides_parent,
		     cl_int *err)
{
	const struct memobj like = {
		.handle = mem,
		.context = parent->context,
		.region = parent->region,
		.origin = parent->origin + origin,
		.bracket = parent->bracket,
		.parent = parent,
		.method = parent->method,
		.hides_parent = hides_parent,
	};

	*err = memobj_add(&like);
	if (!*err)
		return mem;
	next.clReleaseMemObject(mem);
	return NULL;
}

void derive_notify(const struct memobj *parent, const char *function, cl_int err)
{
	struct context *context = err ? context_get(parent->context) : NULL;

	context_notify(context, function, err);
	context_put(context);
}

cl_mem_flags derive_flags(const struct import_region *region, cl_mem_flags flags)
{
	return region->reduced && !(flags & CL_MEM_WRITE_ONLY)
		       ? flags_restrict(flags, region->access)
		       : flags;
}
