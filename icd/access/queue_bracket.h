/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The open bracket of a queue: consecutive kernels of an in-order queue that use the same dma-bufs
 * share a START and an END.
 *
 * A kernel may join while START has not begun.  START then comes after everything that the
 * application knew when the application enqueued the kernel, for example a camera's frame in
 * another part of the buffer, and waits for all fences that existed then.  A later kernel opens a
 * new bracket, whose START waits in the queue for the kernels before; kernels that are enqueued
 * meanwhile join the new bracket.  So the faster kernels are enqueued, the more kernels share a
 * bracket.
 *
 * A consumer of the memory, in any process, may rely on no more than the application has observed.
 * So END may wait until just before the application can observe that a kernel of the bracket is
 * complete: until a command of the queue has a wait list, gives an event or blocks, and until the
 * application makes a call that icd/table.h marks SHOWS.  If a queue idles, a thread closes the bracket
 * within two milliseconds.
 *
 * A bracket stays open only behind kernels without a wait list and without an event, on in-order
 * queues, and for memory whose access has to be ended.  For memory without an end of access,
 * nothing says when the host writes again.
 *
 * An acquire of cl_khr_external_memory without list and event opens a bracket, too, whose START is the acquire's.  The
 * kernels behind it wait for START, and the release behind them is its END: the three cost what a kernel on an import
 * does.  Any other command closes the bracket, and a marker then holds the queue back until START; the release has a
 * bracket of its own.
 *
 * The lock of a queue's bracket is held across the driver's enqueue functions, so that no joining
 * kernel can come behind the END.  The lock is recursive: a driver may call the application
 * back.
 */
#ifndef ICD_ACCESS_QUEUE_BRACKET_H
#define ICD_ACCESS_QUEUE_BRACKET_H

#include <stdatomic.h>

#include "icd/access/bracket.h"

struct queue_bracket;

/* Open brackets of all queues.  While the count is 0, no call has one to close. */
extern atomic_uint queue_bracket_count;

/* Pairs with queue_bracket_open(). */
static inline bool queue_bracket_any(void)
{
	return atomic_load_explicit(&queue_bracket_count, memory_order_acquire) != 0;
}

/**
 * queue_bracket_enter - let a command without a wait list use the open bracket of its queue
 * @imports: that the command uses; none: a kernel, which joins an acquire alone
 * @edges: enum access_edges: a kernel's, an acquire's or a release's
 * @may_open: open a bracket if no open bracket admits the command
 * @open: set to the bracket on success
 *
 * An open bracket that does not admit the command is closed.  Returns NULL, or the queue's record, locked:
 * the caller enqueues the kernel at once, and then calls queue_bracket_leave().
 */
struct queue_bracket *queue_bracket_enter(cl_command_queue queue, const struct memobj_list *imports,
					  unsigned int edges, bool may_open, struct bracket **open);

/*
 * Adds the kernel's event, as bracket_add().  @command: NULL: the driver has refused the kernel, or the command is a release,
 * and the bracket is closed; an acquire's stays open.  @marker: NULL, or closes the bracket.  Returns as bracket_end().
 */
cl_int queue_bracket_leave(struct queue_bracket *q, cl_event command, cl_event *marker);

/* Before a call by which the application could observe that commands of the queue are complete. */
void queue_bracket_close_slowpath(cl_command_queue queue);

static inline void queue_bracket_close(cl_command_queue queue)
{
	if (queue_bracket_any())
		queue_bracket_close_slowpath(queue);
}

/* Closes the brackets of all queues that use @region, before the application gives it away; NULL: all brackets. */
void queue_bracket_close_all(const struct import_region *region);

/* The application is about to release a queue, perhaps for the last time. */
void queue_bracket_forget(cl_command_queue queue);

/* No bracket stays open from now on: the application can observe completion unseen. */
void queue_bracket_forbid(void);

#endif /* ICD_ACCESS_QUEUE_BRACKET_H */
