/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Begins and ends access for callbacks, which may not block.  Access begins at once where no fence
 * has to be waited for: almost always.  Else a thread, the worker, polls the fences, so that a
 * buffer with a slow producer delays no other buffer.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "import/ops.h"
#include "util/descriptor.h"
#include "util/fork.h"
#include "util/lock.h"
#include "util/log.h"
#include "util/shortage.h"
#include "util/thread.h"

struct job {
	struct job *next;
	enum import_edge edge;
	struct import_region *const *regions;
	const unsigned int *access;
	size_t count;
	size_t begun; /* regions already bracketed */
	void (*done)(void *arg, int error);
	void *arg;
};

/*
 * The pipe that wakes the worker.  A program may close the pipe, as daemons close all descriptors:
 * another worker then takes the jobs to come.  A pipe, as all eventfds have one inode.
 */
struct worker_pipe {
	struct descriptor_own read, write;
};

static void worker_forget(struct lock *lock) TSA(no_thread_safety_analysis);

LOCK_DEFINE_IN_CHILD(worker_lock, LOCK_LAST, worker_forget); /* queue and pipe */
static struct job *worker_queued GUARDED_BY(worker_lock),
	**worker_queued_tail GUARDED_BY(worker_lock) = &worker_queued;
static struct worker_pipe worker_pipe GUARDED_BY(worker_lock) = { { .fd = -1 }, { .fd = -1 } };

/* The worker is the parent's, and so are the jobs. */
static void worker_forget(struct lock *lock)
{
	(void)lock;
	worker_queued = NULL;
	worker_queued_tail = &worker_queued;
}

static int worker_bracket(struct job *job, size_t i)
{
	if (job->edge == IMPORT_BEGIN)
		return import_begin_access(job->regions[i], job->access[i]);
	return import_end_access(job->regions[i], job->access[i]);
}

static bool worker_is_ready(const struct job *job)
{
	struct import_region *region = job->regions[job->begun];
	struct pollfd fd = { .fd = region->fd };

	if (job->edge == IMPORT_END || !region->ops->ready_events)
		return true;
	fd.events = region->ops->ready_events(job->access[job->begun]);
	return poll(&fd, 1, 0) != 0 || !descriptor_is(region->fd, &region->id);
}

static void worker_undo(struct job *job)
{
	while (job->edge == IMPORT_BEGIN && job->begun--)
		import_end_access(job->regions[job->begun], job->access[job->begun]);
}

/* True when the job is over: done, or failed. */
static bool worker_advance(struct job *job)
{
	int first_error = 0;

	while (job->begun < job->count && worker_is_ready(job)) {
		int ret = worker_bracket(job, job->begun);

		if (ret && !first_error)
			first_error = ret;
		if (ret && job->edge == IMPORT_BEGIN) {
			worker_undo(job);
			job->done(job->arg, ret);
			return true;
		}
		job->begun++;
	}
	if (job->begun < job->count)
		return false;
	job->done(job->arg, first_error);
	return true;
}

/* Runs the jobs that can run; jobs that wait for fences stay in the list. */
static void worker_run_ready(struct job **waiting)
{
	for (struct job **link = waiting; *link;) {
		struct job *job = *link;

		if (!worker_advance(job)) {
			link = &job->next;
			continue;
		}
		*link = job->next;
		free(job);
	}
}

static size_t worker_count_jobs(const struct job *job)
{
	size_t n = 0;

	for (; job; job = job->next)
		n++;
	return n;
}

/* False: the pipe is the worker's no more. */
static bool worker_drain(struct worker_pipe *pipe, const struct pollfd *fd)
{
	char ignored[64];

	if (fd->revents & (POLLHUP | POLLERR | POLLNVAL) || !descriptor_is_own(&pipe->read))
		return false;
	if (fd->revents & POLLIN && read(pipe->read.fd, ignored, sizeof(ignored)) < 0)
		log_debug("read of the worker's pipe: %m");
	return true;
}

/* The fences that jobs wait for, into @fds. */
static void worker_fill_fences(const struct job *waiting, struct pollfd *fds)
{
	for (const struct job *job = waiting; job; job = job->next) {
		struct import_region *region = job->regions[job->begun];

		*fds++ = (struct pollfd){ region->fd,
					  region->ops->ready_events(job->access[job->begun]), 0 };
	}
}

/* Without memory for the fences: poll(2) of the pipe alone, and a look at the fences each ms. */
static void worker_poll_pipe(struct pollfd *pipe, bool is_waiting)
{
	poll(pipe, 1, is_waiting ? 1 : -1);
}

