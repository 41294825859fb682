/* SPDX-License-Identifier: Apache-2.0 */
#include "job.h"

#include <signal.h>
#include <stdlib.h>
#include <time.h>

#include "import/log.h"

void job_hold(struct job *job)
{
	atomic_fetch_add_explicit(&job->refs, 1, memory_order_relaxed);
}

void job_put(struct job *job)
{
	if (atomic_fetch_sub_explicit(&job->refs, 1, memory_order_acq_rel) != 1)
		return;
	pthread_cond_destroy(&job->ended);
	pthread_mutex_destroy(&job->lock);
	free(job);
}

int job_thread_create(pthread_t *thread, void *(*run)(void *), void *arg)
{
	sigset_t all, before;
	int ret;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	ret = pthread_create(thread, NULL, run, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return ret;
}

static void *job_thread(void *arg)
{
	struct job *job = arg;

	job->run(job);
	pthread_mutex_lock(&job->lock);
	job->has_ended = true;
	pthread_cond_signal(&job->ended);
	pthread_mutex_unlock(&job->lock);
	job_put(job);
	return NULL;
}

static void job_init(struct job *job)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&job->ended, &attr);
	pthread_condattr_destroy(&attr);
	pthread_mutex_init(&job->lock, NULL);
	atomic_init(&job->refs, 2); /* the caller's, and the thread's */
}

static bool job_wait(struct job *job, unsigned int limit_ms)
{
	struct timespec until;
	bool ended;
	int ret = 0;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += limit_ms / 1000;
	pthread_mutex_lock(&job->lock);
	while (!job->has_ended && !ret)
		ret = pthread_cond_timedwait(&job->ended, &job->lock, &until);
	ended = job->has_ended;
	pthread_mutex_unlock(&job->lock);
	return ended;
}

enum job_end job_run(struct job *job, unsigned int limit_ms)
{
	pthread_t thread;
	int ret;

	job_init(job);
	ret = job_thread_create(&thread, job_thread, job);
	if (ret) {
		job_put(job); /* the thread's */
		log_errno(ret, "no thread for a self-test");
		return JOB_NOT_STARTED;
	}
	if (job_wait(job, limit_ms)) {
		pthread_join(thread, NULL);
		return JOB_ENDED;
	}
	pthread_detach(thread);
	log_error("a self-test did not end in %u seconds; it is left alone", limit_ms / 1000);
	return JOB_ABANDONED;
}
