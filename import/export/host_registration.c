/* SPDX-License-Identifier: Apache-2.0 */
#include "import/export/host_registration.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "import/cache/cache.h"
#include "import/cache/table.h"
#include "import/export/gdmabuf.h"
#include "import/export/registration.h"
#include "import/kinds/maps.h"
#include "import/nvidia/pinnable.h"
#include "util/descriptor.h"
#include "util/fork.h"
#include "util/lock.h"
#include "util/log.h"
#include "util/thread.h"

/* A registration and its users. */
struct host_slot {
	_Atomic uint64_t
		current; /* number of the registration; 0: ended.  Written under the lock */
	/* Under the lock. */
	uint32_t users; /* 0: the slot is free */
	struct host_registration registration;
	struct descriptor_id id; /* of the registration's descriptor */
};

LOCK_DEFINE(host_registration_lock, LOCK_LAST);
static struct host_slot host_slots[HOST_REGISTRATIONS];
static _Atomic uint32_t host_slots_used; /* ever; written under the lock */
static uint64_t host_hits GUARDED_BY(host_registration_lock);
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

bool host_registration_exists(void)
{
	return atomic_load_explicit(&host_slots_used, memory_order_acquire);
}

bool host_registration_is_current(const struct host_registration *r)
{
	return r->process == fork_generation() &&
	       atomic_load(&host_slots[r->slot].current) == r->number &&
	       (!r->status || atomic_load_explicit(r->status, memory_order_acquire) == r->valid);
}

static bool host_slot_is_used(const struct host_slot *slot) REQUIRES(host_registration_lock)
{
	return slot->users && slot->registration.process == fork_generation();
}

static struct host_slot *host_slot_find(uintptr_t address, size_t size)
	REQUIRES(host_registration_lock)
{
	for (uint32_t i = 0; i < atomic_load(&host_slots_used); i++) {
		struct host_slot *slot = &host_slots[i];
		const struct host_registration *r = &slot->registration;

		if (slot->users && cache_range_contains(r->base, r->size, address, size) &&
		    host_registration_is_current(r))
			return slot;
	}
	return NULL;
}

/* The slots of a parent process are free: a child has no registrations. */
static struct host_slot *host_slot_take(void) REQUIRES(host_registration_lock)
{
	uint32_t used = atomic_load(&host_slots_used);

	for (uint32_t i = 0; i < used; i++)
		if (!host_slot_is_used(&host_slots[i]))
			return &host_slots[i];
	if (used == HOST_REGISTRATIONS)
		return NULL;
	atomic_store_explicit(&host_slots_used, used + 1, memory_order_release);
	return &host_slots[used];
}

bool host_registration_find(uintptr_t address, size_t size, struct host_registration *out)
{
	struct host_slot *slot;

	if (!size || !host_registration_exists())
		return false;
	lock_acquire(&host_registration_lock);
	slot = host_slot_find(address, size);
	if (slot) {
		slot->users++;
		host_hits++;
		*out = slot->registration;
	}
	lock_release(&host_registration_lock);
	return slot;
}

