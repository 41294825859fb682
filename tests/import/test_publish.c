/* SPDX-License-Identifier: Apache-2.0 */
/* Simultaneous publishers: util/publish.h. */
#include "harness.h"

#include <pthread.h>

#include "util/publish.h"

#define THREADS 4
#define KEYS 2000

struct numbered {
	struct published published; /* first */
	int number;
};

static struct publish_list list;
static void *_Atomic places[KEYS];
static pthread_barrier_t barrier;
static struct numbered made[THREADS][KEYS], *won[THREADS][KEYS];

static bool number_is(const void *object, const void *number)
{
	return ((const struct numbered *)object)->number == *(const int *)number;
}

static void *publish_numbers(void *thread)
{
	const size_t t = (size_t)thread;

	pthread_barrier_wait(&barrier);
	for (int i = 0; i < KEYS; i++)
		won[t][i] = publish_add(&list, &made[t][i], number_is, &i);
	return NULL;
}

static void *publish_places(void *thread)
{
	const size_t t = (size_t)thread;

	pthread_barrier_wait(&barrier);
	for (int i = 0; i < KEYS; i++)
		won[t][i] = publish_first(&places[i], &made[t][i]);
	return NULL;
}

static void publish_in_threads(void *(*run)(void *thread))
{
	pthread_t threads[THREADS];

	atomic_store(&list.head, NULL);
	for (int i = 0; i < KEYS; i++) {
		atomic_store(&places[i], NULL);
		for (size_t t = 0; t < THREADS; t++)
			made[t][i].number = i;
	}
	EXPECT_EQ(pthread_barrier_init(&barrier, NULL, THREADS), 0);
	for (size_t t = 0; t < THREADS; t++)
		EXPECT_EQ(pthread_create(&threads[t], NULL, run, (void *)t), 0);
	for (size_t t = 0; t < THREADS; t++)
		EXPECT_EQ(pthread_join(threads[t], NULL), 0);
	pthread_barrier_destroy(&barrier);
}

static void expect_one_winner(int key)
{
	int winners = 0;

	for (size_t t = 0; t < THREADS; t++) {
		EXPECT(won[t][key] == won[0][key]);
		winners += won[0][key] == &made[t][key];
	}
	EXPECT_EQ(winners, 1);
}

TEST(place, "Threads that publish a pointer in the same place get the pointer of a single thread.")
{
	publish_in_threads(publish_places);
	for (int i = 0; i < KEYS; i++)
		expect_one_winner(i);
}

TEST(list, "Threads that publish objects with the same key get the object of a single thread.")
{
	publish_in_threads(publish_numbers);
	for (int i = 0; i < KEYS; i++)
		expect_one_winner(i);
}

TEST(list_whole, "A list has each published object once.")
{
	int count = 0;

	publish_in_threads(publish_numbers);
	for (int i = 0; i < KEYS; i++)
		EXPECT(publish_find(&list, number_is, &i) == won[0][i]);
	for (const void *object = publish_list_head(&list); object; object = publish_next(object))
		count++;
	EXPECT_EQ(count, KEYS);
}

TEST(list_lacks, "A key that no thread has published finds no object.")
{
	const int unknown = KEYS;

	publish_in_threads(publish_numbers);
	EXPECT(!publish_find(&list, number_is, &unknown));
}
