/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Begins and ends access for callbacks, which may not block: at once where no
 * fence has to be waited for, which is almost always, else on a thread.  The
 * thread polls the fences, so that one buffer whose producer is slow delays no
 * other.
 */
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "descriptor.h"
#include "lock.h"
#include "log.h"
#include "ops.h"
#include "thread.h"

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

static void worker_forget(struct lock *lock) TSA(no_thread_safety_analysis);

LOCK_DEFINE_IN_CHILD(worker_lock, LOCK_LAST, worker_forget); /* the three below */
static struct job *queued GUARDED_BY(worker_lock), **queued_tail GUARDED_BY(worker_lock) = &queued;
static int wake_fd GUARDED_BY(worker_lock) = -1;

/* The worker is the parent's, and so are its jobs. */
static void worker_forget(struct lock *lock)
{
	(void)lock;
	queued = NULL;
	queued_tail = &queued;
	wake_fd = -1;
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
	return poll(&fd, 1, 0) != 0;
}

static void undo(struct job *job)
{
	while (job->edge == IMPORT_BEGIN && job->begun--)
		import_end_access(job->regions[job->begun], job->access[job->begun]);
}

/* True when the job is over: done, or failed. */
static bool advance(struct job *job)
{
	int first_error = 0;

	while (job->begun < job->count && is_ready(job)) {
		int ret = bracket_one(job, job->begun);

		if (ret && !first_error)
			first_error = ret;
		if (ret && job->edge == IMPORT_BEGIN) {
			undo(job);
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

		if (!advance(job)) {
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

/* Sleeps until new work comes or a fence that a job waits for is signalled. */
static void wait_for_work(int wake, const struct job *waiting)
{
	size_t count = count_jobs(waiting), n = 1;
	struct pollfd *fds = malloc((count + 1) * sizeof(*fds)), only_wake;
	uint64_t ignored;

	if (!fds) /* poll the fences in turns instead */
		fds = &only_wake;
	fds[0] = (struct pollfd){ .fd = wake, .events = POLLIN };
	for (const struct job *job = waiting; job && fds != &only_wake; job = job->next) {
		struct import_region *region = job->regions[job->begun];

		fds[n++] = (struct pollfd){ region->fd,
					    region->ops->ready_events(job->access[job->begun]), 0 };
	}
	poll(fds, n, fds == &only_wake && waiting ? 1 : -1);
	if (fds[0].revents & POLLIN && read(wake, &ignored, sizeof(ignored)) < 0)
		log_debug("read of the worker's eventfd: %m");
	if (fds != &only_wake)
		free(fds);
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

static _Noreturn void *worker(void *arg)
{
	int wake = (int)(intptr_t)arg;
	struct job *waiting = NULL;

	for (;;) {
		struct job **tail = &waiting;

		while (*tail)
			tail = &(*tail)->next;
		*tail = take_queued();
		run_ready(&waiting);
		wait_for_work(wake, waiting);
	}
}

static int worker_start(void) REQUIRES(worker_lock)
{
	int fd, ret;

	if (wake_fd >= 0)
		return 0;
	fd = eventfd(0, EFD_CLOEXEC);
	if (fd < 0)
		return log_errno(errno, "eventfd: %m");
	ret = thread_start(worker, (void *)(intptr_t)fd);
	if (ret) {
		close(fd);
		return log_errno(ret, "cannot start a thread for DMA_BUF_IOCTL_SYNC");
	}
	wake_fd = fd;
	return 0;
}

/* The worker takes over a job that has to wait. */
static int enqueue(struct job *job)
{
	const uint64_t one = 1;
	int ret;

	lock_acquire(&worker_lock);
	ret = worker_start();
	if (!ret) {
		*queued_tail = job;
		queued_tail = &job->next;
		if (write(wake_fd, &one, sizeof(one)) < 0)
			log_debug("write to the worker's eventfd: %m");
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

	if (advance(&now))
		return 0;
	later = malloc(sizeof(*later));
	if (!later) {
		undo(&now);
		return log_errno(ENOMEM, "no memory for a dma-buf bracket");
	}
	*later = now;
	do
		ret = enqueue(later);
	while (descriptor_retry(&retry, ret));
	if (ret) {
		undo(&now);
		free(later);
	}
	return ret;
}