bool host_registration_look(uintptr_t address, size_t size, struct host_registration *out)
{
	const struct host_slot *slot;

	lock_acquire(&host_registration_lock);
	slot = host_slot_find(address, size);
	if (slot)
		*out = slot->registration;
	lock_release(&host_registration_lock);
	return slot;
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

static int host_registration_check_mapping(const struct maps_mapping *m, void *unused)
{
	(void)unused;
	if (!(m->access & IMPORT_WRITE))
		return log_errno(EACCES, "host memory at %#zx is mapped without write access",
				 (size_t)m->start);
	return 1u << maps_kind(m) & (PINNABLE_MEMORY | PINNABLE_COPIES)
		       ? 0
		       : host_registration_refuse(m);
}

/* A range beyond the address space is not mapped either. */
static int host_registration_check(const struct host_registration *r)
{
	int ret = maps_for_each((void *)r->base, r->size, host_registration_check_mapping, NULL);

	return ret == -ERANGE ? -EFAULT : ret;
}

/* The module keeps the pin for registrations to come, as long as it has the room. */
static int host_registration_export(struct host_registration *r, struct descriptor_id *id)
{
	struct gdmabuf_range made;
	int ret;

	r->fd = -1;
	if (!gdmabuf_is_available())
		return 0;
	ret = gdmabuf_export(GDMABUF_MEMORY_HOST, r->base, r->size, GDMABUF_OPTION_KEEP, &made);
	if (ret)
		return ret;
	ret = descriptor_identify(made.fd, id);
	if (ret) {
		close(made.fd);
		return ret;
	}
	r->fd = made.fd;
	r->status = made.status;
	r->valid = made.generation;
	return 0;
}

static bool host_registration_publish(struct host_registration *r, const struct descriptor_id *id)
{
	struct host_slot *slot;

	r->number = registration_next_number();
	r->process = fork_generation();
	lock_acquire(&host_registration_lock);
	host_misses++;
	slot = host_slot_take();
	if (slot) {
		r->slot = (uint32_t)(slot - host_slots);
		slot->registration = *r;
		slot->id = *id;
		slot->users = 1;
		atomic_store(&slot->current, r->number);
	}
	lock_release(&host_registration_lock);
	return slot;
}

int host_registration_make(uintptr_t address, size_t size, struct host_registration *out)
{
	uintptr_t mask = (uintptr_t)sysconf(_SC_PAGESIZE) - 1, base = address & ~mask;
	struct host_registration made = { .base = base,
					  .size = ((address + size - 1) | mask) - base + 1 };
	struct descriptor_id id = { 0 };
	int ret = host_registration_check(&made);

	if (!ret)
		ret = host_registration_export(&made, &id);
	if (ret)
		return ret;
	if (host_registration_publish(&made, &id)) {
		*out = made;
		return 0;
	}
	if (made.fd >= 0)
		descriptor_close(made.fd, &id);
	return log_errno(ENOSPC, "there are %d registrations of host memory", HOST_REGISTRATIONS);
}

/* Whether the last user has gone, with the slot as it was. */
static bool host_slot_put(uint32_t at, uint64_t number, struct host_slot *last)
	REQUIRES(host_registration_lock)
{
	struct host_slot *slot = &host_slots[at];

	if (!host_slot_is_used(slot) || slot->registration.number != number || --slot->users)
		return false;
	atomic_store(&slot->current, 0);
	last->registration = slot->registration;
	last->id = slot->id;
	return true;
}

static void host_registration_end(const struct host_registration *r, const struct descriptor_id *id)
{
	THREAD_NO_CANCEL();

	host_registration_tell(r->base, r->size);
	if (r->fd >= 0)
		descriptor_close(r->fd, id);
}

void host_registration_put(uint32_t slot, uint64_t number)
{
	struct host_slot last;
	bool is_last;

	lock_acquire(&host_registration_lock);
	is_last = host_slot_put(slot, number, &last);
	lock_release(&host_registration_lock);
	if (is_last)
		host_registration_end(&last.registration, &last.id);
}

static bool host_slot_touches(const struct host_slot *slot, uintptr_t address, size_t size)
	REQUIRES(host_registration_lock)
{
	const struct host_registration *r = &slot->registration;

	return host_slot_is_used(slot) && (r->base - address < size || address - r->base < r->size);
}

void host_registration_invalidate(uintptr_t address, size_t size)
{
	if (!size || !host_registration_exists())
		return;
	lock_acquire(&host_registration_lock);
	for (uint32_t i = 0; i < atomic_load(&host_slots_used); i++)
		if (host_slot_touches(&host_slots[i], address, size))
			atomic_store(&host_slots[i].current, 0);
	lock_release(&host_registration_lock);
	host_registration_tell(address, size);
}

void host_registration_add_stats(struct cache_stats *sum)
{
	lock_acquire(&host_registration_lock);
	sum->hits += host_hits;
	sum->misses += host_misses;
	lock_release(&host_registration_lock);
}
