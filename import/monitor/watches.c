/* SPDX-License-Identifier: Apache-2.0 */
#include "import/monitor/watches.h"

#include <errno.h>
#include <stdatomic.h>
#include <time.h>

#include "util/fork.h"

#define WATCHES_REMOVED_NS 1000000000ULL

enum watches_state { WATCHES_FREE, WATCHES_LIVE, WATCHES_STALE, WATCHES_TOLD };

#define WATCHES_STATES 4

/* The range is written before the word says LIVE. */
struct watches_slot {
	_Atomic uint64_t word; /* number * WATCHES_STATES + state */
	_Atomic uintptr_t start, end;
	_Atomic uintptr_t from, to; /* registered */
	/* The least range that has all that was unmapped; empty: start >= end.  The reader's. */
	_Atomic uintptr_t gone_start, gone_end;
	atomic_bool is_lost; /* all may be unmapped */
};

static struct watches_slot watches_slots[MONITOR_MAX_WATCHES];
static _Atomic uint32_t watches_used; /* slots that were ever in use */
static uint64_t watches_last;	      /* number; a child goes on, so that no number is used twice */

/* What madvise() emptied lately, or more.  The reader's. */
static struct {
	_Atomic uintptr_t start, end;
	_Atomic uint64_t until; /* on CLOCK_MONOTONIC */
} watches_removed;

static uint64_t watches_word(uint64_t number, enum watches_state state)
{
	return number * WATCHES_STATES + state;
}

static enum watches_state watches_state_of(uint64_t word)
{
	return (enum watches_state)(word % WATCHES_STATES);
}

static uint64_t watches_now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000ULL + (uint64_t)time.tv_nsec;
}

static bool watches_touches(const struct watches_slot *slot, uintptr_t start, uintptr_t end)
{
	return atomic_load(&slot->start) < end && start < atomic_load(&slot->end);
}

static bool watches_has_registered(const struct watches_slot *slot, uintptr_t start, uintptr_t end)
{
	return atomic_load(&slot->from) < end && start < atomic_load(&slot->to);
}

/* The number of the first free slot, or MONITOR_MAX_WATCHES. */
static uint32_t watches_free_slot(void)
{
	uint32_t i = 0;

	while (i < MONITOR_MAX_WATCHES &&
	       watches_state_of(atomic_load(&watches_slots[i].word)) != WATCHES_FREE)
		i++;
	return i;
}

int watches_add(struct watches_pages watched, struct watches_pages registered, struct watch *watch)
{
	uint32_t i = watches_free_slot();
	struct watches_slot *slot = &watches_slots[i];

	if (i == MONITOR_MAX_WATCHES)
		return -ENOSPC;
	*watch = (struct watch){ ++watches_last, i, fork_generation() };
	atomic_store(&slot->start, watched.start);
	atomic_store(&slot->end, watched.end);
	atomic_store(&slot->from, registered.start);
	atomic_store(&slot->to, registered.end);
	atomic_store(&slot->gone_start, UINTPTR_MAX);
	atomic_store(&slot->gone_end, 0);
	atomic_store(&slot->is_lost, false);
	atomic_store(&slot->word, watches_word(watch->number, WATCHES_LIVE));
	if (i >= atomic_load(&watches_used))
		atomic_store(&watches_used, i + 1);
	return 0;
}

/* The live watch with the lowest address that needs a part of the range registered, or NULL. */
static struct watches_slot *watches_first_live(uintptr_t start, uintptr_t end)
{
	struct watches_slot *first = NULL;

	for (uint32_t i = 0; i < atomic_load(&watches_used); i++) {
		struct watches_slot *slot = &watches_slots[i];

		if (watches_state_of(atomic_load(&slot->word)) != WATCHES_LIVE ||
		    !watches_has_registered(slot, start, end))
			continue;
		if (!first || atomic_load(&slot->from) < atomic_load(&first->from))
			first = slot;
	}
	return first;
}

bool watches_has_live(uintptr_t start, uintptr_t end)
{
	return watches_first_live(start, end) != NULL;
}

static void watches_unregister(uintptr_t start, uintptr_t end,
			       void (*unregister)(int arg, uintptr_t start, uintptr_t end), int arg)
{
	while (start < end) {
		struct watches_slot *other = watches_first_live(start, end);
		uintptr_t until = other ? atomic_load(&other->from) : end;

		if (start < until)
			unregister(arg, start, until);
		start = other ? atomic_load(&other->to) : end;
	}
}

