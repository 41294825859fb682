/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Begins and ends access for callbacks, which may not block: at once where no
 * fence has to be waited for, which is almost always, else on a thread.  The
 * thread polls the fences, so that one buffer whose producer is slow delays no
 * other.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "import/ops.h"
#include "util/descriptor.h"
#include "util/lock.h"
#include "util/log.h"
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
 * The pipe that wakes the worker.  A program may close it, as daemons close all descriptors: then
 * there is another worker for jobs to come.  Not an eventfd, all of which have one inode.
 */
struct wake {
	int read_fd, write_fd;
	struct descriptor_id id; /* of both */
};

static void worker_forget(struct lock *lock) TSA(no_thread_safety_analysis);

LOCK_DEFINE_IN_CHILD(worker_lock, LOCK_LAST, worker_forget); /* the three below */
static struct job *queued GUARDED_BY(worker_lock), **queued_tail GUARDED_BY(worker_lock) = &queued;
static struct wake wake GUARDED_BY(worker_lock) = { -1, -1, { 0 } };

/* The worker is the parent's, and so are its jobs. */
static void worker_forget(struct lock *lock)
{
	(void)lock;
	queued = NULL;
	queued_tail = &queued;
	wake = (struct wake){ .read_fd = -1, .write_fd = -1 };
}

static int bracket_one(struct job *job, size_t i)
{
	if (job->edge == IMPORT_BEGIN)
		return import_begin_access(job->regions[i], job->access[i]);
	return import_end_access(job->regions[i], job->access[i]);
}

static bool is_ready(const struct job *job)
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

	while (job->begun < job->count && is_ready(job)) {
		int ret = bracket_one(job, job->begun);

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

/* Runs what can run; what has to wait for fences stays in the list. */
static void run_ready(struct job **waiting)
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

static size_t count_jobs(const struct job *job)
{
	size_t n = 0;

	for (; job; job = job->next)
		n++;
	return n;
}

/* False: the pipe is the worker's no more. */
static bool wake_drain(const struct wake *w, const struct pollfd *fd)
{
	char ignored[64];

	if (fd->revents & (POLLHUP | POLLERR | POLLNVAL) || !descriptor_is(w->read_fd, &w->id))
		return false;
	if (fd->revents & POLLIN && read(w->read_fd, ignored, sizeof(ignored)) < 0)
		log_debug("read of the worker's pipe: %m");
	return true;
}

/*
 * Sleeps until new work comes or a fence that a job waits for is signalled.  False: no new work
 * comes by this pipe.
 */
static bool wait_for_work(const struct wake *w, bool is_open, const struct job *waiting)
{
	size_t count = count_jobs(waiting), n = 1;
	struct pollfd *fds = malloc((count + 1) * sizeof(*fds)), only_wake;

	if (!fds) /* poll the fences in turns instead */
		fds = &only_wake;
	fds[0] = (struct pollfd){ .fd = is_open ? w->read_fd : -1, .events = POLLIN };
	for (const struct job *job = waiting; job && fds != &only_wake; job = job->next) {
		struct import_region *region = job->regions[job->begun];

		fds[n++] = (struct pollfd){ region->fd,
					    region->ops->ready_events(job->access[job->begun]), 0 };
	}
	poll(fds, n, fds == &only_wake && waiting ? 1 : -1);
	is_open = is_open && wake_drain(w, &fds[0]);
	if (fds != &only_wake)
		free(fds);
	return is_open;
}

static struct job *take_queued(void)
{
	struct job *jobs;

	lock_acquire(&worker_lock);
	jobs = queued;
	queued = NULL;
	queued_tail = &queued;
	lock_release(&worker_lock);
	return jobs;
}

static void *worker_main(void *arg)
{
	struct wake *mine = arg;
	struct job *waiting = NULL;
	bool is_open = true;

	for (;;) {
		struct job **tail = &waiting;

		while (*tail)
			tail = &(*tail)->next;
		*tail = take_queued();
		run_ready(&waiting);
		if (!is_open && !waiting)
			break;
		is_open = wait_for_work(mine, is_open, waiting);
	}
	descriptor_close(mine->read_fd, &mine->id);
	descriptor_close(mine->write_fd, &mine->id);
	free(mine);
	return NULL;
}

static int wake_create(struct wake *w)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC | O_NONBLOCK))
		return log_errno(errno, "pipe: %m");
	*w = (struct wake){ .read_fd = fds[0], .write_fd = fds[1] };
	return descriptor_identify(fds[0], &w->id);
}

static bool wake_is_open(const struct wake *w)
{
	return descriptor_is(w->read_fd, &w->id) && descriptor_is(w->write_fd, &w->id);
}

static int worker_create(const struct wake *w)
{
	struct wake *theirs = malloc(sizeof(*theirs));
	int ret;

	if (!theirs)
		return log_errno(ENOMEM, "no memory for a worker thread");
	*theirs = *w;
	ret = thread_start(worker_main, theirs);
	if (!ret)
		return 0;
	free(theirs);
	return log_errno(ret, "cannot start a thread for DMA_BUF_IOCTL_SYNC");
}

static int worker_start(void) REQUIRES(worker_lock)
{
	struct wake new;
	int ret;

	if (wake_is_open(&wake))
		return 0;
	ret = wake_create(&new);
	if (ret)
		return ret;
	ret = worker_create(&new);
	if (ret) {
		close(new.read_fd);
		close(new.write_fd);
		return ret;
	}
	wake = new;
	return 0;
}

/* The worker takes over a job that has to wait. */
static int worker_enqueue(struct job *job)
{
	int ret;

	lock_acquire(&worker_lock);
	ret = worker_start();
	if (!ret) {
		*queued_tail = job;
		queued_tail = &job->next;
		if (write(wake.write_fd, "", 1) < 0 && errno != EAGAIN) /* full: it is awake */
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
	struct descriptor_retry retry = { 0 };
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
	while (descriptor_retry(&retry, ret));
	if (ret) {
		worker_undo(&now);
		free(later);
	}
	return ret;
}
