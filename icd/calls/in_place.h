/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls on in-place buffers (objects/in_place.h), whose memory is the program's, and stays at the
 * program's address.
 *
 * Khronos' specification of clCreateBuffer: "OpenCL implementations are allowed to cache the buffer
 * contents pointed to by host_ptr in device memory."  A program may therefore count on its memory
 * alone where the specification says that the memory has "the latest bits": behind a map.  An
 * in-place buffer has the latest bits at all times, and so needs commands of the driver for their
 * order, their events and their errors only: a marker for a map and for an unmap, and a single byte for
 * a read or write between the buffer and its own place.
 */
#ifndef ICD_CALLS_IN_PLACE_H
#define ICD_CALLS_IN_PLACE_H

#include "icd/objects/in_place.h"
#include "icd/objects/memobj.h"

/* A reference to the record of an in-place buffer, to be put; NULL: @mem is none. */
struct memobj *in_place_get(cl_mem mem);

/* The arguments of a map. */
struct in_place_call {
	cl_command_queue queue;
	cl_bool blocking;
	cl_map_flags flags;
	size_t offset, size;
	cl_uint num_wait;
	const cl_event *wait;
	cl_event *event;
};

/* When a map runs, and the type of its event: CL_COMMAND_MAP_BUFFER or CL_COMMAND_MAP_IMAGE. */
struct in_place_order {
	cl_command_type type;
	cl_command_queue queue;
	cl_bool blocking;
	cl_uint num_wait;
	const cl_event *wait;
	cl_event *event;
};

/* A map that gives the program @pointer.  The driver has a marker in the map's place. */
cl_int in_place_map_at(const struct memobj *obj, void *pointer, const struct in_place_order *order);

/* A map of an in-place buffer.  Returns the program's pointer, or NULL with an error. */
void *in_place_map(const struct memobj *obj, const struct in_place_call *call, cl_int *err);

/* @pointer: of in_place_map(); another is CL_INVALID_VALUE. */
cl_int in_place_unmap(const struct memobj *obj, cl_command_queue queue, const void *pointer,
		      cl_uint num_wait, const cl_event *wait, cl_event *event);

/**
 * in_place_transfer - a read or write between an in-place buffer and @memory of the program
 * @size: 1 on return if the bytes are at @memory already, because @memory is their own place
 */
void in_place_transfer(cl_mem buffer, size_t offset, size_t *size, const void *memory);

/* CL_INVALID_VALUE for wrong flags of a map, CL_INVALID_OPERATION for flags that CL_MEM_HOST_* forbids. */
cl_int in_place_check_map_flags(const struct memobj *obj, cl_map_flags flags);

/* Whether CL_MEM_HOST_* flags forbid a read or write, CL_MAP_READ or CL_MAP_WRITE, of an in-place buffer or image. */
bool in_place_forbids(cl_mem buffer, cl_map_flags access);

/* Whether one of @count objects is an in-place buffer. */
bool in_place_has_any(cl_uint count, const cl_mem *mems);

/*
 * clEnqueueMigrateMemObjects with in-place buffers, which stay where they are: the driver migrates the
 * others.
 */
cl_int in_place_migrate(cl_command_queue queue, cl_uint count, const cl_mem *mems,
			cl_mem_migration_flags flags, cl_uint num_wait, const cl_event *wait,
			cl_event *event);

#endif /* ICD_CALLS_IN_PLACE_H */
