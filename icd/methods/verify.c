/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/methods/verify.h"

#include <string.h>

#include "icd/layer.h"
#include "icd/objects/context.h"
#include "icd/objects/memobj.h"
#include "icd/selftest/rounds.h"
#include "icd/selftest/selftest.h"
#include "util/cl_names.h"
#include "util/log.h"

#define VERIFY_BYTES 4 /* at each place */
/* Smaller memory has no three places. */
#define VERIFY_LEAST ((size_t)SELFTEST_PLACES * VERIFY_BYTES)
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
static cl_int verify_close(void *arg)
{
	struct verify *v = arg;

	if (!v->is_open)
		return CL_SUCCESS;
	v->is_open = false;
	return import_end_access(v->region, VERIFY_ACCESS) ? CL_OUT_OF_RESOURCES : CL_SUCCESS;
}

static cl_int verify_open(void *arg)
{
	struct verify *v = arg;

	if (!v->is_open)
		v->is_open = !import_begin_access(v->region, VERIFY_ACCESS);
	return v->is_open ? CL_SUCCESS : CL_OUT_OF_RESOURCES;
}

static cl_int verify_edge(cl_command_queue queue, bool begins, const cl_mem buffers[2], void *arg)
{
	const struct method_ops *ops = ((struct verify *)arg)->how->ops;

	if (!ops->enqueue_acquire)
		return CL_SUCCESS;
	return (begins ? ops->enqueue_acquire : ops->enqueue_release)(queue, 2, buffers, 0, NULL,
								      NULL);
}

/* A device that does not use the CPU's mapping orders no accesses by two buffers in one kernel. */
static cl_int verify_run(struct verify *v)
{
	const cl_device_id *devices;
	const cl_uint count = (cl_uint)context_devices(v->how->context, &devices);
	unsigned char *const bytes = v->region->addr;
	unsigned char before[SELFTEST_PLACES][VERIFY_BYTES];
	struct selftest_memory memory = {
		.bytes = bytes,
		.create = verify_create,
		.begin = verify_close,
		.end = verify_open,
		.edge = verify_edge,
		.rounds = 1,
		.apart = v->how->ops->cpu_optional,
		.arg = v,
	};
	cl_int result;

	if (!memory.apart)
		rounds_places(v->region->size, memory.at);
	result = verify_open(v);
	if (result)
		return result;
	for (int i = 0; i < SELFTEST_PLACES; i++)
		memcpy(before[i], bytes + memory.at[i], VERIFY_BYTES);
	result = selftest_memory(devices, count, &memory);
	verify_open(v);
	for (int i = SELFTEST_PLACES; i-- > 0;)
		memcpy(bytes + memory.at[i], before[i], VERIFY_BYTES);
	verify_close(v);
	for (int i = 0; i < 2; i++)
		if (v->buffers[i].hidden)
			v->how->ops->release_hidden(v->buffers[i].hidden);
	return result;
}

/* A registration is held by its region, once. */
static bool verify_is_possible(const struct import_region *region, cl_mem_flags flags)
{
	return region->addr && !region->opaque && region->size >= VERIFY_LEAST &&
	       flags & CL_MEM_READ_WRITE && region->access & IMPORT_WRITE &&
	       !(region->kinds & 1u << IMPORT_UNWRITABLE);
}

cl_int verify_import(const struct context_import *how, cl_mem_flags flags,
		     struct import_region *region)
{
	struct verify v = { .how = how, .region = region };
	cl_int result;

	if (!verify_is_possible(region, flags)) {
		log_error("CLIMPORT_VERIFY: this import is not verified: the test would write to "
			  "its memory, or the memory is a registration");
		return CL_SUCCESS;
	}
	result = verify_run(&v);
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
