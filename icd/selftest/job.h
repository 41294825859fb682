/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work that calls a driver which may never answer: on a thread of its own, for which the caller
 * waits only so long.  What the work uses is the job's, so that a job which the caller has given
 * up keeps it.
 */
#ifndef ICD_SELFTEST_JOB_H
#define ICD_SELFTEST_JOB_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#define JOB_LIMIT_MS 5000	   /* for what takes a millisecond: load does not decide */
#define JOB_COMPILE_LIMIT_MS 60000 /* where a compiler runs */

/* The beginning of a structure with the work's arguments and results, from calloc(). */
struct job {
	void (*run)(struct job *job);
	void (*late)(struct job *job); /* NULL, or called after run() if nobody waits any more */
	atomic_uint refs;
	pthread_mutex_t lock;
	pthread_cond_t ended;
	bool has_ended, is_abandoned; /* under the lock */
};

enum job_end {
	JOB_ENDED,
	JOB_ABANDONED,	 /* it may still run: the caller leaves its results alone */
	JOB_NOT_STARTED, /* for want of a thread, or forbidden */
};

/**
 * job_run - run a job and wait for it
 * @job: run is set; the caller's, dropped with job_put() whatever the answer
 *
 * The job's thread takes no signals.  Time in which the process is stopped does not count.
 */
enum job_end job_run(struct job *job, unsigned int limit_ms);

/*
 * How many abandoned jobs have ended since.  While the number is the one from when a job was given
 * up, the driver still hangs, as far as is known.
 */
unsigned int job_late(void);

/* From now on no job of this thread is started. */
void job_forbid(void);

/* They are again.  Whether one was asked for meanwhile. */
bool job_allow(void);

/* One more reference, for a command that may outlive the job's thread. */
void job_hold(struct job *job);

/* The last one frees the job. */
void job_put(struct job *job);

/* A thread that takes no signals, so that none of the application's handlers runs there. */
int job_thread_create(pthread_t *thread, void *(*run)(void *), void *arg);

#endif /* ICD_SELFTEST_JOB_H */
