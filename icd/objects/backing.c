/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/objects/backing.h"

#include <errno.h>
#include <stdlib.h>

#include "icd/layer.h"
#include "icd/objects/method.h"
#include "util/cl_names.h"
#include "util/lock.h"
#include "util/log.h"

#define BACKING_BUCKETS 256u /* names are counted up: neighbours are in different buckets */
#define BACKING_LONGEST_WAIT 256u

struct backing {
	struct backing *next; /* in the bucket, or in a list of records to release */
	cl_mem mem;
	cl_context context;
	uint64_t memory;
	enum import_share share;
	uint64_t used;	    /* the clock at the last use */
	unsigned int users; /* imports, and threads about to make one */
	bool is_kept;	    /* the table has the record; without users: idle */
	bool was_found;	    /* by an import after the first */
};

/* Of a share of the process's descriptors. */
struct backing_group {
	unsigned int idle, most;
	unsigned int wait; /* buffers not kept before the next takes the place of an idle buffer */
	unsigned int passed; /* as many since the last */
};

LOCK_DEFINE(backing_lock, LOCK_LAST); /* all below, and the records that are kept */
static struct backing *backings[BACKING_BUCKETS] GUARDED_BY(backing_lock);
static struct backing_group backing_groups[IMPORT_SHARES] GUARDED_BY(backing_lock);
static uint64_t backing_clock GUARDED_BY(backing_lock);

static struct backing **backing_bucket(uint64_t memory) REQUIRES(backing_lock)
{
	return &backings[memory % BACKING_BUCKETS];
}

static struct backing *backing_find_locked(cl_context context, uint64_t memory)
	REQUIRES(backing_lock)
{
	struct backing *backing = *backing_bucket(memory);

	while (backing && (backing->context != context || backing->memory != memory))
		backing = backing->next;
	return backing;
}

static void backing_release_list(struct backing *list)
{
	while (list) {
		struct backing *backing = list;

		list = backing->next;
		next.clReleaseMemObject(backing->mem);
		free(backing);
	}
}

/* Takes *@link out of the table.  A record without users goes to @list, for the caller to release. */
static void backing_take(struct backing **link, struct backing **list) REQUIRES(backing_lock)
{
	struct backing *backing = *link;

	*link = backing->next;
	backing->is_kept = false;
	if (backing->users)
		return;
	backing_groups[backing->share].idle--;
	backing->next = *list;
	*list = backing;
}

struct backing *backing_create(cl_mem mem)
{
	struct backing *backing = malloc(sizeof(*backing));

	if (!backing) {
		log_error("no memory to keep track of the hidden buffer that contains an import");
		next.clReleaseMemObject(mem);
		return NULL;
	}
	*backing = (struct backing){ .mem = mem, .users = 1 };
	return backing;
}

cl_mem backing_mem(const struct backing *backing)
{
	return backing->mem;
}

struct backing *backing_find(cl_context context, uint64_t memory)
{
	struct backing *backing;

	lock_acquire(&backing_lock);
	backing = backing_find_locked(context, memory);
	if (backing) {
		backing_groups[backing->share].idle -= !backing->users++;
		backing_groups[backing->share].wait = 0;
		backing->was_found = true;
	}
	lock_release(&backing_lock);
	return backing;
}

/* The least recently used of the idle buffers of a share. */
static struct backing **backing_oldest(enum import_share share) REQUIRES(backing_lock)
{
	struct backing **oldest = NULL;

	for (size_t i = 0; i < BACKING_BUCKETS; i++)
		for (struct backing **b = &backings[i]; *b; b = &(*b)->next)
			if ((*b)->share == share && !(*b)->users &&
			    (!oldest || (*b)->used < (*oldest)->used))
				oldest = b;
	return oldest;
}

/* Buffers that go before they were of use are a reason to replace idle buffers more rarely. */
static void backing_note_end(struct backing_group *group, const struct backing *backing)
{
	if (backing->was_found)
		return;
	group->wait = group->wait ? 2 * group->wait : 1;
	if (group->wait > BACKING_LONGEST_WAIT)
		group->wait = BACKING_LONGEST_WAIT;
}

/* The idle buffers that are too many. */
static struct backing *backing_trim(enum import_share share) REQUIRES(backing_lock)
{
	struct backing_group *group = &backing_groups[share];
	struct backing *list = NULL;

	while (group->idle > group->most) {
		backing_take(backing_oldest(share), &list);
		backing_note_end(group, list);
	}
	return list;
}

