/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/methods/verify.h"

#include "icd/layer.h"
#include "icd/objects/backing.h"
#include "icd/objects/context.h"
#include "icd/objects/memobj.h"
#include "icd/selftest/rounds.h"
#include "util/cl_names.h"
#include "util/log.h"

#define VERIFY_ACCESS (IMPORT_READ | IMPORT_WRITE)

struct verify {
	const struct context_import *how;
	struct import_region *region;
	struct method_buffer buffers[2];
	bool is_open; /* for the CPU */
};

/* The region is held until the driver has destroyed the buffer. */
static cl_mem verify_create(cl_context context, bool reader, void *arg, cl_int *err)
{
	struct verify *v = arg;
	struct method_buffer *buffer = &v->buffers[reader];

	*err = v->how->ops->create(context, v->how, CL_MEM_READ_WRITE, v->region, buffer);
	return *err ? NULL : memobj_holding(buffer->handle, v->region, err);
}

/* The CPU's access ends before the device's begins, and the other way round. */
static cl_int verify_access(bool begins, void *arg)
{
	struct verify *v = arg;
	int ret = 0;

	if (begins != v->is_open)
		ret = import_sync(v->region, VERIFY_ACCESS, begins ? IMPORT_BEGIN : IMPORT_END);
	v->is_open = begins && !ret;
	return ret ? CL_OUT_OF_RESOURCES : CL_SUCCESS;
}

static cl_mem verify_root(const struct verify *v, int i)
{
	const struct method_buffer *buffer = &v->buffers[i];

	return buffer->backing ? backing_mem(buffer->backing) : buffer->handle;
}

/* Commands wait for an acquire by its event, and the application for a release: a driver must give both. */
static cl_int verify_edge(cl_command_queue queue, bool begins, void *arg)
{
	const struct verify *v = arg;
	const struct method_ops *ops = v->how->ops;
	cl_event event = NULL;
	cl_mem mems[2];
	cl_int err;

	if (!ops->enqueue_edge)
		return CL_SUCCESS;
	for (int i = 0; i < 2; i++)
		mems[i] = verify_root(v, i);
	err = ops->enqueue_edge(queue, begins, 2, mems, 0, NULL, &event);
	if (is_created(event, err))
		next.clReleaseEvent(event);
	return err || event ? err : CL_INVALID_EVENT;
}

/* A device that does not use the CPU's mapping orders no accesses by two buffers in one kernel. */
static cl_int verify_run(struct verify *v, const cl_device_id *devices, cl_uint count,
			 const struct rounds *rounds)
{
	struct session s;
	cl_int result = verify_access(true, v);

	if (result)
		return result;
	result = session_begin(&s, devices, count);
	if (!result)
		result = rounds_run(&s, rounds);
	session_end(&s);
	for (int i = 0; i < 2; i++)
		if (v->buffers[i].backing)
			backing_put(v->buffers[i].backing);
	return result;
}

cl_int verify_memory(const struct context_import *how, const cl_device_id *devices, cl_uint count,
		     struct import_region *region, unsigned int rounds)
{
	struct verify v = { .how = how, .region = region };
	unsigned char *const bytes = region->addr;
	const struct rounds r = {
		.bytes = bytes,
		.shape = ROUNDS_BYTES(region->size),
		.create = verify_create,
		.access = verify_access,
		.edge = verify_edge,
		.count = rounds,
		.twice = how->ops->cpu_optional,
		.arg = &v,
	};
	unsigned char before[ROUNDS_PLACES];
	size_t at[ROUNDS_PLACES];
	cl_int result;

	region->unsynced = how->ops->unsynced;
	rounds_places(&r.shape, at);
	for (int i = 0; i < ROUNDS_PLACES; i++)
		before[i] = bytes[at[i]];
	result = verify_run(&v, devices, count, &r);
	verify_access(true, &v);
	for (int i = ROUNDS_PLACES; i-- > 0;)
		bytes[at[i]] = before[i];
	verify_access(false, &v);
	return result;
}

/* A registration is held by its region, once. */
static bool verify_is_possible(const struct import_region *region, cl_mem_flags flags)
{
	return region->addr && !region->opaque && region->size >= ROUNDS_PLACES &&
	       flags & CL_MEM_READ_WRITE && region->access & IMPORT_WRITE &&
	       !(region->kinds & 1u << IMPORT_UNWRITABLE);
}

cl_int verify_import(const struct context_import *how, cl_mem_flags flags,
		     struct import_region *region)
{
	const cl_device_id *devices;
	const cl_uint count = (cl_uint)context_devices(how->context, &devices);
	cl_int result;

	if (!verify_is_possible(region, flags)) {
		log_error("CLIMPORT_VERIFY: this import is not verified: the test would write to "
			  "its memory, or the memory is a registration");
		return CL_SUCCESS;
	}
	result = verify_memory(how, devices, count, region, ROUNDS_DEFAULT);
	if (result == 1)
		return CL_SUCCESS;
	if (!result)
		log_error("CLIMPORT_VERIFY: the device works on a copy of the memory at %p",
			  region->addr);
	else
		log_error("CLIMPORT_VERIFY: the test of the memory at %p failed with %s",
			  region->addr, cl_error_name(result));
	return result ? result : CL_INVALID_OPERATION;
}
