/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slots for objects.  A freed slot stays readable, and is reused after all other free slots, so
 * that the stub notices a use after free.  With STUB_ADDRESS_REUSE the last freed slot is reused
 * first.
 */
#include "internal.h"

#include <time.h>

#define SLOT_SIZE 512
#define NUM_SLOTS 16384

union slot {
	struct object object;
	unsigned char bytes[SLOT_SIZE];
};

static union slot slots[NUM_SLOTS];
static struct object dead = { .dispatch = &stub_dispatch }; /* loaders read the table */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
FORK_SAFE(lock, 102);
static unsigned fresh;			 /* the first slot never used; under lock */
static unsigned freed[NUM_SLOTS];	 /* a ring of slot numbers; under lock */
static unsigned freed_head, freed_count; /* under lock */
static atomic_long live[STUB_NUM_KINDS];

_Static_assert(sizeof(struct mem) <= SLOT_SIZE, "a memory object fits into a slot");
_Static_assert(sizeof(struct queue) <= SLOT_SIZE, "a queue fits into a slot");

static union slot *slot_get(void)
{
	if (freed_count && stub_get(STUB_ADDRESS_REUSE)) {
		freed_count--;
		return &slots[freed[(freed_head + freed_count) % NUM_SLOTS]];
	}
	if (fresh < NUM_SLOTS)
		return &slots[fresh++];
	if (!freed_count)
		abort(); /* 16384 objects alive: a test has run away */
	freed_count--;
	freed_head = (freed_head + 1) % NUM_SLOTS;
	return &slots[freed[(freed_head + NUM_SLOTS - 1) % NUM_SLOTS]];
}

void *object_create(enum stub_kind kind)
{
	union slot *slot;

	pthread_mutex_lock(&lock);
	slot = slot_get();
	pthread_mutex_unlock(&lock);
	memset(slot->bytes + sizeof(struct object), 0, SLOT_SIZE - sizeof(struct object));
	slot->object.dispatch = stub_get(STUB_CL12) ? &stub_dispatch_12 : &stub_dispatch;
	atomic_store(&slot->object.refs, 1);
	atomic_store(&slot->object.kind, kind);
	atomic_fetch_add(&live[kind], 1);
	return slot;
}

void *object_get(const void *handle, enum stub_kind kind)
{
	uintptr_t offset = (uintptr_t)handle - (uintptr_t)slots;
	union slot *slot;

	if (handle == &dead)
		stub_trace("dead handle");
	if (offset >= sizeof(slots) || offset % SLOT_SIZE)
		return NULL;
	slot = &slots[offset / SLOT_SIZE];
	return atomic_load(&slot->object.kind) == kind ? slot : NULL;
}

void *stub_dead_handle(void)
{
	return &dead;
}

void *creation_failed(cl_int *errcode_ret, cl_int err)
{
	const bool no_handle = err == STUB_NO_HANDLE;

	if (errcode_ret)
		*errcode_ret = no_handle ? CL_SUCCESS : err;
	return stub_get(STUB_FAILED_HANDLE) && !no_handle ? &dead : NULL;
}

void object_retain(void *object)
{
	atomic_fetch_add(&((struct object *)object)->refs, 1);
}

bool object_release(void *object)
{
	return atomic_fetch_sub(&((struct object *)object)->refs, 1) == 1;
}

void object_destroy(void *object)
{
	union slot *slot = object;

	atomic_fetch_sub(&live[atomic_exchange(&slot->object.kind, STUB_FREE)], 1);
	pthread_mutex_lock(&lock);
	freed[(freed_head + freed_count++) % NUM_SLOTS] = (unsigned)(slot - slots);
	pthread_mutex_unlock(&lock);
}

long stub_live(enum stub_kind kind)
{
	queues_settle();
	return atomic_load(&live[kind]);
}

long stub_live_all(void)
{
	long count = 0;

	for (int kind = STUB_CONTEXT; kind < STUB_NUM_KINDS; kind++)
		count += stub_live(kind);
	return count;
}

int stub_live_settles(long count)
{
	for (int i = 0; i < 10000; i++) { /* a limit on a hang */
		if (stub_live_all() <= count)
			return 1;
		sleep_ms(1);
	}
	return 0;
}

int stub_is_live(const void *handle, enum stub_kind kind)
{
	queues_settle();
	return object_get(handle, kind) != NULL;
}

void sleep_ms(long ms)
{
	struct timespec t = { ms / 1000, ms % 1000 * 1000000 };

	if (ms > 0)
		nanosleep(&t, NULL); /* time: a slow driver, for no check */
}
