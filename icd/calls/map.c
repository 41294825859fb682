/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Maps and unmaps, three of the sixteen: command.h.
 *
 * Access begins with the map and ends with the unmap; in between the host has the memory.
 */
#include "icd/access/mapping.h"
#include "icd/calls/command.h"
#include "icd/intercept.h"

/* A map that the driver is to enqueue. */
struct map {
	cl_command_queue queue;
	cl_mem mem;
	struct access access;
	struct mapping *mapping; /* NULL: no unmap has to end access */
};

static cl_int map_begin(struct map *m, const char *function, cl_map_flags flags, cl_bool *blocking)
{
	const bool writes = flags & (CL_MAP_WRITE | CL_MAP_WRITE_INVALIDATE_REGION);
	cl_int err = command_begin_host(&m->access, function, m->queue, m->mem,
					writes ? m->mem : NULL, ACCESS_BEGIN, blocking);

	if (err || !m->access.bracket)
		return err;
	m->mapping = mapping_create(m->access.bracket);
	return m->mapping ? CL_SUCCESS : access_end(&m->access, CL_OUT_OF_HOST_MEMORY, CL_FALSE);
}

/*
 * If access fails behind the driver's map, the application gets no pointer: the driver takes the pointer back.
 * Without a pointer no unmap ends access, also if the driver reports success.
 */
static void *map_end(struct map *m, void *ptr, cl_int *err, cl_bool waits)
{
	const bool is_mapped = !*err && ptr;

	*err = access_end(&m->access, *err, waits);
	if (*err && is_mapped)
		next.clEnqueueUnmapMemObject(m->queue, m->mem, ptr, 0, NULL, NULL);
	if (*err)
		ptr = NULL;
	if (m->mapping && !ptr)
		mapping_cancel(m->mapping);
	else if (m->mapping)
		mapping_add(m->mapping, ptr);
	return ptr;
}

#define MAPS(name, mem, parameters, arguments)                             \
	static APART void *map_##name parameters                           \
	{                                                                  \
		struct map m = { queue, mem, .mapping = NULL };            \
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
	if (!err && a.bracket)
		mapping_unmap(ptr, a.bracket);
	return access_end(&a, err, CL_FALSE);
}