void watches_remove(const struct watch *watch,
		    void (*unregister)(int arg, uintptr_t start, uintptr_t end), int arg)
{
	struct watches_slot *slot = &watches_slots[watch->slot];
	uintptr_t start = atomic_load(&slot->from), end = atomic_load(&slot->to);
	uintptr_t gone_start, gone_end;

	if (atomic_load(&slot->word) / WATCHES_STATES != watch->number)
		return;
	atomic_store(&slot->word, watches_word(watch->number, WATCHES_FREE));
	if (atomic_load(&slot->is_lost))
		return;
	gone_start = atomic_load(&slot->gone_start);
	gone_end = atomic_load(&slot->gone_end);
	if (gone_start >= gone_end) {
		watches_unregister(start, end, unregister, arg);
		return;
	}
	watches_unregister(start, gone_start < end ? gone_start : end, unregister, arg);
	watches_unregister(gone_end > start ? gone_end : start, end, unregister, arg);
}

void watches_forget(void)
{
	for (uint32_t i = 0; i < atomic_load(&watches_used); i++)
		atomic_store(&watches_slots[i].word, 0);
	atomic_store(&watches_used, 0);
	atomic_store(&watches_removed.until, 0);
}

bool watches_is_live(const struct watch *watch)
{
	return watch->number && atomic_load(&watches_slots[watch->slot].word) ==
					watches_word(watch->number, WATCHES_LIVE);
}

static void watches_note_gone(struct watches_slot *slot, const struct uffd_change *change)
{
	if (change->kind != UFFD_UNMAPPED)
		return;
	if (change->start < atomic_load(&slot->gone_start))
		atomic_store(&slot->gone_start, change->start);
	if (change->end > atomic_load(&slot->gone_end))
		atomic_store(&slot->gone_end, change->end);
}

/* Where the last range is not forgotten yet, both are in the range that has both. */
static void watches_note_removed(const struct uffd_change *change)
{
	uint64_t now;
	bool is_over;

	if (change->kind != UFFD_REMOVED)
		return;
	now = watches_now();
	is_over = now >= atomic_load(&watches_removed.until);
	if (is_over || change->start < atomic_load(&watches_removed.start))
		atomic_store(&watches_removed.start, change->start);
	if (is_over || change->end > atomic_load(&watches_removed.end))
		atomic_store(&watches_removed.end, change->end);
	atomic_store(&watches_removed.until, now + WATCHES_REMOVED_NS);
}

static bool watches_mark_slot(struct watches_slot *slot)
{
	uint64_t word = atomic_load(&slot->word);

	return watches_state_of(word) == WATCHES_LIVE &&
	       atomic_compare_exchange_strong(&slot->word, &word,
					      watches_word(word / WATCHES_STATES, WATCHES_STALE));
}

bool watches_mark(const struct uffd_change *change)
{
	bool any = false;

	watches_note_removed(change);
	for (uint32_t i = 0; i < atomic_load(&watches_used); i++) {
		struct watches_slot *slot = &watches_slots[i];

		if (!watches_has_registered(slot, change->start, change->end))
			continue;
		watches_note_gone(slot, change);
		if (watches_touches(slot, change->start, change->end))
			any |= watches_mark_slot(slot);
	}
	return any;
}

struct watches_pages watches_pages_of(const struct watch *watch)
{
	const struct watches_slot *slot = &watches_slots[watch->slot];

	return (struct watches_pages){ atomic_load(&slot->start), atomic_load(&slot->end) };
}

void watches_lose(const struct watch *watch)
{
	struct watches_slot *slot = &watches_slots[watch->slot];
	uint64_t word = watches_word(watch->number, WATCHES_LIVE);

	if (!atomic_compare_exchange_strong(&slot->word, &word,
					    watches_word(watch->number, WATCHES_STALE)))
		return;
	atomic_store(&slot->is_lost, true);
}

void watches_mark_all(void)
{
	for (uint32_t i = 0; i < atomic_load(&watches_used); i++)
		watches_mark_slot(&watches_slots[i]);
}

bool watches_removed_lately(uintptr_t start, uintptr_t end)
{
	return watches_now() < atomic_load(&watches_removed.until) &&
	       atomic_load(&watches_removed.start) < end &&
	       start < atomic_load(&watches_removed.end);
}

bool watches_next_untold(uintptr_t *start, uintptr_t *end)
{
	for (uint32_t i = 0; i < atomic_load(&watches_used); i++) {
		struct watches_slot *slot = &watches_slots[i];
		uint64_t word = atomic_load(&slot->word);

		if (watches_state_of(word) != WATCHES_STALE)
			continue;
		*start = atomic_load(&slot->start);
		*end = atomic_load(&slot->end);
		if (atomic_compare_exchange_strong(
			    &slot->word, &word, watches_word(word / WATCHES_STATES, WATCHES_TOLD)))
			return true;
	}
	return false;
}
