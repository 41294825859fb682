/* SPDX-License-Identifier: Apache-2.0 */
#include "import/export/host_registration.h"

#include <errno.h>
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "import/cache/table.h"
#include "import/export/gdmabuf.h"
#include "import/export/registration.h"
#include "import/kinds/maps.h"
#include "import/nvidia/pinnable.h"
#include "util/fork.h"
#include "util/lock.h"
#include "util/log.h"
#include "util/thread.h"

/* The words of a registration, up to the slot. */
#define HOST_WORDS (offsetof(struct host_registration, slot) / sizeof(uint64_t))

/*
 * A registration and its users.  Slots are never freed, so a thread may look at a slot that another
 * thread ends.  @state tells whether the slot had one registration all the time.
 */
struct host_slot {
	alignas(64) _Atomic uint64_t state; /* number, HOST_ENDED, users */
	_Atomic uint64_t word[HOST_WORDS];  /* written while there are no users */
	_Atomic uint64_t hits;		    /* of all registrations in the slot */
	struct cache_ref ref;		    /* to the dma-buf; pin NULL: a promise */
	/* Under the lock. */
	bool listed;		 /* in the table */
	struct host_slot *next;	 /* in the list of free slots */
	struct host_slot *older; /* of all slots */
};

/* The low bits of the number tell a slot's registrations apart. */
#define HOST_NUMBER_SHIFT 24
#define HOST_ENDED (UINT64_C(1) << 23) /* invalidated, and not found any more */
#define HOST_USERS (HOST_ENDED - 1)

LOCK_DEFINE(host_registration_lock, LOCK_LAST); /* writers of the table */
static struct cache_table host_table;
static atomic_bool host_table_exists; /* @host_table is made; written under the lock */
static struct host_slot *host_slots GUARDED_BY(host_registration_lock);
static struct host_slot *host_slots_free GUARDED_BY(host_registration_lock);
static uint64_t host_misses GUARDED_BY(host_registration_lock);

static _Atomic(host_registration_ended_fn) host_registration_ended;

void host_registration_on_end(host_registration_ended_fn ended)
{
	atomic_store(&host_registration_ended, ended);
}

static void host_registration_tell(uintptr_t address, size_t size)
{
	host_registration_ended_fn ended = atomic_load(&host_registration_ended);

	if (ended)
		ended(address, size);
}

/* Pairs with host_table_prepare(). */
bool host_registration_exists(void)
{
	return atomic_load_explicit(&host_table_exists, memory_order_acquire);
}

static uint64_t host_state_of(uint64_t number)
{
	return number << HOST_NUMBER_SHIFT;
}

/* Whether the slot has users of the registration. */
static bool host_state_is_used(uint64_t state, uint64_t number)
{
	return state & HOST_USERS &&
	       state >> HOST_NUMBER_SHIFT == host_state_of(number) >> HOST_NUMBER_SHIFT;
}

/* Pairs with gdmabuf_notifier_set_stale(). */
static bool host_registration_is_valid(const struct host_registration *r)
{
	return r->process == fork_generation() &&
	       (!r->status || atomic_load_explicit(r->status, memory_order_acquire) == r->valid);
}

bool host_registration_is_current(const struct host_registration *r)
{
	const uint64_t state = atomic_load(&r->slot->state);

	return host_state_is_used(state, r->number) && !(state & HOST_ENDED) &&
	       host_registration_is_valid(r);
}

/* One registration's words only if the state is the same before and after.  Pairs with host_slot_write(). */
static void host_slot_read(struct host_slot *slot, struct host_registration *out)
{
	for (size_t i = 0; i < HOST_WORDS; i++) {
		const uint64_t word = atomic_load_explicit(&slot->word[i], memory_order_acquire);

		memcpy((char *)out + i * sizeof(word), &word, sizeof(word));
	}
	out->slot = slot;
}

static void host_slot_write(struct host_slot *slot, const struct host_registration *r)
{
	for (size_t i = 0; i < HOST_WORDS; i++) {
		uint64_t word;

		memcpy(&word, (const char *)r + i * sizeof(word), sizeof(word));
		atomic_store_explicit(&slot->word[i], word, memory_order_release);
	}
}

/*
 * Whether a look-up may find what the slot has.  @out is to be believed if the slot still has the
 * registration of @state and users afterwards.
 */
static bool host_slot_matches(struct host_slot *slot, uint64_t state, uintptr_t address,
			      size_t size, struct host_registration *out)
{
	if (!(state & HOST_USERS) || state & HOST_ENDED)
		return false;
	host_slot_read(slot, out);
	return host_state_is_used(state, out->number) &&
	       cache_range_contains(out->base, out->size, address, size) &&
	       host_registration_is_valid(out);
}

