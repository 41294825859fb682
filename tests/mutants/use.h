/* SPDX-License-Identifier: Apache-2.0 */
/* One use of an object by a command, and the names in the rows USE of rows.h. */
#ifndef TESTS_MUTANTS_USE_H
#define TESTS_MUTANTS_USE_H

#include "mutants.h"

/* The sixteen calls, then other commands. */
enum call {
#define ENQUEUE(name, parameters, arguments, ...) CALL_##name,
#define MAP(name, parameters, arguments, ...) CALL_##name,
#include "calls.h"
#undef ENQUEUE
#undef MAP
	CALL_NONE,
	CALL_SIXTEEN,
};

/* One use of an object by a command: pointers to the parameters of the call, or NULL. */
struct mutant_use {
	enum call call;
	cl_command_queue queue;
	cl_mem *from, *to;
	cl_bool *blocking;
	size_t *offset[2]; /* of the source, of the destination */
	const size_t **origin[2];
	size_t *pitch[2];
	size_t *size, unit;
	cl_map_flags map;
	cl_uint *num_events;
	const cl_event **events;
	cl_event **event, *asked; /* the application's variable */
	cl_event own;
	struct mutant_object *object; /* the first of source and destination that is an object */
	int action;
};

enum when {
	ALWAYS,
	BLOCKING,
	NOT_BLOCKING_CALL,
	WITH_WAIT_LIST,
	WITH_EVENT,
	WITHOUT_EVENT,
	WITH_OFFSET,
	WITH_ONE_BYTE,
	ON_SUB_BUFFER,
	ON_IMAGE,
	ON_IMAGE_1D,
	ON_IMAGE_OF_SUB_BUFFER,
	ON_IMAGE_BY_PROPERTIES,
	ON_SECOND_QUEUE,
	ON_OUT_OF_ORDER,
	ON_PROFILING,
	ON_READ_ONLY,
	ON_WRITE_ONLY,
	ON_HOST_FLAGS,
	ON_USE_HOST_PTR,
	ON_RETAINED,
	ON_ORPHAN,
	ON_SECOND_IMPORT,
	ON_UNALIGNED,
	ON_LARGE,
	ON_OTHER_THREAD,
	ON_DMA_BUF,
	ON_PLAIN,
	IN_SECOND_CONTEXT,
	AFTER_A_KERNEL,
	BETWEEN_IMPORTS,
	FROM_IMPORT_TO_PLAIN,
	FROM_PLAIN_TO_IMPORT,
	MAPS,
	MAP_READS,
	MAP_INVALIDATES,
};

/* An action below 0 is the error that the call returns instead. */
enum action {
	UNCHANGED,
	WORKS, /* the driver executes the call, without climport's layer */
	WORKS_AND_FAILS,
	SKIPPED, /* a marker stands for the command */
	NO_WAIT_LIST,
	NO_OFFSET_FROM,
	NO_OFFSET_TO,
	NO_PITCH_FROM,
	NO_PITCH_TO,
	SHORT,
	DOES_NOT_BLOCK,
	NO_EVENT,
	EVENT_ON_ERROR,
	POINTER_ON_ERROR,
	NO_CODE,
	AS_PARENT,
};

/* use.c */
bool mutant_use_is(enum when when, const struct mutant_use *use);
bool mutant_is_orphan(const struct mutant_object *object); /* an object above was released */

#endif
