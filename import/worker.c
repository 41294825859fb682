/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Begins access for callbacks, which may not block.  Access begins at once where no fence
 * has to be waited for: almost always.  Else a thread of its own polls the fences, so that a buffer
 * with a slow producer delays no other buffer.
 */
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>

#include "import/import.h"
#include "util/descriptor.h"
#include "util/log.h"
#include "util/thread.h"

/* Until the next look whether the program has closed the descriptor. */
#define WORKER_POLL_MS 1000

struct job {
	struct import_region *const *regions;
	const unsigned int *access;
	size_t count;
	size_t begun; /* regions already bracketed */
	void (*done)(void *arg, int error);
	void *arg;
};

/* Whether the fences of the next region are signalled, or its descriptor is closed. */
static bool worker_poll(const struct job *job, int ms)
{
	const struct import_region *region = job->regions[job->begun];
	struct pollfd fd = { .fd = region->fd };
	int ready;

	if (!region->ops->ready_events)
		return true;
	fd.events = region->ops->ready_events(job->access[job->begun]);
	ready = poll(&fd, 1, ms);
	return ready > 0 || (ready < 0 && errno != EINTR) ||
	       !descriptor_is(region->fd, &region->id);
}

static void worker_undo(struct job *job)
{
	while (job->begun--)
		import_sync(job->regions[job->begun], job->access[job->begun], IMPORT_END);
}

/* True when the job is over: done, or failed.  Waits @ms for the fences of each region. */
static bool worker_advance(struct job *job, int ms)
{
	while (job->begun < job->count && worker_poll(job, ms)) {
		int ret = import_sync(job->regions[job->begun], job->access[job->begun],
				      IMPORT_BEGIN);

		if (ret) {
			worker_undo(job);
			job->done(job->arg, ret);
			return true;
		}
		job->begun++;
	}
	if (job->begun < job->count)
		return false;
	job->done(job->arg, 0);
	return true;
}

static void *worker_main(void *job)
{
	thread_begin("climport-sync");
	while (!worker_advance(job, WORKER_POLL_MS))
		;
	free(job);
	return NULL;
}

/* The thread takes over a job that has to wait. */
static int worker_start(const struct job *job)
{
	struct job *later = malloc(sizeof(*later));
	int ret;

	if (!later)
		return log_errno(ENOMEM, "no memory to wait for the fence of a dma-buf");
	*later = *job;
	ret = thread_start(worker_main, later);
	if (!ret)
		return 0;
	free(later);
	return log_errno(-ret, "cannot start a thread for DMA_BUF_IOCTL_SYNC");
}

int import_begin_async(struct import_region *const *regions, const unsigned int *access,
		       size_t count, void (*done)(void *arg, int error), void *arg)
{
	struct job job = { regions, access, count, 0, done, arg };
	int ret;
	THREAD_NO_CANCEL();

	if (worker_advance(&job, 0))
		return 0;
	ret = worker_start(&job);
	if (ret)
		worker_undo(&job);
	return ret;
}
