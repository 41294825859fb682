/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A job: work with calls of a driver, which may never answer.  A job has a thread of its own, and
 * the caller waits for a limited time.  The job owns all memory of the work, and keeps the memory if
 * the caller gives the job up.
 */
#ifndef ICD_SELFTEST_JOB_H
#define ICD_SELFTEST_JOB_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "icd/selftest/selftest.h"

#define JOB_LIMIT_MS 5000	   /* for a millisecond of work: load does not decide */
#define JOB_COMPILE_LIMIT_MS 60000 /* where a compiler runs */

/* The beginning of a structure with the work's arguments and results, from calloc(). */
struct job {
	void (*run)(struct job *job);
	/* NULL, or whether the caller has what it waits for, though run() has not ended. */
	bool (*has_answered)(const struct job *job);
	void (*late)(struct job *job); /* NULL, or called after run() if nobody waits any more */
	enum tested found;	       /* set by run(), for job_test() */
	atomic_uint refs;
	pthread_mutex_t lock;
	pthread_cond_t ended;
	bool has_ended, is_abandoned; /* under the lock */
};

enum job_end {
	JOB_ENDED,
	JOB_ABANDONED,	 /* may still run: the caller leaves the results alone */
	JOB_NOT_STARTED, /* for want of a thread, or forbidden */
};

/**
 * job_run - run a job and wait for the end
 * @job: run is set; the caller's, dropped with job_put() whatever the answer
 *
 * The job's thread takes no signals.  Time in which the process is stopped does not count.
 */
enum job_end job_run(struct job *job, unsigned int limit_ms);

/**
 * job_test - run a job that is a self-test, and drop the job
 *
 * Returns what the job found, HUNG if the job was abandoned, or UNTESTED if no job was started.
 */
enum tested job_test(struct job *job, unsigned int limit_ms);

/*
 * The number of abandoned jobs with a late end.  If the number has not changed since a job was
 * abandoned, the driver is taken to hang still.
 */
unsigned int job_late(void);

/* From now on no job of the calling thread is started. */
void job_forbid(void);

/* Jobs are started again.  Returns whether a job was asked for meanwhile. */
bool job_allow(void);

/* Takes a reference, for a command with a longer life than the job's thread. */
void job_hold(struct job *job);

/* The last put frees the job. */
void job_put(struct job *job);

/*
 * The thread takes no signals, so no handler of the application runs on the thread.  0 or a negative
 * errno.
 */
int job_thread_create(pthread_t *thread, void *(*run)(void *), void *arg);

#endif /* ICD_SELFTEST_JOB_H */
