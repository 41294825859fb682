/* SPDX-License-Identifier: Apache-2.0 */
#include "import/cache/hazard.h"
#include "util/lock.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

_Thread_local struct hazard_record *hazard_own;

static void hazard_disown(struct lock *lock);

LOCK_DEFINE_IN_CHILD(hazard_lock, LOCK_LAST, hazard_disown); /* owners */
static struct hazard_record *_Atomic hazard_records;	     /* grows only */
static pthread_key_t hazard_key; /* releases a record at a thread's exit */
static bool hazard_has_key;	 /* written before the first cache */

static void hazard_release(void *record)
{
	struct hazard_record *r = record;

	hazard_own = NULL;
	lock_acquire(&hazard_lock);
	r->owned = false;
	lock_release(&hazard_lock);
}

static void hazard_init_once(void)
{
	hazard_has_key = !pthread_key_create(&hazard_key, hazard_release);
}

void hazard_init(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, hazard_init_once);
}

struct hazard_record *hazard_first(void)
{
	return atomic_load(&hazard_records);
}

static struct hazard_record *hazard_find_unowned(void) REQUIRES(hazard_lock)
{
	struct hazard_record *record = hazard_first();

	while (record && record->owned)
		record = record->next;
	return record;
}

/* seq_cst: obligation 5. */
static struct hazard_record *hazard_add(void) REQUIRES(hazard_lock)
{
	struct hazard_record *record =
		aligned_alloc(alignof(struct hazard_record), sizeof(*record));

	if (!record)
		return NULL;
	memset(record, 0, sizeof(*record));
	record->next = hazard_first();
	atomic_store(&hazard_records, record);
	return record;
}

static struct hazard_record *hazard_take(void)
{
	struct hazard_record *record;

	lock_acquire(&hazard_lock);
	record = hazard_find_unowned();
	if (!record)
		record = hazard_add();
	if (record)
		record->owned = true;
	lock_release(&hazard_lock);
	return record;
}

/* Without a key, a record would stay a dead thread's. */
struct hazard_record *hazard_claim(void)
{
	struct hazard_record *record = hazard_has_key ? hazard_take() : NULL;

	hazard_own = record;
	if (record && pthread_setspecific(hazard_key, record)) {
		hazard_release(record);
		return NULL;
	}
	return record;
}

/* A child has one thread. */
static void hazard_disown(struct lock *lock)
{
	(void)lock;
	for (struct hazard_record *r = hazard_first(); r; r = r->next)
		r->owned = r == hazard_own;
}
