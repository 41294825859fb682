/* SPDX-License-Identifier: Apache-2.0 */
#include "util/process.h"

#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

static _Atomic uint32_t last;		  /* of this process, or of its parent's; never less */
static _Atomic uint32_t unwiped;	  /* the number, where there is no such page */
static _Atomic uint32_t *mark = &unwiped; /* 0 in a process that has none yet */

void *process_create_page(void)
{
	size_t size = sysconf(_SC_PAGESIZE);
	void *page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED)
		return NULL;
	if (!madvise(page, size, MADV_WIPEONFORK))
		return page;
	munmap(page, size);
	return NULL;
}

__attribute__((constructor)) static void process_prepare(void)
{
	void *page = process_create_page();

	if (page)
		mark = page;
}

/* @last grows first: a child that is made meanwhile gets a larger number than its parent has. */
static uint32_t process_begin(void)
{
	uint32_t none = 0, next = atomic_fetch_add(&last, 1) + 1;

	return atomic_compare_exchange_strong(mark, &none, next) ? next : none;
}

uint32_t process_generation(void)
{
	uint32_t mine = atomic_load_explicit(mark, memory_order_relaxed);

	return mine ? mine : process_begin();
}

void process_forked(void)
{
	atomic_store(&unwiped, 0);
}
