/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/methods/opaque_fd/backing.h"

#include <stdbool.h>

#include "icd/layer.h"
#include "util/lock.h"

#define MAX_BACKINGS 64

struct backing {
	cl_mem mem; /* NULL: free */
	cl_context context;
	uint64_t memory;
	cl_mem_flags flags;
	uint64_t used; /* the clock at the last use */
	unsigned int
		users; /* threads about to take a reference; the last thread drops the buffer */
	bool dropped;  /* not found any more, and released by the last user */
};

LOCK_DEFINE(backing_lock, LOCK_LAST); /* the two below */
static struct backing backings[MAX_BACKINGS] GUARDED_BY(backing_lock);
static uint64_t backing_clock GUARDED_BY(backing_lock);

static struct backing *backing_find_locked(cl_context context, uint64_t memory, cl_mem_flags flags)
	REQUIRES(backing_lock)
{
	for (size_t i = 0; i < MAX_BACKINGS; i++)
		if (backings[i].mem && !backings[i].dropped && backings[i].context == context &&
		    backings[i].memory == memory && backings[i].flags == flags)
			return &backings[i];
	return NULL;
}

/* The record stays until backing_end_use(). */
static struct backing *backing_begin_use(cl_context context, uint64_t memory, cl_mem_flags flags)
{
	struct backing *backing;

	lock_acquire(&backing_lock);
	backing = backing_find_locked(context, memory, flags);
	if (backing) {
		backing->used = ++backing_clock;
		backing->users++;
	}
	lock_release(&backing_lock);
	return backing;
}

static void backing_end_use(struct backing *backing)
{
	cl_mem gone = NULL;

	lock_acquire(&backing_lock);
	if (!--backing->users && backing->dropped) {
		gone = backing->mem;
		backing->mem = NULL;
	}
	lock_release(&backing_lock);
	if (gone)
		next.clReleaseMemObject(gone);
}

cl_mem backing_find(cl_context context, uint64_t memory, cl_mem_flags flags)
{
	struct backing *backing = backing_begin_use(context, memory, flags);
	cl_mem mem;

	if (!backing)
		return NULL;
	mem = next.clRetainMemObject(backing->mem) ? NULL : backing->mem;
	backing_end_use(backing);
	return mem;
}

/* A free place, or the place of the least recently used buffer; NULL if all have users. */
static struct backing *backing_place(void) REQUIRES(backing_lock)
{
	struct backing *oldest = NULL;

	for (size_t i = 0; i < MAX_BACKINGS; i++) {
		if (!backings[i].mem)
			return &backings[i];
		if (!backings[i].users && (!oldest || backings[i].used < oldest->used))
			oldest = &backings[i];
	}
	return oldest;
}

void backing_keep(cl_context context, uint64_t memory, cl_mem_flags flags, cl_mem backing)
{
	cl_mem gone = backing;
	struct backing *at = NULL;

	if (next.clRetainMemObject(backing))
		return;
	lock_acquire(&backing_lock);
	if (!backing_find_locked(context, memory, flags))
		at = backing_place();
	if (at) {
		gone = at->mem;
		*at = (struct backing){
			.mem = backing,
			.context = context,
			.memory = memory,
			.flags = flags,
			.used = ++backing_clock,
		};
	}
	lock_release(&backing_lock);
	if (gone)
		next.clReleaseMemObject(gone);
}

/* Removes a buffer of @context, or of @memory. */
static cl_mem backing_take(cl_context context, uint64_t memory)
{
	cl_mem mem = NULL;

	lock_acquire(&backing_lock);
	for (size_t i = 0; i < MAX_BACKINGS && !mem; i++) {
		if (!backings[i].mem ||
		    (backings[i].context != context && backings[i].memory != memory))
			continue;
		if (backings[i].users) {
			backings[i].dropped = true;
			continue;
		}
		mem = backings[i].mem;
		backings[i].mem = NULL;
	}
	lock_release(&backing_lock);
	return mem;
}

static void backing_drop(cl_context context, uint64_t memory)
{
	cl_mem mem;

	while ((mem = backing_take(context, memory)))
		next.clReleaseMemObject(mem);
}

void backing_drop_context(cl_context context)
{
	backing_drop(context, 0);
}

void backing_drop_memory(uint64_t memory)
{
	backing_drop(NULL, memory);
}
