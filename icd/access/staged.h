/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Images of in-place buffers whose method makes no images.
 *
 * Such an image is the driver's, made of a stage (objects/in_place.h): a buffer in device memory.  The bytes
 * belong to the in-place buffer.  Before a command uses the image the device copies the buffer to the stage,
 * and behind the command, unless the image is read-only, the stage to the buffer.  So host and buffer have
 * what kernels write to the image, behind the command's event.
 *
 * Images of one buffer share the stage.  OpenCL leaves undefined what happens to a buffer that commands use
 * as a buffer and as an image at the same time.  Threads may share a queue: no command on a staged image comes
 * between another such command and its copies.  A command on the buffer itself may, if another thread gives the
 * command to the queue without an order between the threads.
 */
#ifndef ICD_ACCESS_STAGED_H
#define ICD_ACCESS_STAGED_H

#include <pthread.h>

#include "icd/cl_compat.h"
#include "icd/objects/memobj.h"
#include "util/list.h"

/* A command's use of the stage of an in-place buffer. */
struct staged_use {
	struct memobj *source; /* held: the in-place buffer */
	bool is_written;       /* by the command */
};

/*
 * A thread's turn on stages, for commands of one queue.  A turn begins before the first copy of a command and
 * ends when the last copy is enqueued.  Commands of other queues, and on other stages, need no turn: a driver
 * may block in an enqueue.
 */
struct staged_turn {
	struct list link;
	pthread_t owner;
	uint32_t process; /* fork_generation() */
	int cancel_state; /* of the thread before the turn, in which the thread is not cancelled */
	cl_command_queue queue;
	const struct staged_use *uses; /* borrowed */
	cl_uint count;
};

/* Whether kernels can write to a staged image. */
bool staged_is_writable(const struct memobj *image);

/**
 * staged_take_turn - wait until no other thread has a turn on one of the stages
 * @turn: queue, uses and count are set
 *
 * A driver may call the application from an enqueue: turns of a thread nest.
 *
 * Returns whether the turn has begun; not for a thread that forks while another has its turn.
 */
bool staged_take_turn(struct staged_turn *turn);
void staged_end_turn(struct staged_turn *turn);

/**
 * staged_copy - enqueue the copy before, or behind, a command that uses a staged image
 * @source: the in-place buffer
 * @is_before: to the stage; else to the buffer
 * @event: set on success, an event of the driver
 *
 * Returns CL_SUCCESS; or an error, logged: there is no copy.
 */
cl_int staged_copy(cl_command_queue queue, struct memobj *source, bool is_before, cl_uint num_wait,
		   const cl_event *wait, cl_event *event);

#endif /* ICD_ACCESS_STAGED_H */
