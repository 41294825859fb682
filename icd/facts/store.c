/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/facts/store.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "icd/config.h"
#include "icd/facts/kept.h"
#include "icd/probe/identity.h"
#include "icd/probe/probe.h"
#include "util/lock.h"
#include "util/log.h"
#include "util/restricted.h"
#include "util/thread.h"

/* The table of limits is in docs/architecture.md. */
#define SLICE_MS 100 /* a process that is stopped loses no more than one of its patience */
#define QUERY_SLICES 100
#define IMPORT_SLICES 650
#define RENEWAL_SLICES 10 /* of who starts it: a program that ends at once would start no process */
#define PAUSE 1 /* seconds until an import asks again, or as long as the last attempt took */

struct platform_facts {
	struct platform_facts *next;
	cl_platform_id platform;
	struct facts_record *record; /* the newest; NULL: nothing is known */
	bool is_foreign;	     /* the record is of other devices: nothing is known */
	bool is_old;	       /* the record could be better, and climport-probe was not asked */
	bool is_looked_for;    /* there is no use in looking for a kept one */
	bool is_asked;	       /* a thread waits for climport-probe */
	enum facts_wait asked; /* climport-probe, for the most so far; FACTS_KEPT: not yet */
	int waited;	       /* slices that a caller has waited for that thread: one is enough */
	time_t again;	       /* seconds: no import asks before then */
	char why[FACTS_WHY_SIZE]; /* the record is unknown */
};

static void facts_in_child(struct lock *lock);

LOCK_DEFINE_IN_CHILD(facts_lock, LOCK_LAST,
		     facts_in_child); /* the list, and all in it but records */
static struct platform_facts *platforms GUARDED_BY(facts_lock);
static pthread_cond_t facts_changed = PTHREAD_COND_INITIALIZER;

/* The thread that waits for climport-probe is not in the child. */
static void facts_in_child(struct lock *lock) TSA(no_thread_safety_analysis)
{
	(void)lock;
	pthread_cond_init(&facts_changed, NULL);
	for (struct platform_facts *p = platforms; p; p = p->next) {
		if (p->is_asked)
			p->asked = FACTS_KEPT;
		p->is_asked = false;
	}
}

static time_t facts_clock(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	return now.tv_sec;
}

static const struct facts_record *facts_known(const struct platform_facts *p) REQUIRES(facts_lock)
{
	return p->is_foreign ? NULL : p->record;
}

static void facts_replace(struct platform_facts *p, struct facts_record *record)
	REQUIRES(facts_lock)
{
	record->older = p->record;
	p->record = record;
	p->is_foreign = false;
}

/* Whether a record says what is asked for. */
static bool facts_tell(const struct facts_record *record, enum facts_wait wait)
{
	return record && (wait != FACTS_IMAGE || record->has_images) &&
	       (wait < FACTS_IMPORT || record->is_whole);
}

static struct facts_record *facts_read_kept(cl_platform_id platform, bool *is_old)
{
	unsigned long long key;
	bool is_kept, is_recent = true;
	struct facts_record *record = identity_platform(platform, &key, &is_kept) && is_kept
					      ? kept_read(key, &is_recent)
					      : NULL;

	*is_old = record && !is_recent && !record->is_best;
	return record;
}

static bool facts_may_look(const struct platform_facts *p) REQUIRES(facts_lock)
{
	const enum config_probe probe = config_probe();

	return !p->is_looked_for && probe != PROBE_HERE &&
	       (probe == PROBE_OFF || !restricted_is_entered());
}

/* The lock is free meanwhile: the driver is called.  Two threads may look at once. */
static void facts_look(struct platform_facts *p) REQUIRES(facts_lock)
{
	struct facts_record *record;
	bool is_old;

	lock_release(&facts_lock);
	record = facts_read_kept(p->platform, &is_old);
	lock_acquire(&facts_lock);
	if (record && !p->is_looked_for) {
		facts_replace(p, record);
		p->is_old = is_old;
	} else {
		free(record);
	}
	p->is_looked_for = true;
}

/* A shortage of a moment takes nothing from what is known. */
static bool facts_is_better(const struct facts_record *old, const struct facts_record *record)
{
	return !old || !old->is_whole || record->is_whole;
}

/* @why: set if something is unknown.  False: all is. */
static bool facts_request(cl_platform_id platform, bool with_images, struct facts_record *record,
			  char why[FACTS_WHY_SIZE])
{
	size_t size;

	snprintf(why, FACTS_WHY_SIZE, "no memory");
	if (!record)
		return false;
	if (config_probe() == PROBE_HERE)
		size = facts_make_here(platform, with_images, record);
	else
		size = probe_ask(platform, with_images, record, sizeof(*record), why,
				 FACTS_WHY_SIZE);
	if (!size)
		return false;
	if (!facts_are_valid(record, size))
		snprintf(why, FACTS_WHY_SIZE, "climport-probe answers nonsense");
	else
		snprintf(why, FACTS_WHY_SIZE, "%s",
			 record->is_whole ? "" : "a test had no memory, or others ended it");
	return facts_are_valid(record, size);
}