void backing_put(struct backing *backing)
{
	struct backing *list = NULL;

	lock_acquire(&backing_lock);
	if (!--backing->users && !backing->is_kept) {
		backing->next = NULL;
		list = backing;
	} else if (!backing->users) {
		backing->used = ++backing_clock;
		backing_groups[backing->share].idle++;
		list = backing_trim(backing->share);
	}
	lock_release(&backing_lock);
	backing_release_list(list);
}

bool backing_may_keep(enum import_share share)
{
	const unsigned int most = import_share_most(share);
	struct backing_group *group = &backing_groups[share];
	bool may_keep;

	lock_acquire(&backing_lock);
	group->most = most;
	may_keep = group->idle < most || (most && group->passed >= group->wait);
	if (group->idle >= most)
		group->passed = may_keep ? 0 : group->passed + 1;
	lock_release(&backing_lock);
	return may_keep;
}

void backing_keep(struct backing *backing, cl_context context, uint64_t memory,
		  enum import_share share)
{
	lock_acquire(&backing_lock);
	if (!backing_find_locked(context, memory)) {
		backing->context = context;
		backing->memory = memory;
		backing->share = share;
		backing->is_kept = true;
		backing->next = *backing_bucket(memory);
		*backing_bucket(memory) = backing;
	}
	lock_release(&backing_lock);
}

/* The buffers of @context, or of @memory. */
static void backing_drop(cl_context context, uint64_t memory)
{
	struct backing *list = NULL, **link;

	lock_acquire(&backing_lock);
	for (size_t i = 0; i < BACKING_BUCKETS; i++) {
		for (link = &backings[i]; *link;) {
			if ((*link)->context == context || (*link)->memory == memory)
				backing_take(link, &list);
			else
				link = &(*link)->next;
		}
	}
	lock_release(&backing_lock);
	backing_release_list(list);
}

void backing_drop_context(cl_context context)
{
	backing_drop(context, 0);
}

void backing_drop_memory(uint64_t memory)
{
	backing_drop(NULL, memory);
}

/* Buffers that no program asked for go first: the order of enum import_share. */
bool backing_give_up(uint32_t count)
{
	struct backing *list = NULL;
	bool any;

	lock_acquire(&backing_lock);
	for (int share = 0; share < IMPORT_SHARES; share++)
		for (; count && backing_groups[share].idle; count--)
			backing_take(backing_oldest(share), &list);
	lock_release(&backing_lock);
	any = list;
	backing_release_list(list);
	return any;
}

cl_int backing_refuse_offset(const struct import_region *region, size_t align)
{
	log_error("%zu bytes at %p: this device takes addresses that are multiples of %zu bytes",
		  region->size, region->addr, align);
	return CL_INVALID_OPERATION;
}

bool backing_retry(struct shortage_retry *retry, cl_int err)
{
	const bool is_short = err > 0 || err == CL_OUT_OF_RESOURCES ||
			      err == CL_OUT_OF_HOST_MEMORY ||
			      err == CL_MEM_OBJECT_ALLOCATION_FAILURE;

	return shortage_retry(retry, is_short ? -ENOMEM : 0);
}

cl_mem backing_create_part(const struct backing *backing, cl_mem_flags flags, size_t offset,
			   size_t size, cl_int *err)
{
	const cl_buffer_region region = { offset, size };
	struct shortage_retry retry = { 0 };
	cl_mem part;

	do
		part = next.clCreateSubBuffer(backing->mem, flags, CL_BUFFER_CREATE_TYPE_REGION,
					      &region, err);
	while (*err && backing_retry(&retry, *err));
	return part;
}

cl_int backing_import(struct backing *backing, cl_mem_flags flags, size_t offset, size_t size,
		      struct method_buffer *buffer)
{
	cl_int err;
	cl_mem part =
		created_or_null(backing_create_part(backing, flags, offset, size, &err), &err);

	if (part)
		*buffer = (struct method_buffer){ part, backing, offset };
	else
		log_error("the driver made no sub-buffer of the hidden buffer that contains an "
			  "import: %s",
			  cl_error_name(err));
	return err;
}

cl_int backing_import_alone(cl_mem whole, cl_mem_flags flags, size_t offset, size_t size,
			    struct method_buffer *buffer)
{
	struct backing *backing = backing_create(whole);
	cl_int err = backing ? backing_import(backing, flags, offset, size, buffer)
			     : CL_OUT_OF_HOST_MEMORY;

	if (err && backing)
		backing_put(backing);
	return err;
}
