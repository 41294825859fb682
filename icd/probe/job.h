/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A job: work that may never end, on a thread of its own.  The caller waits for a limited time.  The job owns all
 * memory of the work, and keeps it if the caller gives the job up.
 */
#ifndef ICD_PROBE_JOB_H
#define ICD_PROBE_JOB_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

/* The beginning of a structure with the work's arguments and results, from calloc(). */
struct job {
	void (*run)(struct job *job);
	atomic_uint refs;
	pthread_mutex_t lock;
	pthread_cond_t ended;
	bool has_ended; /* under the lock */
};

enum job_end {
	JOB_ENDED,
	JOB_ABANDONED,	 /* may still run: the caller leaves the results alone */
	JOB_NOT_STARTED, /* no thread */
};

/**
 * job_run - run a job and wait for the end
 * @job: run is set; the caller's, dropped with job_put() whatever the answer
 *
 * The job's thread takes no signals.  Time in which the process is stopped does not count.
 */
enum job_end job_run(struct job *job, unsigned int limit_ms);

/* The last put frees the job. */
void job_put(struct job *job);

#endif /* ICD_PROBE_JOB_H */