/* Until new work comes, or a fence is signalled.  @pipe: the pipe's read end, and its events. */
static void worker_poll(struct pollfd *pipe, const struct job *waiting)
{
	size_t count = worker_count_jobs(waiting);
	struct pollfd *fds = malloc((count + 1) * sizeof(*fds));

	if (!fds) {
		worker_poll_pipe(pipe, waiting);
		return;
	}
	fds[0] = *pipe;
	worker_fill_fences(waiting, fds + 1);
	poll(fds, count + 1, -1);
	*pipe = fds[0];
	free(fds);
}

/* False: no new work comes by this pipe. */
static bool worker_wait(struct worker_pipe *pipe, bool is_open, const struct job *waiting)
{
	struct pollfd fd = { .fd = is_open ? pipe->read.fd : -1, .events = POLLIN };

	worker_poll(&fd, waiting);
	return is_open && worker_drain(pipe, &fd);
}

static struct job *worker_take_queued(void)
{
	struct job *jobs;

	lock_acquire(&worker_lock);
	jobs = worker_queued;
	worker_queued = NULL;
	worker_queued_tail = &worker_queued;
	lock_release(&worker_lock);
	return jobs;
}

static void *worker_main(void *arg)
{
	struct worker_pipe *mine = arg;
	struct job *waiting = NULL;
	bool is_open = true;

	thread_begin("climport-sync");
	for (;;) {
		struct job **tail = &waiting;

		while (*tail)
			tail = &(*tail)->next;
		*tail = worker_take_queued();
		worker_run_ready(&waiting);
		if (!is_open && !waiting)
			break;
		is_open = worker_wait(mine, is_open, waiting);
	}
	descriptor_own_close(&mine->read);
	descriptor_own_close(&mine->write);
	free(mine);
	return NULL;
}

static int worker_pipe_create(struct worker_pipe *p)
{
	int fds[2];
	int ret;

	if (pipe2(fds, O_CLOEXEC | O_NONBLOCK))
		return log_errno(errno, "pipe: %m");
	ret = descriptor_own(&p->read, fds[0]);
	return ret ? ret : descriptor_own(&p->write, fds[1]);
}

static int worker_create(const struct worker_pipe *p)
{
	struct worker_pipe *theirs = malloc(sizeof(*theirs));
	int ret;

	if (!theirs)
		return log_errno(ENOMEM, "no memory for a worker thread");
	*theirs = *p;
	ret = thread_start(worker_main, theirs);
	if (!ret)
		return 0;
	free(theirs);
	return log_errno(-ret, "cannot start a thread for DMA_BUF_IOCTL_SYNC");
}

static int worker_start(void) REQUIRES(worker_lock)
{
	struct worker_pipe new;
	int ret;

	if (descriptor_is_own(&worker_pipe.read) && descriptor_is_own(&worker_pipe.write))
		return 0;
	/* A child whose handlers did not run, in util/fork.c, has the parent's jobs still. */
	if (worker_pipe.read.process != fork_generation())
		worker_forget(&worker_lock);
	ret = worker_pipe_create(&new);
	if (ret)
		return ret;
	ret = worker_create(&new);
	if (ret) {
		close(new.read.fd);
		close(new.write.fd);
		return ret;
	}
	worker_pipe = new;
	return 0;
}

/* The worker takes over a job that has to wait. */
static int worker_enqueue(struct job *job)
{
	int ret;

	lock_acquire(&worker_lock);
	ret = worker_start();
	if (!ret) {
		*worker_queued_tail = job;
		worker_queued_tail = &job->next;
		if (write(worker_pipe.write.fd, "", 1) < 0 && errno != EAGAIN) /* full: awake */
			log_debug("write to the worker's pipe: %m");
	}
	lock_release(&worker_lock);
	return ret;
}

int import_bracket_async(enum import_edge edge, struct import_region *const *regions,
			 const unsigned int *access, size_t count,
			 void (*done)(void *arg, int error), void *arg)
{
	struct job now = { NULL, edge, regions, access, count, 0, done, arg }, *later;
	struct shortage_retry retry = { 0 };
	int ret;
	THREAD_NO_CANCEL();

	if (worker_advance(&now))
		return 0;
	later = malloc(sizeof(*later));
	if (!later) {
		worker_undo(&now);
		return log_errno(ENOMEM, "no memory for a dma-buf bracket");
	}
	*later = now;
	do
		ret = worker_enqueue(later);
	while (shortage_retry(&retry, ret));
	if (ret) {
		worker_undo(&now);
		free(later);
	}
	return ret;
}
