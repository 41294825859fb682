/* SPDX-License-Identifier: Apache-2.0 */
#include "import/nvidia/cuda/cuda_facts.h"

#include <stdbool.h>

#include "util/lock.h"

#define FACTS_ROOM 256
#define FACTS_PAGE 4096 /* no mapping is smaller */

/* The facts of a page of an allocation. */
struct cuda_facts {
	uint64_t buffer_id; /* 0: no facts */
	uintptr_t page;
	unsigned int facts;
};

LOCK_DEFINE(cuda_facts_lock, LOCK_LAST);
static struct cuda_facts cuda_facts_table[FACTS_ROOM] GUARDED_BY(cuda_facts_lock);

/* The only place for the facts of the page: a newer page takes the place of an older page. */
static struct cuda_facts *cuda_facts_place(uint64_t buffer_id, uintptr_t page)
	REQUIRES(cuda_facts_lock)
{
	uint64_t hash = (buffer_id ^ (uint64_t)page << 24) * UINT64_C(0x9e3779b97f4a7c15);

	return &cuda_facts_table[(hash >> 32) % FACTS_ROOM];
}

static bool cuda_facts_are_of(const struct cuda_facts *facts, uint64_t buffer_id, uintptr_t page)
{
	return facts->buffer_id == buffer_id && facts->page == page;
}

unsigned int cuda_facts_get(uint64_t buffer_id, uintptr_t addr)
{
	uintptr_t page = addr / FACTS_PAGE;
	const struct cuda_facts *place;
	unsigned int facts = 0;

	if (!buffer_id)
		return 0;
	lock_acquire(&cuda_facts_lock);
	place = cuda_facts_place(buffer_id, page);
	if (cuda_facts_are_of(place, buffer_id, page))
		facts = place->facts;
	lock_release(&cuda_facts_lock);
	return facts;
}

void cuda_facts_add(uint64_t buffer_id, uintptr_t addr, enum cuda_fact fact)
{
	uintptr_t page = addr / FACTS_PAGE;
	struct cuda_facts *place;

	if (!buffer_id)
		return;
	lock_acquire(&cuda_facts_lock);
	place = cuda_facts_place(buffer_id, page);
	if (!cuda_facts_are_of(place, buffer_id, page))
		*place = (struct cuda_facts){ buffer_id, page, 0 };
	place->facts |= fact;
	lock_release(&cuda_facts_lock);
}
