/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/methods/opaque_fd/backing.h"

#include <stdbool.h>

#include "icd/layer.h"
#include "util/lock.h"

#define ROOTS 64

struct root {
	cl_mem mem; /* NULL: free */
	cl_context context;
	uint64_t memory;
	cl_mem_flags flags;
	uint64_t used;	      /* the clock at its last use */
	unsigned int finders; /* threads that take a reference just now; the last one drops it */
	bool dropped;	      /* as soon as there are none; nobody finds it any more */
};

LOCK_DEFINE(backing_lock, LOCK_LAST); /* the two below */
static struct root roots[ROOTS] GUARDED_BY(backing_lock);
static uint64_t used_last GUARDED_BY(backing_lock);

static struct root *backing_find_locked(cl_context context, uint64_t memory, cl_mem_flags flags)
	REQUIRES(backing_lock)
{
	for (size_t i = 0; i < ROOTS; i++)
		if (roots[i].mem && !roots[i].dropped && roots[i].context == context &&
		    roots[i].memory == memory && roots[i].flags == flags)
			return &roots[i];
	return NULL;
}

/* Nobody drops it until finder_end(). */
static struct root *finder_begin(cl_context context, uint64_t memory, cl_mem_flags flags)
{
	struct root *root;

	lock_acquire(&backing_lock);
	root = backing_find_locked(context, memory, flags);
	if (root) {
		root->used = ++used_last;
		root->finders++;
	}
	lock_release(&backing_lock);
	return root;
}

static void finder_end(struct root *root)
{
	cl_mem gone = NULL;

	lock_acquire(&backing_lock);
	if (!--root->finders && root->dropped) {
		gone = root->mem;
		root->mem = NULL;
	}
	lock_release(&backing_lock);
	if (gone)
		next.clReleaseMemObject(gone);
}

cl_mem backing_find(cl_context context, uint64_t memory, cl_mem_flags flags)
{
	struct root *root = finder_begin(context, memory, flags);
	cl_mem mem;

	if (!root)
		return NULL;
	mem = next.clRetainMemObject(root->mem) ? NULL : root->mem;
	finder_end(root);
	return mem;
}

/* A free place, or that of the least recently used; NULL if all are in use just now. */
static struct root *backing_place(void) REQUIRES(backing_lock)
{
	struct root *oldest = NULL;

	for (size_t i = 0; i < ROOTS; i++) {
		if (!roots[i].mem)
			return &roots[i];
		if (!roots[i].finders && (!oldest || roots[i].used < oldest->used))
			oldest = &roots[i];
	}
	return oldest;
}

void backing_keep(cl_context context, uint64_t memory, cl_mem_flags flags, cl_mem root)
{
	cl_mem gone = root;
	struct root *at = NULL;

	if (next.clRetainMemObject(root))
		return;
	lock_acquire(&backing_lock);
	if (!backing_find_locked(context, memory, flags))
		at = backing_place();
	if (at) {
		gone = at->mem;
		*at = (struct root){
			.mem = root,
			.context = context,
			.memory = memory,
			.flags = flags,
			.used = ++used_last,
		};
	}
	lock_release(&backing_lock);
	if (gone)
		next.clReleaseMemObject(gone);
}

/* Takes one out that is of @context, or of @memory. */
static cl_mem backing_take(cl_context context, uint64_t memory)
{
	cl_mem mem = NULL;

	lock_acquire(&backing_lock);
	for (size_t i = 0; i < ROOTS && !mem; i++) {
		if (!roots[i].mem || (roots[i].context != context && roots[i].memory != memory))
			continue;
		if (roots[i].finders) {
			roots[i].dropped = true;
			continue;
		}
		mem = roots[i].mem;
		roots[i].mem = NULL;
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
