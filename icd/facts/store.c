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
#include "icd/start.h"
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

struct known {
	struct known *older; /* threads may still read it */
	struct facts_record *record;
};

struct platform_facts {
	struct platform_facts *next;
	cl_platform_id platform;
	struct known *known;	  /* NULL: nothing is known */
	bool is_old;		  /* the record could be better, and climport-probe was not asked */
	bool is_looked_for;	  /* there is no use in looking for a kept one */
	bool is_asked;		  /* a thread waits for climport-probe */
	enum facts_wait asked;	  /* climport-probe, for the most so far; FACTS_KEPT: not yet */
	bool is_slow;		  /* a query has waited in vain: one is enough */
	time_t again;		  /* seconds: no import asks before then */
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
	return p->known ? p->known->record : NULL;
}

/* Takes the record, which is not NULL. */
static void facts_replace(struct platform_facts *p, struct facts_record *record)
	REQUIRES(facts_lock)
{
	struct known *known = malloc(sizeof(*known));

	if (known) {
		*known = (struct known){ p->known, record };
		p->known = known;
	} else {
		free(record);
	}
}

/* Whether a record says what is asked for. */
static bool facts_tell(const struct facts_record *record, enum facts_wait wait)
{
	return record && (wait != FACTS_IMAGE || facts_have_images(record)) &&
	       (wait < FACTS_IMPORT || facts_are_whole(record));
}

/* Some drivers of a process that has changed the environment may have read other variables than others. */
static struct facts_record *facts_read_kept(cl_platform_id platform, bool *is_old)
{
	unsigned long long key;
	bool has_library, is_recent = true;
	struct facts_record *record = identity_platform(platform, &key, &has_library) &&
						      has_library && !start_is_changed()
					      ? kept_read(key, &is_recent)
					      : NULL;

	*is_old = record && !is_recent && (facts_have_died(record) || !facts_are_best(record));
	return record;
}

/* Without the lock: the driver is called.  Two threads may look at once. */
static void facts_look(struct platform_facts *p)
{
	bool is_old;
	struct facts_record *record = facts_read_kept(p->platform, &is_old);

	lock_acquire(&facts_lock);
	if (record && !p->is_looked_for) {
		facts_replace(p, record);
		p->is_old = is_old;
	} else {
		free(record);
	}
	p->is_looked_for = true;
	lock_release(&facts_lock);
}

/* A shortage of a moment takes nothing from what is known. */
static bool facts_is_better(const struct facts_record *old, const struct facts_record *record)
{
	return !old || !facts_are_whole(old) || facts_are_whole(record);
}

/* Why something is unknown. */
static const char *facts_ended(const struct facts_record *record)
{
	for (unsigned int i = 0; i < record->count; i++)
		if (*record->device[i].ended)
			return record->device[i].ended;
	return "climport-probe had no memory";
}

/* A thread. */
static void *facts_ask(void *platform_facts)
{
	struct platform_facts *p = platform_facts;
	struct facts_record *record = calloc(1, sizeof(*record));
	const time_t started = facts_clock();
	char why[FACTS_WHY_SIZE] = "no memory";
	bool with_images, has_answered = false;
	size_t size = 0;
	time_t now;

	lock_acquire(&facts_lock);
	with_images = p->asked == FACTS_IMAGE;
	lock_release(&facts_lock);
	if (record)
		size = probe_ask(p->platform, with_images, record, sizeof(*record), why,
				 sizeof(why));
	has_answered = record && size && facts_are_valid(record, size);
	if (size && !has_answered)
		snprintf(why, sizeof(why), "climport-probe answers nonsense");
	if (!has_answered)
		log_debug("nothing is known of the platform's devices: %s", why);
	lock_acquire(&facts_lock);
	now = facts_clock();
	p->again = now + (now - started > PAUSE ? now - started : PAUSE);
	p->is_asked = false;
	if (has_answered && !facts_is_better(facts_known(p), record)) {
		snprintf(why, sizeof(why), "%s", facts_ended(record));
		has_answered = false;
	}
	if (has_answered)
		facts_replace(p, record);
	snprintf(p->why, sizeof(p->why), "%s", why);
	pthread_cond_broadcast(&facts_changed);
	lock_release(&facts_lock);
	if (!has_answered)
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

	if (p->is_asked || is_enough || wait == FACTS_KEPT || config_probe() == PROBE_OFF ||
	    restricted_is_entered())
		return false;
	if (p->asked < wait) /* an import asks at once what a query has asked in vain */
		return true;
	return wait != FACTS_QUERY && facts_clock() > p->again;
}

/* An old record is better than none, and with images stays so. */
static void facts_start(struct platform_facts *p, enum facts_wait wait) REQUIRES(facts_lock)
{
	const struct facts_record *record = facts_known(p);
	pthread_t thread;

	p->is_asked = true;
	p->is_old = false;
	if (record && facts_have_images(record))
		wait = FACTS_IMAGE;
	if (p->asked < wait)
		p->asked = wait;
	lock_release(&facts_lock);
	if (!thread_create(&thread, 0, facts_ask, p)) {
		pthread_detach(thread);
		lock_acquire(&facts_lock);
		return;
	}
	lock_acquire(&facts_lock);
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

static void facts_wait(struct platform_facts *p, enum facts_wait wait) REQUIRES(facts_lock)
{
	const bool is_old = facts_tell(facts_known(p), wait);
	int left = is_old ? RENEWAL_SLICES : wait == FACTS_QUERY ? QUERY_SLICES : IMPORT_SLICES;
	bool is_mine = false;

	for (; left; left--) {
		if (facts_should_ask(p, wait)) {
			facts_start(p, wait);
			is_mine = true;
		}
		if (!p->is_asked || (is_old && !is_mine) || (wait == FACTS_QUERY && p->is_slow) ||
		    !facts_wait_slice())
			return;
	}
	p->is_slow |= wait == FACTS_QUERY;
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

static const struct facts_record *facts_get_of(struct platform_facts *p, enum facts_wait wait,
					       char why[FACTS_WHY_SIZE]) REQUIRES(facts_lock)
{
	if (wait != FACTS_KEPT)
		facts_wait(p, wait);
	snprintf(why, FACTS_WHY_SIZE, "%s",
		 p->is_asked ? "climport-probe has not answered yet"
		 : *p->why   ? p->why
			     : "nobody has tested the driver: climport info does");
	return facts_known(p);
}

const struct facts_record *facts_get(cl_platform_id platform, enum facts_wait wait,
				     char why[FACTS_WHY_SIZE])
{
	const struct facts_record *record = NULL;
	struct platform_facts *p;
	bool has_looked;
	THREAD_NO_CANCEL();

	snprintf(why, FACTS_WHY_SIZE, "no memory");
	lock_acquire(&facts_lock);
	p = facts_find_platform(platform);
	has_looked = !p || p->is_looked_for;
	lock_release(&facts_lock);
	if (!has_looked && (config_probe() == PROBE_OFF || !restricted_is_entered()))
		facts_look(p);
	lock_acquire(&facts_lock);
	if (p)
		record = facts_get_of(p, wait, why);
	lock_release(&facts_lock);
	return record;
}

void facts_forget(cl_platform_id platform, const struct facts_record *record)
{
	struct platform_facts *p;

	lock_acquire(&facts_lock);
	p = facts_find_platform(platform);
	if (p && facts_known(p) == record)
		facts_replace(p, NULL);
	lock_release(&facts_lock);
}
