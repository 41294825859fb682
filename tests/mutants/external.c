/* SPDX-License-Identifier: Apache-2.0 */
/* cl_khr_external_memory: the rows EXTERNAL of rows.h, errors that become others, and faults that ask for their name. */
#include "mutants.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEVICES 0x2051 /* CL_MEM_DEVICE_HANDLE_LIST_KHR */

typedef cl_int(CL_API_CALL *edge_function)(cl_command_queue, cl_uint, const cl_mem *, cl_uint,
					   const cl_event *, cl_event *);

/* Errors of the command or of the creation; @from CL_SUCCESS stands for none. */
static const struct row {
	enum mutant mutant;
	bool is_command;
	cl_int from, to;
} rows[] = {
#define EXTERNAL(name, version, where, says, is_command, from, to) \
	{ MUTANT_##name, is_command, from, to },
#include "rows.h"
};

static cl_int external_error_by_row(bool is_command, cl_int error)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].mutant == mutant && rows[i].is_command == is_command &&
		    rows[i].from == error)
			return rows[i].to;
	return error;
}

static edge_function external_next(const char *name)
{
	void *address = mutant_next.clGetExtensionFunctionAddress(name);
	edge_function function;

	memcpy(&function, &address, sizeof(function));
	return function;
}

static bool external_has_list(cl_uint num_wait, const cl_event *wait)
{
	return num_wait && wait && wait[0];
}

static cl_int external_edge(bool is_release, cl_command_queue queue, cl_uint count,
			    const cl_mem *mems, cl_uint num_wait, const cl_event *wait,
			    cl_event *event)
{
	const edge_function next = external_next(is_release
							 ? "clEnqueueReleaseExternalMemObjectsKHR"
							 : "clEnqueueAcquireExternalMemObjectsKHR");
	const bool forgets =
		(is_release ? MUTANT(external_release_early) : MUTANT(external_acquire_early)) ||
		(!count && MUTANT(external_without_objects_early));
	cl_int error;

	if (MUTANT(external_needs_an_event) && !event)
		return CL_INVALID_VALUE;
	if (MUTANT(external_no_objects_refused) && !count)
		return CL_INVALID_VALUE;
	if (forgets && external_has_list(num_wait, wait)) {
		num_wait = 0;
		wait = NULL;
	}
	if (MUTANT(external_first_event_alone) && num_wait > 1)
		num_wait = 1;
	error = next(queue, count, mems, num_wait, wait, event);
	if (!error && event && MUTANT(external_event_of_a_marker)) {
		mutant_next.clReleaseEvent(*event);
		error = mutant_next.clEnqueueMarkerWithWaitList(queue, 0, NULL, event);
	}
	return external_error_by_row(true, error);
}

static cl_int CL_API_CALL external_acquire(cl_command_queue queue, cl_uint count,
					   const cl_mem *mems, cl_uint num_wait,
					   const cl_event *wait, cl_event *event)
{
	return external_edge(false, queue, count, mems, num_wait, wait, event);
}

static cl_int CL_API_CALL external_release(cl_command_queue queue, cl_uint count,
					   const cl_mem *mems, cl_uint num_wait,
					   const cl_event *wait, cl_event *event)
{
	return external_edge(true, queue, count, mems, num_wait, wait, event);
}

void *mutant_external_function(const char *name)
{
	edge_function function = NULL;
	void *address; /* ISO C has no cast from a function to void * */

	if (name && !strcmp(name, "clEnqueueAcquireExternalMemObjectsKHR"))
		function = external_acquire;
	if (name && !strcmp(name, "clEnqueueReleaseExternalMemObjectsKHR") &&
	    !MUTANT(external_release_missing))
		function = external_release;
	memcpy(&address, &function, sizeof(address));
	return address;
}

/* The list without its devices, which stand behind the handle. */
static const cl_mem_properties *external_without_devices(const cl_mem_properties *from,
							 cl_mem_properties list[3])
{
	if (!MUTANT(external_devices_ignored) || from[0] == DEVICES)
		return from;
	memcpy(list, from, 2 * sizeof(list[0]));
	return list;
}

/* The first import of each size, retained for each later one. */
static cl_mem external_first(cl_mem mem, size_t size)
{
	static cl_mem first;
	static size_t of;

	if (!first || of != size) {
		first = mem;
		of = size;
		return mem;
	}
	mutant_next.clReleaseMemObject(mem);
	mutant_next.clRetainMemObject(first);
	return first;
}

static cl_mem external_made(cl_context context, cl_mem mem, cl_mem_flags flags, size_t size)
{
	if (MUTANT(external_copied)) {
		mutant_next.clReleaseMemObject(mem);
		return mutant_next.clCreateBuffer(context, flags, size, NULL, NULL);
	}
	return MUTANT(external_not_distinct) ? external_first(mem, size) : mem;
}

static cl_mem CL_API_CALL mutant_clCreateBufferWithProperties(cl_context context,
							      const cl_mem_properties *properties,
							      cl_mem_flags flags, size_t size,
							      void *host_ptr, cl_int *errcode_ret)
{
	cl_mem_properties list[3] = { 0 };
	cl_int error;
	cl_mem mem;

	if (!properties || !properties[0])
		return mutant_next.clCreateBufferWithProperties(context, properties, flags, size,
								host_ptr, errcode_ret);
	if (MUTANT(external_flags_ignored) && !(flags & CL_MEM_WRITE_ONLY))
		flags &= ~(cl_mem_flags)(CL_MEM_READ_ONLY | CL_MEM_HOST_WRITE_ONLY);
	mem = mutant_next.clCreateBufferWithProperties(
		context, external_without_devices(properties, list), flags, size, host_ptr, &error);
	if (!mem && MUTANT(external_refused_descriptor_closed))
		close((int)properties[1]);
	if (!mem && external_error_by_row(false, error) == CL_SUCCESS)
		mem = mutant_next.clCreateBuffer(context, CL_MEM_READ_WRITE, 64, NULL, NULL);
	else if (mem)
		mem = external_made(context, mem, flags, size);
	if (errcode_ret)
		*errcode_ret = mem ? CL_SUCCESS : external_error_by_row(false, error);
	return mem;
}

cl_int mutant_external_types(cl_uint param, size_t size, void *types, size_t *size_ret)
{
	const bool is_empty = MUTANT(external_types_empty) ||
			      (MUTANT(external_platform_without_types) &&
			       param == CL_PLATFORM_EXTERNAL_MEMORY_IMPORT_HANDLE_TYPES_KHR);
	static const cl_uint other = CL_EXTERNAL_MEMORY_HANDLE_OPAQUE_FD_KHR;

	if (is_empty && size_ret)
		*size_ret = 0;
	if (is_empty)
		return CL_SUCCESS;
	if (!MUTANT(external_linear_is_no_subset) || param != 0x2052)
		return 1;
	if (types && size < sizeof(other))
		return CL_INVALID_VALUE;
	if (types)
		memcpy(types, &other, sizeof(other));
	if (size_ret)
		*size_ret = sizeof(other);
	return CL_SUCCESS;
}

void mutant_offer_external(struct _cl_icd_dispatch *offered)
{
	MUTANT_OFFER(offered, clCreateBufferWithProperties);
}
