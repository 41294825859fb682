/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/facts/store.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "icd/config.h"
#include "icd/probe/probe.h"
#include "icd/probe/identity.h"
#include "icd/probe/result_cache.h"
#include "icd/text.h"
#include "util/lock.h"
#include "util/log.h"
#include "util/restricted.h"
#include "util/thread.h"

#define REVISION 3     /* of the tests: with a new number every driver is tested again */
#define PAUSE 1	       /* seconds until an import asks again, or as long as the last attempt took */
#define QUERY_MS 10000 /* a driver starts in a second, and in several on a slow or busy machine */
#define FACTS_KEPT_SIZE (IDENTITY_LIMITS_SIZE + FACTS_TEXT_SIZE) /* bytes */
#define IMPORT_MS 65000 /* longer than the tests of one device may take */

struct platform_facts {
	struct platform_facts *next;
	cl_platform_id platform;
	struct facts_record *record; /* NULL: unknown */
	struct facts_record *older;  /* records that threads may still read */
	bool is_old;		  /* the record could be better, and climport-probe was not asked */
	bool is_looked_for;	  /* there is no use in looking for a kept one */
	bool is_asked;		  /* a thread is looking */
	enum facts_wait waited;	  /* the last to ask climport-probe */
	time_t again;		  /* seconds: no import asks before then */
	char why[FACTS_WHY_SIZE]; /* the record is unknown */
};

static void facts_in_child(struct lock *lock);

LOCK_DEFINE_IN_CHILD(facts_lock, LOCK_LAST,
		     facts_in_child); /* the list, and all in it but records */
static struct platform_facts *platforms GUARDED_BY(facts_lock);
static pthread_cond_t facts_changed = PTHREAD_COND_INITIALIZER;

/* The thread that looks for a record is not in the child. */
static void facts_in_child(struct lock *lock) TSA(no_thread_safety_analysis)
{
	(void)lock;
	pthread_cond_init(&facts_changed, NULL);
	for (struct platform_facts *p = platforms; p; p = p->next)
		p->is_asked = false;
}

static time_t facts_clock(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	return now.tv_sec;
}

/* NULL: the platform is unknown.  @lasting: a record may be kept. */
static char *facts_key(cl_platform_id platform, bool *lasting)
{
	char *identity = identity_platform(platform, lasting);
	char *key = identity ? text_create("facts %d, %s", REVISION, identity) : NULL;

	free(identity);
	*lasting &= key != NULL;
	return key;
}

/* Whether nothing better can be hoped for. */
static bool facts_are_good(const struct facts_record *record)
{
	for (unsigned int i = 0; i < record->count; i++)
		if (record->device[i].has_died || !record->device[i].is_best)
			return false;
	return record->count;
}

/* Whether a record says what is asked for. */
static bool facts_tell(const struct facts_record *record, enum facts_wait wait)
{
	return record && (wait != FACTS_IMAGE || facts_have_images(record));
}

static bool facts_have_died(const struct facts_record *record)
{
	for (unsigned int i = 0; i < record->count; i++)
		if (record->device[i].has_died)
			return true;
	return false;
}

/* @text: a kept record behind the limits of the process that made it: in others a driver that died may live. */
static struct facts_record *facts_parse_kept(char *text)
{
	char limits[IDENTITY_LIMITS_SIZE], *line = strsep(&text, "\n");
	struct facts_record *record = text ? facts_parse(text) : NULL;

	identity_limits(limits);
	if (!record || !facts_have_died(record) || !strcmp(line, limits))
		return record;
	free(record);
	return NULL;
}

/* The caller frees the record.  @is_old: it could be better, and an hour has passed. */
static struct facts_record *facts_read_kept(const char *key, bool *is_old)
{
	char *text = malloc(FACTS_KEPT_SIZE);
	struct facts_record *record = NULL;
	bool is_recent = true;

	if (text && result_cache_get_recent(key, text, FACTS_KEPT_SIZE, &is_recent))
		record = facts_parse_kept(text);
	free(text);
	*is_old = record && !is_recent && !facts_are_good(record);
	return record;
}

static struct facts_record *facts_recall(cl_platform_id platform, bool *is_old)
{
	bool lasting;
	char *key = facts_key(platform, &lasting);
	struct facts_record *record = lasting ? facts_read_kept(key, is_old) : NULL;

	free(key);
	return record;
}

void facts_keep(cl_platform_id platform, const char *text)
{
	struct facts_record *record = facts_parse(text);
	char limits[IDENTITY_LIMITS_SIZE], *key, *kept;
	bool lasting;

	identity_limits(limits);
	key = facts_key(platform, &lasting);
	kept = text_create("%s\n%s", limits, text);
	if (record && lasting && kept && facts_are_whole(record))
		result_cache_set(key, kept);
	free(kept);
	free(key);
	free(record);
}

static struct facts_record *facts_ask_probe(cl_platform_id platform, enum facts_wait wait,
					    bool with_images, char why[FACTS_WHY_SIZE])
{
	char *text = malloc(FACTS_TEXT_SIZE);
	struct facts_record *record = NULL;
	bool has_answered;

	snprintf(why, FACTS_WHY_SIZE, "no memory");
	if (!text)
		return NULL;
	has_answered = probe_ask(platform, with_images, wait == FACTS_QUERY ? QUERY_MS : IMPORT_MS,
				 text, FACTS_TEXT_SIZE);
	if (has_answered)
		record = facts_parse(text);
	snprintf(why, FACTS_WHY_SIZE, "%.*s", FACTS_WHY_SIZE - 1,
		 record		? ""
		 : has_answered ? "climport-probe answers nonsense"
				: text);
	free(text);
	return record;
}

