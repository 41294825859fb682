/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads unmap memory while other threads map new memory at the address.  TEST_MONITOR_ROUNDS is
 * the number of rounds; the usual number is small.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "harness.h"
#include "monitor_fixture.h"

#define SIZE MONITOR_MIN_SIZE
#define PAIRS 2

static long rounds_wanted(void)
{
	const char *value = getenv("TEST_MONITOR_ROUNDS");

	return value ? strtol(value, NULL, 10) : 2000;
}

/*
 * A pair of threads and an address.  The first thread unmaps; the second thread maps the address as
 * soon as the kernel allows, perhaps before the first thread's call returns.
 */
struct pair {
	char *at;
	atomic_long to_unmap, mapped; /* rounds */
	long rounds, watched, wrong;
};

static void *pair_unmap(void *arg)
{
	struct pair *pair = arg;

	for (long i = 1; i <= pair->rounds; i++) {
		while (atomic_load(&pair->to_unmap) < i)
			sched_yield();
		munmap(pair->at, SIZE);
	}
	return NULL;
}

static bool pair_map(struct pair *pair)
{
	return mmap(pair->at, SIZE, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) != MAP_FAILED;
}

/* A round begins and ends with memory at the address. */
static void pair_run(struct pair *pair)
{
	for (long i = 1; i <= pair->rounds; i++) {
		struct watch watch;
		bool is_watched = !monitor_watch((uintptr_t)pair->at, SIZE, &watch);

		atomic_store(&pair->to_unmap, i);
		while (!pair_map(pair))
			;
		if (!is_watched)
			continue;
		pair->watched++;
		pair->wrong += watch_is_current(&watch);
		watch_put(&watch);
	}
}

static void *pair_main(void *number)
{
	static struct pair pairs[PAIRS];
	struct pair *pair = &pairs[(intptr_t)number];
	pthread_t thread;

	*pair = (struct pair){ .rounds = rounds_wanted() };
	pair->at = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	EXPECT(pair->at != MAP_FAILED);
	EXPECT_EQ(pthread_create(&thread, NULL, pair_unmap, pair), 0);
	pair_run(pair);
	pthread_join(thread, NULL);
	munmap(pair->at, SIZE);
	printf("# %ld rounds, %ld watched, %ld wrong\n", pair->rounds, pair->watched, pair->wrong);
	return pair->wrong || pair->watched < pair->rounds / 2 ? pair : NULL;
}

TEST(unmapped_by_another,
     "If a thread has mapped an address that another thread still unmaps, the watch is stale.")
{
	pthread_t threads[PAIRS];
	void *failed;
	int wrong = 0;

	monitor_fixture_needed();
	for (intptr_t i = 0; i < PAIRS; i++)
		EXPECT_EQ(pthread_create(&threads[i], NULL, pair_main, (void *)i), 0);
	for (int i = 0; i < PAIRS; i++) {
		pthread_join(threads[i], &failed);
		wrong += failed != NULL;
	}
	EXPECT_EQ(wrong, 0);
}
