/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/facts/store.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "icd/config.h"
#include "icd/probe/identity.h"
#include "icd/probe/probe.h"
#include "icd/text.h"
#include "util/lock.h"
#include "util/log.h"
#include "util/restricted.h"
#include "util/thread.h"

#define KEPT_FOLDER "/climport/results"
#define KEPT_RECENT 3600 /* seconds */

/*
 * The path of a key's file, which the caller frees.  NULL: there is no cache.  Root has none in the folder of a user, who
 * could neither read root's files nor write into root's folders.
 */
static char *kept_path(unsigned long long key)
{
	const char *cache = secure_getenv("XDG_CACHE_HOME");
	/* "All paths set in these environment variables must be absolute": XDG base directories */
	const bool is_cache = cache && cache[0] == '/';
	const char *base = is_cache ? cache : secure_getenv("HOME");
	struct stat st;

	if (!base || base[0] != '/' || (!geteuid() && !stat(base, &st) && st.st_uid))
		return NULL;
	return text_create("%s%s" KEPT_FOLDER "/%016llx", base, is_cache ? "" : "/.cache", key);
}

/* The folder of a file, and the folders above, from the user's cache on. */
static void kept_create_folders(char *path)
{
	char *end = strrchr(path, '/') - strlen(KEPT_FOLDER);

	for (; end; end = strchr(end + 1, '/')) {
		*end = '\0';
		mkdir(path, 0700);
		*end = '/';
	}
}

/* Else each process would make a record, for itself. */
static bool kept_can_write(char *path)
{
	*strrchr(path, '/') = '\0';
	return !faccessat(AT_FDCWD, path, W_OK, AT_EACCESS);
}

/*
 * A file of the user's own or of root, and nobody else may write the file.  A probe process inherits the limits and
 * filters of system calls, and may die of them.
 */
static bool kept_is_record(int fd, const struct stat *st, struct facts_record *record)
{
	const ssize_t n = read(fd, record, sizeof(*record));

	return S_ISREG(st->st_mode) && (st->st_uid == geteuid() || !st->st_uid) &&
	       !(st->st_mode & (S_IWGRP | S_IWOTH)) && n > 0 &&
	       facts_are_valid(record, (size_t)n) &&
	       (!record->has_died || record->limits == identity_limits());
}

/*
 * Returns a record, which the caller frees, or NULL: none is kept, or another user could have written it, or the
 * driver died under other limits.  If the path is a FIFO, open() must not wait for a writer.
 * @is_old: a better one can be hoped for.  It was not written in the last hour, or in the hour to come if the clock was
 *	set back
 */
static struct facts_record *kept_read(cl_platform_id platform, bool *is_old)
{
	unsigned long long key;
	bool is_kept;
	char *path = identity_platform(platform, &key, &is_kept) && is_kept ? kept_path(key) : NULL;
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK) : -1;
	struct facts_record *record = fd < 0 ? NULL : malloc(sizeof(*record));
	struct stat st;

	if (record && (fstat(fd, &st) || !kept_is_record(fd, &st, record))) {
		free(record);
		record = NULL;
	}
	*is_old = record && !record->is_best &&
		  labs((long)(time(NULL) - st.st_mtime)) >= KEPT_RECENT && kept_can_write(path);
	free(path);
	if (fd >= 0)
		close(fd);
	return record;
}

/*
 * Another process may see a part, which is no record.  A file that is there already may be root's.  Who comes second while
 * another process writes leaves it at that.
 */
void kept_write(unsigned long long key, const struct facts_record *record)
{
	const ssize_t size = (ssize_t)facts_size(record);
	char *path = kept_path(key);
	int fd = -1;

	if (path) {
		kept_create_folders(path);
		unlink(path);
		fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	}
	if (fd < 0 || write(fd, record, (size_t)size) != size)
		log_debug("%s: %m: what was found out of the driver is not kept",
			  path ? path : "no folder");
	if (fd >= 0)
		close(fd);
	free(path);
}

/* Seconds: the table of limits is in docs/architecture.md. */
#define QUERY_LIMIT 10
#define IMPORT_LIMIT 65
#define RENEWAL_LIMIT 1 /* of who starts it: a program that ends at once would start no process */
#define PAUSE 1		/* until an import asks again, or as long as the last attempt took */