/* Makes the caller a user.  The state changes if the slot gets another registration meanwhile. */
static bool host_slot_hold(struct host_slot *slot, uintptr_t address, size_t size,
			   struct host_registration *out)
{
	uint64_t state = atomic_load(&slot->state);

	do
		if (!host_slot_matches(slot, state, address, size, out) ||
		    (state & HOST_USERS) == HOST_USERS)
			return false;
	while (!atomic_compare_exchange_weak(&slot->state, &state, state + 1));
	atomic_fetch_add_explicit(&slot->hits, 1, memory_order_relaxed);
	return true;
}

/* The same without a user. */
static bool host_slot_look(struct host_slot *slot, uintptr_t address, size_t size,
			   struct host_registration *out)
{
	return host_slot_matches(slot, atomic_load(&slot->state), address, size, out) &&
	       host_registration_is_current(out);
}

typedef bool (*host_slot_fn)(struct host_slot *slot, uintptr_t address, size_t size,
			     struct host_registration *out);

static void host_slot_unlist(struct host_slot *slot) REQUIRES(host_registration_lock)
{
	struct host_registration r;

	if (!slot->listed)
		return;
	host_slot_read(slot, &r);
	cache_table_remove(&host_table, slot, r.base, r.size);
	slot->listed = false;
}

/* Takes out what is in the way: registrations whose pages changed, and those of a parent process. */
static bool host_registration_find_locked(host_slot_fn use, uintptr_t address, size_t size,
					  struct host_registration *out)
{
	struct host_slot *slot;

	lock_acquire(&host_registration_lock);
	while ((slot = cache_table_find(&host_table, address, size)) &&
	       !use(slot, address, size, out))
		host_slot_unlist(slot);
	lock_release(&host_registration_lock);
	return slot;
}

static inline bool host_registration_find_by(host_slot_fn use, uintptr_t address, size_t size,
					     struct host_registration *out)
{
	struct host_slot *slot;

	if (!size || !host_registration_exists())
		return false;
	slot = cache_table_peek(&host_table, address, size);
	return (slot && use(slot, address, size, out)) ||
	       host_registration_find_locked(use, address, size, out);
}

bool host_registration_find(uintptr_t address, size_t size, struct host_registration *out)
{
	return host_registration_find_by(host_slot_hold, address, size, out);
}

bool host_registration_look(uintptr_t address, size_t size, struct host_registration *out)
{
	return host_registration_find_by(host_slot_look, address, size, out);
}

static int host_registration_refuse(const struct maps_mapping *m)
{
	char *name = maps_name(m->start);
	int ret = log_errno(EOPNOTSUPP,
			    "host memory at %#zx is a mapping of %s, which no device pins",
			    (size_t)m->start, name && name[0] ? name : "unknown memory");

	free(name);
	return ret;
}

/* By a system call that reads a set of signals, and does nothing with the set. */
static bool host_word_is_readable(uintptr_t at)
{
	return !syscall(SYS_rt_sigprocmask, -1, at, NULL, sizeof(uint64_t)) || errno != EFAULT;
}

/* The last page tells of all before.  The look gives a page that nobody has touched its memory. */
static int host_registration_check_file(const struct maps_mapping *m, uintptr_t end,
					enum import_kind kind)
{
	const bool is_huge = kind == IMPORT_HUGE || kind == IMPORT_HUGE_SHARED;
	char *name;

	if (!maps_has_file(m) || host_word_is_readable(end - sizeof(uint64_t)))
		return 0;
	name = maps_name(m->start);
	log_error("host memory up to %#zx is a mapping of %s, and cannot be read: the file ends "
		  "before%s",
		  (size_t)end, name && name[0] ? name : "a file",
		  is_huge ? ", or no huge page is left" : "");
	free(name);
	return -EFAULT;
}

static int host_registration_check_mapping(const struct maps_mapping *m, void *registration)
{
	const struct host_registration *r = registration;
	const uintptr_t end = r->base + r->size;
	enum import_kind kind;

	if (!(m->access & IMPORT_WRITE))
		return log_errno(EACCES, "host memory at %#zx is mapped without write access",
				 (size_t)m->start);
	kind = maps_kind(m);
	if (!(1u << kind & (PINNABLE_MEMORY | PINNABLE_COPIES)))
		return host_registration_refuse(m);
	return host_registration_check_file(m, m->end < end ? m->end : end, kind);
}

/* A range beyond the address space is not mapped either. */
static int host_registration_check(struct host_registration *r)
{
	int ret = maps_for_each((void *)r->base, r->size, host_registration_check_mapping, r);

	return ret == -ERANGE ? -EFAULT : ret;
}

/* The cache keeps the dma-buf for registrations to come, as long as there is room. */
static int host_registration_export(struct host_registration *r, struct cache_ref *ref)
{
	const struct export_request request = { .address = r->base, .size = r->size };
	int ret;

	r->fd = -1;
	if (!gdmabuf_is_available())
		return 0;
	ret = registration_get(REGISTRATION_OF_HOST, &request, ref);
	if (ret)
		return ret;
	r->base = ref->pin->base;
	r->size = ref->pin->size;
	r->fd = ref->pin->fd;
	r->status = ref->pin->status;
	r->valid = ref->pin->valid;
	return 0;
}

