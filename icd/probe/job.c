/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/probe/job.h"

#include <stdlib.h>
#include <time.h>

#include "util/log.h"
#include "util/thread.h"

#define SLICE_MS 100

void job_put(struct job *job)
{
	if (atomic_fetch_sub_explicit(&job->refs, 1, memory_order_acq_rel) != 1)
		return;
	pthread_cond_destroy(&job->ended);
	pthread_mutex_destroy(&job->lock);
	free(job);
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

static struct timespec job_slice_end(void)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += SLICE_MS * 1000000L;
	if (until.tv_nsec >= 1000000000L) {
		until.tv_nsec -= 1000000000L;
		until.tv_sec++;
	}
	return until;
}

/* The clock goes on while the process is stopped: a stop costs no more than a slice. */
static bool job_wait(struct job *job, unsigned int limit_ms)
{
	bool ended;

	pthread_mutex_lock(&job->lock);
	for (unsigned int left = limit_ms / SLICE_MS; left && !job->has_ended; left--) {
		const struct timespec until = job_slice_end();
		int ret = 0;

		while (!job->has_ended && !ret)
			ret = pthread_cond_timedwait(&job->ended, &job->lock, &until);
	}
	ended = job->has_ended;
	pthread_mutex_unlock(&job->lock);
	return ended;
}

enum job_end job_run(struct job *job, unsigned int limit_ms)
{
	pthread_t thread;
	int ret;
	THREAD_NO_CANCEL();

	job_init(job);
	ret = thread_create(&thread, 0, job_thread, job);
	if (ret) {
		job_put(job); /* the thread's */
		log_errno(-ret, "no thread for climport-probe");
		return JOB_NOT_STARTED;
	}
	if (job_wait(job, limit_ms)) {
		pthread_join(thread, NULL);
		return JOB_ENDED;
	}
	pthread_detach(thread);
	return JOB_ABANDONED;
}
