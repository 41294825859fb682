/* SPDX-License-Identifier: Apache-2.0 */
#include "import/opaque_fd/recent.h"

#include "util/lock.h"

#define RECENT_SETS 64u
#define RECENT_WAYS 4u
#define RECENT_LONGEST_WAIT 256u
#define RECENT_VAIN_STEP 8u /* registrations in vain that double the first wait of a range */
#define RECENT_VAIN_MOST 32u

struct recent_range {
	uintptr_t base;
	size_t size;	  /* 0: no range */
	uint32_t imports; /* since the last registration */
	uint32_t wait;	  /* imports before the next registration */
};

/* A range has its place in a set; the set's oldest range makes room. */
struct recent_set {
	struct recent_range range[RECENT_WAYS];
	uint32_t oldest;
};

LOCK_DEFINE(recent_lock, LOCK_LAST);
static struct recent_set recent_sets[RECENT_SETS] GUARDED_BY(recent_lock);
static uint32_t recent_vain GUARDED_BY(recent_lock); /* since a registration was used */

static struct recent_set *recent_set_of(uintptr_t base, size_t size) REQUIRES(recent_lock)
{
	uint64_t hash = (base ^ (uint64_t)size << 20) * UINT64_C(0x9e3779b97f4a7c15);

	return &recent_sets[hash >> 32 & (RECENT_SETS - 1)];
}

/* The range's place, found or made. */
static struct recent_range *recent_get(uintptr_t base, size_t size) REQUIRES(recent_lock)
{
	struct recent_set *set = recent_set_of(base, size);
	struct recent_range *range;

	for (size_t i = 0; i < RECENT_WAYS; i++)
		if (set->range[i].base == base && set->range[i].size == size)
			return &set->range[i];
	range = &set->range[set->oldest++ % RECENT_WAYS];
	*range = (struct recent_range){
		.base = base,
		.size = size,
		.wait = 1u << recent_vain / RECENT_VAIN_STEP,
	};
	return range;
}

bool recent_is_due(uintptr_t base, size_t size)
{
	struct recent_range *range;
	bool is_due;

	lock_acquire(&recent_lock);
	range = recent_get(base, size);
	is_due = range->imports >= range->wait;
	range->imports += !is_due;
	lock_release(&recent_lock);
	return is_due;
}

/* After a registration that was used, the next import is due. */
void recent_end(uintptr_t base, size_t size, bool was_used)
{
	struct recent_range *range;

	lock_acquire(&recent_lock);
	range = recent_get(base, size);
	if (was_used)
		range->wait = 1;
	else if (range->wait < RECENT_LONGEST_WAIT)
		range->wait *= 2;
	range->imports = was_used;
	if (was_used)
		recent_vain = 0;
	else if (recent_vain < RECENT_VAIN_MOST)
		recent_vain++;
	lock_release(&recent_lock);
}
