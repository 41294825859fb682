/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Maps and unmaps, three of the sixteen: command.h.
 *
 * Access begins with the map and ends with the unmap; in between the host has the memory.  A map that is never
 * unmapped has no END.
 */
#include "icd/calls/command.h"
#include "icd/intercept.h"

/* A map that the driver is to enqueue. */
struct map {
	cl_command_queue queue;
	cl_mem mem;
	struct access access;
};

static cl_int map_begin(struct map *m, const char *function, cl_map_flags flags, cl_bool *blocking)
{
	const bool writes = flags & (CL_MAP_WRITE | CL_MAP_WRITE_INVALIDATE_REGION);

	return command_begin_host(&m->access, function, m->queue, m->mem, writes ? m->mem : NULL,
				  ACCESS_BEGIN, blocking);
}

/* If access fails after the driver's map, the driver takes the pointer back. */
static void *map_end(struct map *m, void *ptr, cl_int *err, cl_bool waits)
{
	const bool is_mapped = !*err && ptr;

	*err = access_end(&m->access, *err, waits);
	if (*err && is_mapped)
		layer_clEnqueueUnmapMemObject(m->queue, m->mem, ptr, 0, NULL, NULL);
	return *err ? NULL : ptr;
}

#define MAPS(name, mem, parameters, arguments)                             \
	static APART void *map_##name parameters                           \
	{                                                                  \
		struct map m = { queue, mem, .access.num_wait = 0 };       \
		cl_int unused, *err = errcode_ret ? errcode_ret : &unused; \
		const cl_bool waits = blocking;                            \
                                                                           \
		access_none(&m.access, num_wait, wait, event);             \
		*err = map_begin(&m, #name, flags, &blocking);             \
		if (*err)                                                  \
			return NULL;                                       \
		num_wait = m.access.num_wait;                              \
		wait = m.access.wait;                                      \
		event = m.access.event;                                    \
		errcode_ret = err;                                         \
		return map_end(&m, next.name arguments, err, waits);       \
	}                                                                  \
                                                                           \
	void *CL_API_CALL layer_##name parameters                          \
	{                                                                  \
		if (memobj_live() || queue_bracket_any())                  \
			return map_##name arguments;                       \
		return next.name arguments;                                \
	}
#include "icd/table.h"

cl_int CL_API_CALL layer_clEnqueueUnmapMemObject(cl_command_queue queue, cl_mem mem, void *ptr,
						 cl_uint num_wait, const cl_event *wait,
						 cl_event *event)
{
	struct access a;
	cl_int err;

	access_none(&a, num_wait, wait, event);
	err = command_begin_host(&a, "clEnqueueUnmapMemObject", queue, mem, NULL, ACCESS_END, NULL);
	if (err)
		return err;
	err = next.clEnqueueUnmapMemObject(queue, mem, ptr, a.num_wait, a.wait, a.event);
	return access_end(&a, err, CL_FALSE);
}
