/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/objects/memobj_watch.h"

#include <stdlib.h>

#include "icd/error.h"
#include "icd/layer.h"
#include "util/log.h"

void CL_CALLBACK memobj_destroyed(cl_mem mem, void *region)
{
	(void)mem;
	import_put(region);
}

cl_int memobj_watch(cl_mem mem, struct import_region *region,
		    void(CL_CALLBACK *destroyed)(cl_mem mem, void *region))
{
	cl_int err;

	import_hold(region);
	err = next.clSetMemObjectDestructorCallback(mem, destroyed, region);
	if (err) {
		error_of_driver("clSetMemObjectDestructorCallback", err);
		import_put(region);
	}
	return err;
}

/* A driver's object holds memory and parent, which the driver does not know. */
struct memobj_part {
	struct import_region *region;
	cl_mem parent; /* a reference of the driver */
};

static void memobj_part_destroy(struct memobj_part *part)
{
	import_put(part->region);
	next.clReleaseMemObject(part->parent);
	free(part);
}

static void CL_CALLBACK memobj_part_destroyed(cl_mem mem, void *part)
{
	(void)mem;
	memobj_part_destroy(part);
}

static struct memobj_part *memobj_part_create(const struct memobj *parent, cl_int *err)
{
	struct memobj_part *part = malloc(sizeof(*part));

	if (!part) {
		log_error("no memory for the record of an import");
		*err = CL_OUT_OF_HOST_MEMORY;
		return NULL;
	}
	*err = next.clRetainMemObject(parent->handle);
	if (*err) {
		error_of_driver("clRetainMemObject", *err);
		free(part);
		return NULL;
	}
	import_hold(parent->region);
	*part = (struct memobj_part){ parent->region, parent->handle };
	return part;
}

cl_int memobj_watch_part(cl_mem mem, const struct memobj *parent)
{
	cl_int err;
	struct memobj_part *part = memobj_part_create(parent, &err);

	if (!part)
		return err;
	err = next.clSetMemObjectDestructorCallback(mem, memobj_part_destroyed, part);
	if (err) {
		error_of_driver("clSetMemObjectDestructorCallback", err);
		memobj_part_destroy(part);
	}
	return err;
}
