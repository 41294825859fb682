/* SPDX-License-Identifier: Apache-2.0 */
#include "roots.h"

#include <stdbool.h>

#include "import/lock.h"
#include "layer.h"

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

LOCK_DEFINE(roots_lock, LOCK_LAST); /* the two below */
static struct root roots[ROOTS] GUARDED_BY(roots_lock);
static uint64_t used_last GUARDED_BY(roots_lock);

static struct root *roots_find_locked(cl_context context, uint64_t memory, cl_mem_flags flags)
	REQUIRES(roots_lock)
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

	lock_acquire(&roots_lock);
	root = roots_find_locked(context, memory, flags);
	if (root) {
		root->used = ++used_last;
		root->finders++;
	}
	lock_release(&roots_lock);
	return root;
}

static void finder_end(struct root *root)
{
	cl_mem gone = NULL;

	lock_acquire(&roots_lock);
	if (!--root->finders && root->dropped) {
		gone = root->mem;
		root->mem = NULL;
	}
	lock_release(&roots_lock);
	if (gone)
		next.clReleaseMemObject(gone);
}

cl_mem roots_find(cl_context context, uint64_t memory, cl_mem_flags flags)
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
static struct root *roots_place(void) REQUIRES(roots_lock)
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

void roots_keep(cl_context context, uint64_t memory, cl_mem_flags flags, cl_mem root)
{
	cl_mem gone = root;
	struct root *at = NULL;

	if (next.clRetainMemObject(root))
		return;
	lock_acquire(&roots_lock);
	if (!roots_find_locked(context, memory, flags))
		at = roots_place();
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
	lock_release(&roots_lock);
	if (gone)
		next.clReleaseMemObject(gone);
}

/* Takes one out that is of @context, or of @memory. */
static cl_mem roots_take(cl_context context, uint64_t memory)
{
	cl_mem mem = NULL;

	lock_acquire(&roots_lock);
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
	lock_release(&roots_lock);
	return mem;
}

static void roots_drop(cl_context context, uint64_t memory)
{
	cl_mem mem;

	while ((mem = roots_take(context, memory)))
		next.clReleaseMemObject(mem);
}

void roots_drop_context(cl_context context)
{
	roots_drop(context, 0);
}

void roots_drop_memory(uint64_t memory)
{
	roots_drop(NULL, memory);
}