struct platform_facts {
	struct platform_facts *next;
	cl_platform_id platform;
	struct facts_record *record; /* the newest; NULL: nothing is known */
	struct facts_record *older;  /* threads may still read them */
	bool is_old;		  /* the record could be better, and climport-probe was not asked */
	bool is_looked_for;	  /* there is no use in looking for a kept one */
	bool is_asked;		  /* a thread waits for climport-probe, */
	struct timespec since;	  /* from then on */
	enum facts_wait asked;	  /* climport-probe, for the most so far; FACTS_KEPT: not yet */
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

/* @record: NULL if nothing is known any more. */
static void facts_replace(struct platform_facts *p, struct facts_record *record)
	REQUIRES(facts_lock)
{
	if (p->record) {
		p->record->older = p->older;
		p->older = p->record;
	}
	p->record = record;
}

/* Whether a record says what is asked for. */
static bool facts_tell(const struct facts_record *record, enum facts_wait wait)
{
	return record && (wait != FACTS_IMAGE || record->has_images) &&
	       (wait < FACTS_IMPORT || record->is_whole);
}

/* The lock is free meanwhile: the driver is called.  Two threads may look at once. */
static void facts_look(struct platform_facts *p) REQUIRES(facts_lock)
{
	const enum config_probe probe = config_probe();
	struct facts_record *record;
	bool is_old;

	if (p->is_looked_for || probe == PROBE_HERE ||
	    (probe != PROBE_OFF && restricted_is_entered()))
		return;
	lock_release(&facts_lock);
	record = kept_read(p->platform, &is_old);
	lock_acquire(&facts_lock);
	if (record && !p->is_looked_for) {
		facts_replace(p, record);
		p->is_old = is_old;
	} else {
		free(record);
	}
	p->is_looked_for = true;
}

/* @why: set if something is unknown.  False: all is. */
static bool facts_request(cl_platform_id platform, bool with_images, struct facts_record *record,
			  char why[FACTS_WHY_SIZE])
{
	size_t size = 0;
	bool is_valid;

	snprintf(why, FACTS_WHY_SIZE, "no memory");
	if (record && config_probe() == PROBE_HERE)
		size = facts_make_here(platform, with_images, record);
	else if (record)
		size = probe_ask(platform, with_images, record, sizeof(*record), why,
				 FACTS_WHY_SIZE);
	is_valid = size && facts_are_valid(record, size);
	if (size)
		snprintf(why, FACTS_WHY_SIZE, "%s",
			 !is_valid	    ? "climport-probe gave a record that this "
					      "layer cannot read: is it of another version?"
			 : record->is_whole ? ""
					    : "a test had no memory, or others ended it");
	return is_valid;
}

/* A thread.  A shortage of a moment takes nothing from what is known. */
static void *facts_ask(void *platform_facts)
{
	struct platform_facts *p = platform_facts;
	struct facts_record *record = calloc(1, sizeof(*record));
	char why[FACTS_WHY_SIZE];
	bool with_images, is_better;
	time_t took;

	lock_acquire(&facts_lock);
	with_images = p->asked == FACTS_IMAGE;
	lock_release(&facts_lock);
	is_better = facts_request(p->platform, with_images, record, why);
	if (!is_better)
		log_debug("nothing is known of the platform's devices: %s", why);
	lock_acquire(&facts_lock);
	took = thread_time_in(0).tv_sec - p->since.tv_sec;
	p->again = thread_time_in(0).tv_sec + (took > PAUSE ? took : PAUSE);
	p->is_asked = false;
	is_better = is_better && (!p->record || !p->record->is_whole || record->is_whole);
	if (is_better)
		facts_replace(p, record);
	strcpy(p->why, why);
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
	const bool is_enough = facts_tell(p->record, wait) && !p->is_old;

	if (p->is_asked || is_enough || wait == FACTS_KEPT || config_probe() == PROBE_OFF)
		return false;
	if (config_probe() == PROBE_HERE)
		return true;
	if (restricted_is_entered())
		return false;
	if (p->asked < wait) /* an import asks at once what a query has asked in vain */
		return true;
	return wait != FACTS_QUERY && thread_time_in(0).tv_sec > p->again;
}

/* An old record is better than none, and with images stays so. */
static void facts_start(struct platform_facts *p, enum facts_wait wait) REQUIRES(facts_lock)
{
	pthread_t thread;
	int err = 0;

	p->is_asked = true;
	p->is_old = false;
	p->since = thread_time_in(0);
	if (p->record && p->record->has_images)
		wait = FACTS_IMAGE;
	if (p->asked < wait)
		p->asked = wait;
	lock_release(&facts_lock);
	if (config_probe() == PROBE_HERE)
		facts_ask(p);
	else if (!(err = thread_create(&thread, 0, facts_ask, p)))
		pthread_detach(thread);
	lock_acquire(&facts_lock);
	if (!err)
		return;
	p->is_asked = false;
	snprintf(p->why, sizeof(p->why),
		 "the thread that runs climport-probe cannot be started: climport info tests the "
		 "driver");
	p->again = p->since.tv_sec + PAUSE;
}

/*
 * The patience is the program's: who comes when it is over for the others does not wait.  Nor does a handler of fork(), and who
 * finds a renewal.
 */
static void facts_wait(struct platform_facts *p, enum facts_wait wait) REQUIRES(facts_lock)
{
	const bool is_old = facts_tell(p->record, wait);
	struct timespec until = { 0, 0 };
	bool is_mine = false;

	do {
		if (!is_mine && facts_should_ask(p, wait)) {
			facts_start(p, wait);
			is_mine = true;
		}
		if (!until.tv_sec) {
			until = p->since;
			until.tv_sec += is_old		      ? RENEWAL_LIMIT
					: wait == FACTS_QUERY ? QUERY_LIMIT
							      : IMPORT_LIMIT;
		}
	} while (p->is_asked && (is_mine || !is_old) &&
		 !lock_wait(&facts_lock, &facts_changed, &until));
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
	if (p)
		facts_look(p);
	if (p && wait != FACTS_KEPT)
		facts_wait(p, wait);
	if (p) {
		snprintf(why, FACTS_WHY_SIZE, "%s",
			 p->is_asked ? "climport-probe has not answered yet"
			 : *p->why   ? p->why
				     : "nobody has tested the driver: climport info does");
		record = p->record;
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
		facts_replace(p, NULL);
	lock_release(&facts_lock);
}