static int host_table_prepare(const struct host_registration *r) REQUIRES(host_registration_lock)
{
	int ret = host_registration_exists() ? 0 : cache_table_create(&host_table);

	if (ret)
		return ret;
	atomic_store_explicit(&host_table_exists, true, memory_order_release);
	return cache_table_reserve(&host_table, r->base, r->size);
}

static struct host_slot *host_slot_take(void) REQUIRES(host_registration_lock)
{
	struct host_slot *slot = host_slots_free;

	if (slot) {
		host_slots_free = slot->next;
		return slot;
	}
	slot = aligned_alloc(alignof(struct host_slot), sizeof(*slot));
	if (!slot)
		return NULL;
	*slot = (struct host_slot){ .older = host_slots };
	host_slots = slot;
	return slot;
}

static int host_slot_fill(struct host_registration *r, const struct cache_ref *ref)
	REQUIRES(host_registration_lock)
{
	int ret = host_table_prepare(r);

	if (ret)
		return ret;
	r->slot = host_slot_take();
	if (!r->slot)
		return -ENOMEM;
	host_slot_write(r->slot, r);
	r->slot->ref = *ref;
	r->slot->listed = true;
	atomic_store(&r->slot->state, host_state_of(r->number) + 1);
	cache_table_add(&host_table, r->slot, r->base, r->size);
	return 0;
}

/* The cache counts the registrations that are no promises. */
static int host_registration_publish(struct host_registration *r, const struct cache_ref *ref)
{
	int ret;

	r->number = registration_next_number();
	r->process = fork_generation();
	lock_acquire(&host_registration_lock);
	host_misses += !ref->pin;
	ret = host_slot_fill(r, ref);
	lock_release(&host_registration_lock);
	return ret;
}

int host_registration_make(uintptr_t address, size_t size, struct host_registration *out)
{
	uintptr_t mask = (uintptr_t)sysconf(_SC_PAGESIZE) - 1, base = address & ~mask;
	struct host_registration made = { .base = base,
					  .size = ((address + size - 1) | mask) - base + 1 };
	struct cache_ref ref = { 0 };
	int ret = host_registration_check(&made);

	if (!ret)
		ret = host_registration_export(&made, &ref);
	if (ret)
		return ret;
	ret = host_registration_publish(&made, &ref);
	if (!ret) {
		*out = made;
		return 0;
	}
	if (ref.pin)
		registration_put(&ref);
	return log_errno(-ret, "no memory for a registration");
}

static void host_registration_end(const struct host_registration *r, struct cache_ref *ref)
{
	THREAD_NO_CANCEL();

	host_registration_tell(r->base, r->size);
	if (ref->pin)
		registration_put(ref);
}

/*
 * The slot is the caller's until the slot is in the list.  A child leaves a slot of the parent
 * process alone.
 */
static void host_slot_end(struct host_slot *slot)
{
	struct cache_ref ref = slot->ref;
	struct host_registration r;

	host_slot_read(slot, &r);
	if (r.process != fork_generation())
		return;
	lock_acquire(&host_registration_lock);
	host_slot_unlist(slot);
	slot->next = host_slots_free;
	host_slots_free = slot;
	lock_release(&host_registration_lock);
	host_registration_end(&r, &ref);
}

void host_registration_put(struct host_slot *slot, uint64_t number)
{
	uint64_t state = atomic_load(&slot->state);

	do
		if (!host_state_is_used(state, number))
			return;
	while (!atomic_compare_exchange_weak(&slot->state, &state, state - 1));
	if ((state & HOST_USERS) == 1)
		host_slot_end(slot);
}

void host_registration_invalidate(uintptr_t address, size_t size)
{
	struct host_registration r;

	if (!size || !host_registration_exists())
		return;
	lock_acquire(&host_registration_lock);
	for (struct host_slot *slot = host_slots; slot; slot = slot->older) {
		if (!slot->listed)
			continue;
		host_slot_read(slot, &r);
		if (!cache_range_touches(r.base, r.size, address, size))
			continue;
		atomic_fetch_or(&slot->state, HOST_ENDED);
		host_slot_unlist(slot);
	}
	lock_release(&host_registration_lock);
	host_registration_tell(address, size);
}

void host_registration_add_stats(struct cache_stats *sum)
{
	lock_acquire(&host_registration_lock);
	for (struct host_slot *slot = host_slots; slot; slot = slot->older)
		sum->hits += atomic_load_explicit(&slot->hits, memory_order_relaxed);
	sum->misses += host_misses;
	lock_release(&host_registration_lock);
}