/* A thread. */
static void *facts_ask(void *platform_facts)
{
	struct platform_facts *p = platform_facts;
	struct facts_record *record = calloc(1, sizeof(*record));
	const time_t started = facts_clock();
	char why[FACTS_WHY_SIZE];
	bool with_images, is_better;
	time_t now;

	lock_acquire(&facts_lock);
	with_images = p->asked == FACTS_IMAGE;
	lock_release(&facts_lock);
	is_better = facts_request(p->platform, with_images, record, why);
	if (!is_better)
		log_debug("nothing is known of the platform's devices: %s", why);
	lock_acquire(&facts_lock);
	now = facts_clock();
	p->again = now + (now - started > PAUSE ? now - started : PAUSE);
	p->is_asked = false;
	is_better = is_better && facts_is_better(facts_known(p), record);
	if (is_better)
		facts_replace(p, record);
	snprintf(p->why, sizeof(p->why), "%s", why);
	pthread_cond_broadcast(&facts_changed);
	lock_release(&facts_lock);
	if (!is_better)
		free(record);
	return NULL;
}

/*
 * Whether climport-probe is to be asked.  A program that has restricted its system calls opens no file and starts no
 * process.  Seccomp's strict mode kills for the question as well: CLIMPORT_PROBE=off asks nothing.
 */
static bool facts_should_ask(const struct platform_facts *p, enum facts_wait wait)
	REQUIRES(facts_lock)
{
	const bool is_enough = facts_tell(facts_known(p), wait) && !p->is_old;

	if (p->is_asked || is_enough || wait == FACTS_KEPT || config_probe() == PROBE_OFF)
		return false;
	if (config_probe() == PROBE_HERE)
		return true;
	if (restricted_is_entered())
		return false;
	if (p->asked < wait) /* an import asks at once what a query has asked in vain */
		return true;
	return wait != FACTS_QUERY && facts_clock() > p->again;
}

static int facts_start_thread(struct platform_facts *p)
{
	pthread_t thread;
	const int err = thread_create(&thread, 0, facts_ask, p);

	if (!err)
		pthread_detach(thread);
	return err;
}

/* An old record is better than none, and with images stays so. */
static void facts_start(struct platform_facts *p, enum facts_wait wait) REQUIRES(facts_lock)
{
	const struct facts_record *record = facts_known(p);
	int err = 0;

	p->is_asked = true;
	p->is_old = false;
	p->waited = 0;
	if (record && record->has_images)
		wait = FACTS_IMAGE;
	if (p->asked < wait)
		p->asked = wait;
	lock_release(&facts_lock);
	if (config_probe() == PROBE_HERE)
		facts_ask(p);
	else
		err = facts_start_thread(p);
	lock_acquire(&facts_lock);
	if (!err)
		return;
	p->is_asked = false;
	snprintf(p->why, sizeof(p->why), "there is no thread for climport-probe");
	p->again = facts_clock() + PAUSE;
}

/* Until something has changed, or a slice of the patience is over.  False: a handler of fork() waits for nobody. */
static bool facts_wait_slice(void) REQUIRES(facts_lock)
{
	const struct timespec until = thread_time_in(SLICE_MS);

	return lock_wait(&facts_lock, &facts_changed, &until) != EDEADLK;
}

/* The patience is the program's: who comes when it is over for the others does not wait. */
static void facts_wait(struct platform_facts *p, enum facts_wait wait) REQUIRES(facts_lock)
{
	const bool is_old = facts_tell(facts_known(p), wait);
	const int end = is_old		      ? RENEWAL_SLICES
			: wait == FACTS_QUERY ? QUERY_SLICES
					      : IMPORT_SLICES;
	bool is_mine = false;

	for (int waited = p->waited;; waited++) {
		if (!is_mine && facts_should_ask(p, wait)) {
			facts_start(p, wait);
			is_mine = true;
		}
		if (!p->is_asked || (is_old && !is_mine) || waited >= end || !facts_wait_slice())
			return;
		if (p->waited <= waited)
			p->waited = waited + 1;
	}
}

static struct platform_facts *facts_find_platform(cl_platform_id platform) REQUIRES(facts_lock)
{
	struct platform_facts *p = platforms;

	while (p && p->platform != platform)
		p = p->next;
	if (p)
		return p;
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->platform = platform;
	p->next = platforms;
	platforms = p;
	return p;
}

const struct facts_record *facts_get(cl_platform_id platform, enum facts_wait wait,
				     char why[FACTS_WHY_SIZE])
{
	const struct facts_record *record = NULL;
	struct platform_facts *p;
	THREAD_NO_CANCEL();

	snprintf(why, FACTS_WHY_SIZE, "no memory");
	lock_acquire(&facts_lock);
	p = facts_find_platform(platform);
	if (p && facts_may_look(p))
		facts_look(p);
	if (p && wait != FACTS_KEPT)
		facts_wait(p, wait);
	if (p) {
		snprintf(why, FACTS_WHY_SIZE, "%s",
			 p->is_asked ? "climport-probe has not answered yet"
			 : *p->why   ? p->why
				     : "nobody has tested the driver: climport info does");
		record = facts_known(p);
	}
	lock_release(&facts_lock);
	return record;
}

void facts_forget(cl_platform_id platform, const struct facts_record *record)
{
	struct platform_facts *p;

	lock_acquire(&facts_lock);
	p = facts_find_platform(platform);
	if (p && p->record == record)
		p->is_foreign = true;
	lock_release(&facts_lock);
}