/* An old record is better than none, and with images stays so. */
static struct facts_record *facts_find_out(cl_platform_id platform, enum facts_wait wait,
					   bool *is_old, char why[FACTS_WHY_SIZE])
{
	struct facts_record *record = facts_recall(platform, is_old), *made;

	if ((facts_tell(record, wait) && !*is_old) || wait == FACTS_KEPT)
		return record;
	made = facts_ask_probe(platform, wait,
			       wait == FACTS_IMAGE || (record && facts_have_images(record)), why);
	*is_old = false;
	if (made) {
		free(record);
		return made;
	}
	if (!record) /* at the last moment */
		record = facts_recall(platform, is_old);
	if (!record)
		log_debug("nothing is known of the platform's devices: %s", why);
	return record;
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

/*
 * Whether to be content with what is known, and not to ask.  A program that has restricted its system calls opens no
 * file and starts no process.  Seccomp's strict mode kills for the question as well: CLIMPORT_PROBE=off asks nothing.
 */
static bool facts_is_enough(const struct platform_facts *p, enum facts_wait wait)
{
	if (facts_tell(p->record, wait) && !p->is_old &&
	    (facts_are_whole(p->record) || wait < FACTS_IMPORT))
		return true;
	if (config_probe() == PROBE_DEFAULT && restricted_is_entered())
		return true;
	if (wait == FACTS_KEPT || config_probe() == PROBE_OFF)
		return p->is_looked_for;
	if (wait == FACTS_QUERY) /* one wait is enough */
		return p->waited != FACTS_KEPT;
	return p->waited >= wait && facts_clock() <= p->again;
}

/* A query waits no longer for another thread's import than for climport-probe itself. */
static void facts_wait_for_thread(const struct platform_facts *p, enum facts_wait wait)
	REQUIRES(facts_lock)
{
	struct timespec end;

	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_sec += QUERY_MS / 1000;
	while (p->is_asked &&
	       !lock_wait(&facts_lock, &facts_changed, wait == FACTS_QUERY ? &end : NULL))
		;
}

/* Whether the caller is to ask.  Otherwise @record and @why are set. */
static bool facts_begin(struct platform_facts *p, enum facts_wait wait,
			const struct facts_record **record, char why[FACTS_WHY_SIZE])
	REQUIRES(facts_lock)
{
	if (p->is_asked && wait != FACTS_KEPT && !facts_is_enough(p, wait))
		facts_wait_for_thread(p, wait);
	*record = p->record;
	snprintf(why, FACTS_WHY_SIZE, "%s",
		 p->is_asked ? "another thread has asked climport-probe"
		 : *p->why   ? p->why
			     : "nobody has tested the driver: climport info does");
	if (p->is_asked || facts_is_enough(p, wait))
		return false;
	p->is_asked = true;
	return true;
}

static void facts_replace(struct platform_facts *p, struct facts_record *record)
	REQUIRES(facts_lock)
{
	if (p->record) {
		p->record->older = p->older;
		p->older = p->record;
	}
	p->record = record;
}

/* What was known stays if nothing more is known. */
static const struct facts_record *facts_end(struct platform_facts *p, struct facts_record *record,
					    bool is_old, enum facts_wait wait, time_t started,
					    const char *why)
{
	const time_t now = facts_clock(), taken = now - started;

	lock_acquire(&facts_lock);
	p->is_asked = false;
	p->is_looked_for = true;
	if (record) {
		facts_replace(p, record);
		p->is_old = is_old;
	}
	if (wait != FACTS_KEPT) {
		p->again = now + (taken > PAUSE ? taken : PAUSE);
		p->waited = wait;
		snprintf(p->why, sizeof(p->why), "%s", why);
	}
	record = p->record;
	pthread_cond_broadcast(&facts_changed);
	lock_release(&facts_lock);
	return record;
}

const struct facts_record *facts_get(cl_platform_id platform, enum facts_wait wait,
				     char why[FACTS_WHY_SIZE])
{
	const struct facts_record *record = NULL;
	struct facts_record *made;
	struct platform_facts *p;
	time_t started;
	bool is_mine, is_old = false;
	THREAD_NO_CANCEL();

	snprintf(why, FACTS_WHY_SIZE, "no memory");
	lock_acquire(&facts_lock);
	p = facts_find_platform(platform);
	is_mine = p && facts_begin(p, wait, &record, why);
	lock_release(&facts_lock);
	if (!is_mine)
		return record;
	started = facts_clock();
	made = facts_find_out(platform, wait, &is_old, why);
	return facts_end(p, made, is_old, wait, started, why);
}

void facts_forget(cl_platform_id platform)
{
	struct platform_facts *p;
	bool lasting;
	char *key;
	THREAD_NO_CANCEL();

	key = facts_key(platform, &lasting);
	if (lasting)
		result_cache_remove(key);
	free(key);
	lock_acquire(&facts_lock);
	p = facts_find_platform(platform);
	if (p) {
		facts_replace(p, NULL);
		p->waited = FACTS_KEPT;
	}
	lock_release(&facts_lock);
}
