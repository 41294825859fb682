/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A look-up of a registration while the slot gets another one.  The copy of
 * import/export/host_registration.c in this program stops between two words of a slot.
 */
#include <stdatomic.h>
#include <stdint.h>

static void slot_point(const volatile void *at);

#ifdef __clang__
#define SLOT_LOAD __c11_atomic_load
#define SLOT_STORE __c11_atomic_store
#else
#define SLOT_LOAD __atomic_load_n
#define SLOT_STORE __atomic_store_n
#endif
#undef atomic_load_explicit
#undef atomic_store_explicit
#define atomic_load_explicit(object, order) (slot_point(object), SLOT_LOAD((object), (order)))
#define atomic_store_explicit(object, value, order) \
	(slot_point(object), SLOT_STORE((object), (value), (order)))
#include "import/export/host_registration.c" /* NOLINT(bugprone-suspicious-include) */

#include <semaphore.h>
#include <sys/mman.h>
#include <unistd.h>

#include "harness.h"

#define NEW_SIZE ((size_t)sysconf(_SC_PAGESIZE)) /* a registration has whole pages */
#define OLD_SIZE (16 * NEW_SIZE)

static sem_t read_begins, new_number_is_there, old_size_is_read, new_is_there;
static _Thread_local enum { NOBODY, READER, WRITER } slot_role;
static struct host_registration old_one, new_one;

static void slot_turn(sem_t *tell, sem_t *wait)
{
	sem_post(tell);
	sem_wait(wait);
}

/* The reader gets the new number, and the old size. */
static void slot_point(const volatile void *at)
{
	const struct host_slot *slot = old_one.slot;

	if (slot_role == READER && at == &slot->word[0])
		slot_turn(&read_begins, &new_number_is_there);
	if (slot_role == WRITER && at == &slot->word[1])
		slot_turn(&new_number_is_there, &old_size_is_read);
	if (slot_role == READER && at == &slot->word[3])
		slot_turn(&old_size_is_read, &new_is_there);
}

static void *slot_replace(void *address)
{
	sem_wait(&read_begins);
	host_registration_put(old_one.slot, old_one.number);
	slot_role = WRITER;
	EXPECT_EQ(host_registration_make((uintptr_t)address, NEW_SIZE, &new_one), 0);
	slot_role = NOBODY;
	sem_post(&new_is_there);
	return NULL;
}

TEST(look, "A look-up finds no mix of two registrations.")
{
	void *address =
		mmap(NULL, OLD_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct host_registration found;
	pthread_t thread;

	alarm(TEST_HANG_S);
	for (size_t i = 0; i < 4; i++)
		sem_init((sem_t *[]){ &read_begins, &new_number_is_there, &old_size_is_read,
				      &new_is_there }[i],
			 0, 0);
	EXPECT_EQ(host_registration_make((uintptr_t)address, OLD_SIZE, &old_one), 0);
	EXPECT_EQ(pthread_create(&thread, NULL, slot_replace, address), 0);
	slot_role = READER;
	EXPECT(!host_registration_look((uintptr_t)address, OLD_SIZE, &found));
	slot_role = NOBODY;
	EXPECT_EQ(pthread_join(thread, NULL), 0);
	EXPECT(new_one.slot == old_one.slot);
	host_registration_put(new_one.slot, new_one.number);
	munmap(address, OLD_SIZE);
	alarm(0);
}
