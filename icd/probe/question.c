/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/probe/question.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "util/lock.h"

struct question {
	struct question *next;
	unsigned long number; /* no other question of the process has the number */
	char *key;
	bool has_ended;
	unsigned int waiting; /* threads that have not read the answer */
	unsigned char answer[QUESTION_ANSWER_SIZE];
};

static void question_in_child(struct lock *lock);

LOCK_DEFINE_IN_CHILD(question_lock, LOCK_LAST, question_in_child); /* the list, and all questions */
static struct question *questions GUARDED_BY(question_lock);
static unsigned long question_numbers GUARDED_BY(question_lock);
static pthread_cond_t question_changed = PTHREAD_COND_INITIALIZER;

static void question_destroy(struct question *q)
{
	free(q->key);
	free(q);
}

/* The threads that find answers are not in the child. */
static void question_in_child(struct lock *lock) TSA(no_thread_safety_analysis)
{
	(void)lock;
	pthread_cond_init(&question_changed, NULL);
	while (questions) {
		struct question *gone = questions;

		questions = gone->next;
		question_destroy(gone);
	}
}

/* The question to which a thread finds the answer. */
static struct question *question_find(const char *key) REQUIRES(question_lock)
{
	struct question *q = questions;

	while (q && (q->has_ended || strcmp(q->key, key) != 0))
		q = q->next;
	return q;
}

/* NULL: the question was the parent's of this process. */
static struct question *question_find_number(unsigned long number) REQUIRES(question_lock)
{
	struct question *q = questions;

	while (q && q->number != number)
		q = q->next;
	return q;
}

/* Without memory the thread finds the answer for itself alone. */
static void question_add(const char *key) REQUIRES(question_lock)
{
	struct question *q = calloc(1, sizeof(*q));

	if (!q)
		return;
	q->key = strdup(key);
	if (!q->key) {
		free(q);
		return;
	}
	q->number = ++question_numbers;
	q->next = questions;
	questions = q;
}

static void question_remove(struct question *gone) REQUIRES(question_lock)
{
	struct question **link = &questions;

	while (*link != gone)
		link = &(*link)->next;
	*link = gone->next;
	question_destroy(gone);
}

static void question_wait(struct question *q, void *answer, size_t size) REQUIRES(question_lock)
{
	const unsigned long number = q->number;

	q->waiting++;
	while (q && !q->has_ended && !lock_wait(&question_lock, &question_changed, NULL))
		q = question_find_number(number);
	if (!q)
		return;
	if (q->has_ended)
		memcpy(answer, q->answer, size);
	if (!--q->waiting && q->has_ended)
		question_remove(q);
}

bool question_begin(const char *key, void *answer, size_t size)
{
	struct question *q;

	lock_acquire(&question_lock);
	q = question_find(key);
	if (q)
		question_wait(q, answer, size);
	else
		question_add(key);
	lock_release(&question_lock);
	return !q;
}

void question_end(const char *key, const void *answer, size_t size)
{
	struct question *q;

	lock_acquire(&question_lock);
	q = question_find(key);
	if (q && !q->waiting) {
		question_remove(q);
	} else if (q) {
		memcpy(q->answer, answer, size);
		q->has_ended = true;
		pthread_cond_broadcast(&question_changed);
	}
	lock_release(&question_lock);
}
