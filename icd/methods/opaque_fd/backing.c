/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/methods/opaque_fd/backing.h"

#include <stdlib.h>

#include "icd/layer.h"
#include "util/lock.h"
#include "util/log.h"

#define BACKING_BUCKETS 256u /* names are counted up: neighbours are in different buckets */
#define BACKING_SPARE 64u    /* buffers that may go */

struct backing {
	struct backing *next; /* in the bucket */
	cl_mem mem;
	cl_context context;
	uint64_t memory;
	bool may_go;
	uint64_t used; /* the clock at the last use */
	unsigned int
		users; /* threads about to take a reference; the last thread drops the buffer */
	bool dropped;  /* not found any more, and released by the last user */
};

LOCK_DEFINE(backing_lock, LOCK_LAST); /* all below */
static struct backing *backings[BACKING_BUCKETS] GUARDED_BY(backing_lock);
static uint64_t backing_clock GUARDED_BY(backing_lock);

static struct backing **backing_bucket(uint64_t memory) REQUIRES(backing_lock)
{
	return &backings[memory % BACKING_BUCKETS];
}

static struct backing *backing_find_locked(cl_context context, uint64_t memory)
	REQUIRES(backing_lock)
{
	struct backing *backing = *backing_bucket(memory);

	while (backing &&
	       (backing->dropped || backing->context != context || backing->memory != memory))
		backing = backing->next;
	return backing;
}

static void backing_unlink(struct backing *backing) REQUIRES(backing_lock)
{
	struct backing **link = backing_bucket(backing->memory);

	while (*link != backing)
		link = &(*link)->next;
	*link = backing->next;
}

/* The caller has unlinked @backing, or NULL. */
static void backing_release(struct backing *backing)
{
	if (backing)
		next.clReleaseMemObject(backing->mem);
	free(backing);
}

/* The record stays until backing_end_use(). */
static struct backing *backing_begin_use(cl_context context, uint64_t memory)
{
	struct backing *backing;

	lock_acquire(&backing_lock);
	backing = backing_find_locked(context, memory);
	if (backing) {
		backing->used = ++backing_clock;
		backing->users++;
	}
	lock_release(&backing_lock);
	return backing;
}

static void backing_end_use(struct backing *backing)
{
	struct backing *gone = NULL;

	lock_acquire(&backing_lock);
	if (!--backing->users && backing->dropped) {
		backing_unlink(backing);
		gone = backing;
	}
	lock_release(&backing_lock);
	backing_release(gone);
}

cl_mem backing_find(cl_context context, uint64_t memory)
{
	struct backing *backing = backing_begin_use(context, memory);
	cl_mem mem;

	if (!backing)
		return NULL;
	mem = next.clRetainMemObject(backing->mem) ? NULL : backing->mem;
	backing_end_use(backing);
	return mem;
}

/* Takes out the least recently used buffer that may go, if there are BACKING_SPARE; else NULL. */
static struct backing *backing_take_oldest(void) REQUIRES(backing_lock)
{
	struct backing *oldest = NULL;
	unsigned int count = 0;

	for (size_t i = 0; i < BACKING_BUCKETS; i++) {
		for (struct backing *b = backings[i]; b; b = b->next) {
			count += b->may_go;
			if (b->may_go && !b->users && (!oldest || b->used < oldest->used))
				oldest = b;
		}
	}
	if (count < BACKING_SPARE || !oldest)
		return NULL;
	backing_unlink(oldest);
	return oldest;
}

/* Returns the record to release: a record that gave way, or @made if another thread was faster. */
static struct backing *backing_publish(struct backing *made)
{
	struct backing *gone = made;

	lock_acquire(&backing_lock);
	if (!backing_find_locked(made->context, made->memory)) {
		gone = made->may_go ? backing_take_oldest() : NULL;
		made->used = ++backing_clock;
		made->next = *backing_bucket(made->memory);
		*backing_bucket(made->memory) = made;
	}
	lock_release(&backing_lock);
	return gone;
}

void backing_keep(cl_context context, uint64_t memory, bool may_go, cl_mem backing)
{
	struct backing *made = malloc(sizeof(*made));

	if (!made || next.clRetainMemObject(backing)) {
		log_debug("no memory to keep a backing buffer");
		free(made);
		return;
	}
	*made = (struct backing){
		.mem = backing,
		.context = context,
		.memory = memory,
		.may_go = may_go,
	};
	backing_release(backing_publish(made));
}

/* Removes a buffer of @context, or of @memory, from a bucket. */
static struct backing *backing_take_from(struct backing **link, cl_context context, uint64_t memory)
	REQUIRES(backing_lock)
{
	for (; *link; link = &(*link)->next) {
		struct backing *backing = *link;

		if (backing->context != context && backing->memory != memory)
			continue;
		if (backing->users) {
			backing->dropped = true;
			continue;
		}
		*link = backing->next;
		return backing;
	}
	return NULL;
}

static struct backing *backing_take(cl_context context, uint64_t memory)
{
	struct backing *backing = NULL;

	lock_acquire(&backing_lock);
	for (size_t i = 0; i < BACKING_BUCKETS && !backing; i++)
		backing = backing_take_from(&backings[i], context, memory);
	lock_release(&backing_lock);
	return backing;
}

static void backing_drop(cl_context context, uint64_t memory)
{
	struct backing *backing;

	while ((backing = backing_take(context, memory)))
		backing_release(backing);
}

void backing_drop_context(cl_context context)
{
	backing_drop(context, 0);
}

void backing_drop_memory(uint64_t memory)
{
	backing_drop(NULL, memory);
}
