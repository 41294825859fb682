/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/selftest/job.h"

#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include "util/log.h"
#include "util/thread.h"

#define SLICE_MS 100
#define STACK_SIZE (8 << 20) /* bytes of address space, enough for compilers */

static atomic_uint late; /* abandoned jobs with a late end */

/*
 * A permission for the jobs of a thread.  Not _Thread_local: if the layer is unloaded before the
 * threads end, the leak sanitizer looks for thread-local memory and crashes.  If the application
 * has taken all keys, threads share a permission, and a child of fork() refuses a few more tests.
 */
enum { ALLOWED, FORBIDDEN, ASKED_FOR };
static pthread_key_t permission_key; /* never deleted: a job may outlive exit()'s destructors */
static bool has_key;
static _Atomic(intptr_t) permission_shared;

__attribute__((constructor)) static void job_permission_create(void)
{
	has_key = !pthread_key_create(&permission_key, NULL);
}

static intptr_t job_permission_get(void)
{
	return has_key ? (intptr_t)pthread_getspecific(permission_key)
		       : atomic_load_explicit(&permission_shared, memory_order_relaxed);
}

static void job_permission_set(intptr_t value)
{
	if (has_key)
		pthread_setspecific(permission_key, (void *)value);
	else
		atomic_store_explicit(&permission_shared, value, memory_order_relaxed);
}

void job_forbid(void)
{
	job_permission_set(FORBIDDEN);
}

bool job_allow(void)
{
	bool asked = job_permission_get() == ASKED_FOR;

	job_permission_set(ALLOWED);
	return asked;
}

unsigned int job_late(void)
{
	return atomic_load_explicit(&late, memory_order_relaxed);
}

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

/*
 * No thread_begin(): a driver that starts its own threads in a self-test has these as restricted as
 * the application's thread has them that calls the driver.
 */
int job_thread_create(pthread_t *thread, void *(*run)(void *), void *arg)
{
	int ret = thread_create(thread, STACK_SIZE, run, arg);

	/* For want of address space, perhaps. */
	return ret ? thread_create(thread, 0, run, arg) : 0;
}

static void *job_thread(void *arg)
{
	struct job *job = arg;
	bool is_late;

	job->run(job);
	pthread_mutex_lock(&job->lock);
	job->has_ended = true;
	is_late = job->is_abandoned;
	if (is_late)
		atomic_fetch_add_explicit(&late, 1, memory_order_relaxed);
	pthread_cond_signal(&job->ended);
	pthread_mutex_unlock(&job->lock);
	if (is_late && job->late)
		job->late(job);
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

static bool job_has_answered(const struct job *job)
{
	return job->has_answered && job->has_answered(job);
}

/* The clock goes on while the process is stopped: a stop costs no more than a slice. */
static bool job_wait(struct job *job, unsigned int limit_ms)
{
	bool ended;

	pthread_mutex_lock(&job->lock);
	for (unsigned int left = limit_ms / SLICE_MS;
	     left && !job->has_ended && !job_has_answered(job); left--) {
		const struct timespec until = job_slice_end();
		int ret = 0;

		while (!job->has_ended && !ret)
			ret = pthread_cond_timedwait(&job->ended, &job->lock, &until);
	}
	ended = job->has_ended;
	job->is_abandoned = !ended;
	pthread_mutex_unlock(&job->lock);
	return ended;
}

enum job_end job_run(struct job *job, unsigned int limit_ms)
{
	pthread_t thread;
	int ret;
	THREAD_NO_CANCEL();

	job_init(job);
	if (job_permission_get() != ALLOWED) {
		job_permission_set(ASKED_FOR);
		job_put(job); /* the thread's */
		return JOB_NOT_STARTED;
	}
	ret = job_thread_create(&thread, job_thread, job);
	if (ret) {
		job_put(job); /* the thread's */
		log_errno(-ret, "no thread for a self-test");
		return JOB_NOT_STARTED;
	}
	if (job_wait(job, limit_ms)) {
		pthread_join(thread, NULL);
		return JOB_ENDED;
	}
	pthread_detach(thread);
	if (!job_has_answered(job))
		log_error("a self-test did not end in %u seconds and is given up", limit_ms / 1000);
	return JOB_ABANDONED;
}

enum tested job_test(struct job *job, unsigned int limit_ms)
{
	enum tested found = UNTESTED;

	switch (job_run(job, limit_ms)) {
	case JOB_ENDED:
		found = job->found;
		break;
	case JOB_ABANDONED:
		found = HUNG;
		break;
	case JOB_NOT_STARTED:
		break;
	}
	job_put(job);
	return found;
}
