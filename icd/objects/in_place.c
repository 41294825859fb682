/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/objects/in_place.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "icd/error.h"
#include "icd/layer.h"
#include "icd/objects/memobj_watch.h"
#include "util/descriptor.h"
#include "util/list.h"
#include "util/lock.h"
#include "util/log.h"

#define IN_PLACE_SHARE 4     /* of the process's descriptors */
#define IN_PLACE_MOST 65536u /* buffers, where the limit is high or none */

struct in_place {
	cl_mem_flags flags;
	bool has_properties;
	bool is_counted;
	struct list maps;     /* of struct in_place_map, the last at the end */
	cl_mem stage, source; /* held; NULL: no stage yet */
	size_t stage_size;
	unsigned int stage_users; /* images, and images in the making */
};

struct in_place_map {
	struct list link;
	void *pointer;
};

LOCK_DEFINE(in_place_lock, LOCK_LAST); /* the lists of maps */

static atomic_uint in_place_buffers; /* live records that are counted */

struct in_place *in_place_create_part(cl_mem_flags flags, bool has_properties)
{
	struct in_place *in_place = malloc(sizeof(*in_place));

	if (!in_place) {
		log_error("no memory for the record of a buffer");
		return NULL;
	}
	*in_place = (struct in_place){ .flags = flags, .has_properties = has_properties };
	list_init(&in_place->maps);
	return in_place;
}

static bool in_place_count(void)
{
	const uint32_t most = descriptor_share(IN_PLACE_SHARE, IN_PLACE_MOST);

	if (atomic_fetch_add(&in_place_buffers, 1) < most)
		return true;
	atomic_fetch_sub(&in_place_buffers, 1);
	log_error("%u buffers are in place, and each has a descriptor of the process: no more have "
		  "one, so that the program keeps the others (ulimit -n)",
		  most);
	return false;
}

struct in_place *in_place_create(cl_mem_flags flags, bool has_properties)
{
	struct in_place *in_place = in_place_create_part(flags, has_properties);

	if (!in_place)
		return NULL;
	in_place->is_counted = in_place_count();
	if (in_place->is_counted)
		return in_place;
	in_place_free(in_place);
	return NULL;
}

void in_place_free(struct in_place *in_place)
{
	if (!in_place)
		return;
	if (in_place->is_counted)
		atomic_fetch_sub(&in_place_buffers, 1);
	if (in_place->stage) {
		next.clReleaseMemObject(in_place->stage);
		memobj_watch_release(in_place->source);
	}
	for (struct list *link; (link = list_take(&in_place->maps));)
		free(container_of(link, struct in_place_map, link));
	free(in_place);
}

static cl_mem in_place_create_stage(cl_context context, cl_mem source, size_t *size, cl_int *err)
{
	cl_mem stage;

	*err = next.clGetMemObjectInfo(source, CL_MEM_SIZE, sizeof(*size), size, NULL);
	if (*err) {
		error_of_driver("clGetMemObjectInfo", *err);
		return NULL;
	}
	stage = next.clCreateBuffer(context, CL_MEM_READ_WRITE, *size, NULL, err);
	stage = error_created_or_null("clCreateBuffer", stage, err);
	if (!stage)
		return NULL;
	*err = next.clRetainMemObject(source);
	if (!*err)
		return stage;
	error_of_driver("clRetainMemObject", *err);
	next.clReleaseMemObject(stage);
	return NULL;
}

/* NULL: there is no stage yet. */
static cl_mem in_place_use_stage(struct in_place *in_place)
{
	cl_mem stage;

	lock_acquire(&in_place_lock);
	stage = in_place->stage;
	in_place->stage_users += stage != NULL;
	lock_release(&in_place_lock);
	return stage;
}

/* The first stage is for all. */
cl_mem in_place_get_stage(struct in_place *in_place, cl_context context, cl_mem source, cl_int *err)
{
	cl_mem made, stage = in_place_use_stage(in_place);
	size_t size = 0;

	*err = CL_SUCCESS;
	if (stage)
		return stage;
	made = in_place_create_stage(context, source, &size, err);
	if (!made)
		return NULL;
	lock_acquire(&in_place_lock);
	stage = in_place->stage;
	if (!stage) {
		in_place->stage = made;
		in_place->source = source;
		in_place->stage_size = size;
	}
	in_place->stage_users++;
	lock_release(&in_place_lock);
	if (!stage)
		return made;
	next.clReleaseMemObject(made);
	next.clReleaseMemObject(source);
	return stage;
}

void in_place_put_stage(struct in_place *in_place)
{
	cl_mem stage = NULL, source;

	lock_acquire(&in_place_lock);
	source = in_place->source;
	if (!--in_place->stage_users) {
		stage = in_place->stage;
		in_place->stage = in_place->source = NULL;
	}
	lock_release(&in_place_lock);
	if (!stage)
		return;
	next.clReleaseMemObject(stage);
	next.clReleaseMemObject(source);
}

cl_mem in_place_stage(const struct in_place *in_place, size_t *size)
{
	cl_mem stage;

	lock_acquire(&in_place_lock);
	stage = in_place->stage;
	*size = in_place->stage_size;
	lock_release(&in_place_lock);
	return stage;
}

cl_mem_flags in_place_flags(const struct in_place *in_place)
{
	return in_place->flags;
}

bool in_place_has_properties(const struct in_place *in_place)
{
	return in_place->has_properties;
}

cl_mem_flags in_place_driver_flags(cl_mem_flags flags)
{
	return flags & ~(cl_mem_flags)CL_MEM_USE_HOST_PTR;
}

struct in_place_map *in_place_map_create(void *pointer)
{
	struct in_place_map *map = malloc(sizeof(*map));

	if (map)
		*map = (struct in_place_map){ .pointer = pointer };
	else
		log_error("no memory for the record of a map");
	return map;
}

void in_place_map_free(struct in_place_map *map)
{
	free(map);
}

void in_place_map_add(struct in_place *in_place, struct in_place_map *map)
{
	lock_acquire(&in_place_lock);
	list_add(&in_place->maps, &map->link);
	lock_release(&in_place_lock);
}

cl_uint in_place_map_count(const struct in_place *in_place)
{
	cl_uint count = 0;

	lock_acquire(&in_place_lock);
	for (struct list *link = in_place->maps.next; link != &in_place->maps; link = link->next)
		count++;
	lock_release(&in_place_lock);
	return count;
}

static struct in_place_map *in_place_map_find(const struct in_place *in_place, const void *pointer)
	REQUIRES(in_place_lock)
{
	for (struct list *link = in_place->maps.prev; link != &in_place->maps; link = link->prev) {
		struct in_place_map *map = container_of(link, struct in_place_map, link);

		if (map->pointer == pointer)
			return map;
	}
	return NULL;
}

struct in_place_map *in_place_map_take(struct in_place *in_place, const void *pointer)
{
	struct in_place_map *map;

	lock_acquire(&in_place_lock);
	map = in_place_map_find(in_place, pointer);
	if (map)
		list_remove(&map->link);
	lock_release(&in_place_lock);
	return map;
}
