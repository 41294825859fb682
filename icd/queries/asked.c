/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/queries/asked.h"

#include <pthread.h>
#include <stdlib.h>

#include "util/lock.h"

struct asked {
	struct asked *next;
	cl_platform_id platform;
	enum {
		LOOKED, /* no answer is kept */
		ASKING, /* a thread finds the answer */
		ANSWERED,
		UNANSWERED, /* no answer could be found */
	} state;
	struct takes takes;
};

static void asked_in_child(struct lock *lock);

LOCK_DEFINE_IN_CHILD(asked_lock, LOCK_LAST, asked_in_child); /* the list, and all records */
static struct asked *asked GUARDED_BY(asked_lock);
static pthread_cond_t asked_changed = PTHREAD_COND_INITIALIZER;

/* The thread at work on an answer is not in the child. */
static void asked_in_child(struct lock *lock) TSA(no_thread_safety_analysis)
{
	struct asked **link = &asked;

	(void)lock;
	pthread_cond_init(&asked_changed, NULL);
	while (*link) {
		struct asked *gone = *link;

		if (gone->state != ASKING) {
			link = &gone->next;
			continue;
		}
		*link = gone->next;
		free(gone);
	}
}

static struct asked *asked_find(cl_platform_id platform) REQUIRES(asked_lock)
{
	struct asked *a = asked;

	while (a && a->platform != platform)
		a = a->next;
	return a;
}

static struct asked *asked_add(cl_platform_id platform) REQUIRES(asked_lock)
{
	struct asked *a = calloc(1, sizeof(*a));

	if (!a)
		return NULL;
	a->platform = platform;
	a->next = asked;
	asked = a;
	return a;
}

struct asked *asked_begin(cl_platform_id platform, bool *answered, struct takes *t)
{
	struct asked *a, *mine = NULL;

	*answered = false;
	lock_acquire(&asked_lock);
	a = asked_find(platform);
	if (!a || a->state == LOOKED) {
		mine = a ? a : asked_add(platform);
		if (mine)
			mine->state = ASKING;
	} else {
		while (a->state == ASKING && !lock_wait(&asked_lock, &asked_changed, NULL))
			;
		*answered = a->state == ANSWERED;
		*t = a->takes;
	}
	lock_release(&asked_lock);
	return mine;
}

void asked_end(struct asked *a, bool answered, const struct takes *t)
{
	lock_acquire(&asked_lock);
	a->state = answered ? ANSWERED : UNANSWERED;
	a->takes = *t;
	pthread_cond_broadcast(&asked_changed);
	lock_release(&asked_lock);
}

bool asked_has(cl_platform_id platform)
{
	bool has;

	lock_acquire(&asked_lock);
	has = asked_find(platform);
	lock_release(&asked_lock);
	return has;
}

bool asked_get(cl_platform_id platform, struct takes *t)
{
	const struct asked *a;
	bool answered;

	lock_acquire(&asked_lock);
	a = asked_find(platform);
	answered = a && a->state == ANSWERED;
	if (answered)
		*t = a->takes;
	lock_release(&asked_lock);
	return answered;
}

void asked_note(cl_platform_id platform, const struct takes *kept)
{
	struct asked *a;

	lock_acquire(&asked_lock);
	a = asked_find(platform) ? NULL : asked_add(platform);
	if (a && kept) {
		a->state = ANSWERED;
		a->takes = *kept;
	}
	lock_release(&asked_lock);
}
