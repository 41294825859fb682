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
#include <sys/syscall.h>
#include <unistd.h>

#include "harness.h"
#include "monitor_fixture.h"

#define SIZE MONITOR_MIN_SIZE
#define PAIRS 2

static long rounds_wanted(void)
{
	const char *value = getenv("TEST_MONITOR_ROUNDS");

	return value ? strtol(value, NULL, 10) : 500;
}

/*
 * A pair of threads and an address.  The first thread unmaps; the second thread maps the address as
 * soon as the kernel allows, perhaps before the first thread's call returns.
 */
struct pair {
	char *at;
	atomic_long to_unmap, unmapped; /* rounds */
	long rounds, watched, wrong;
};

static void *pair_unmap(void *arg)
{
	struct pair *pair = arg;

	for (long i = 1; i <= pair->rounds; i++) {
		while (atomic_load(&pair->to_unmap) < i)
			sched_yield();
		munmap(pair->at, SIZE);
		atomic_store(&pair->unmapped, i);
	}
	return NULL;
}

static void pair_place(struct pair *pair)
{
	pair->at = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	EXPECT(pair->at != MAP_FAILED);
	monitor_fixture_wait(pair->at, SIZE);
}

static bool pair_map(struct pair *pair)
{
	return mmap(pair->at, SIZE, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) != MAP_FAILED;
}

/* False: another thread of the process, as of the sanitizer, has got the address meanwhile. */
static bool pair_map_again(struct pair *pair, long round)
{
	bool is_unmapped = false;

	while (!pair_map(pair)) {
		if (is_unmapped)
			return false;
		is_unmapped = atomic_load(&pair->unmapped) >= round;
	}
	return true;
}

/* A round begins and ends with memory at the address. */
static void pair_run(struct pair *pair)
{
	for (long i = 1; i <= pair->rounds; i++) {
		struct watch watch;
		bool is_watched = !monitor_watch((uintptr_t)pair->at, SIZE, &watch);

		atomic_store(&pair->to_unmap, i);
		if (!pair_map_again(pair, i))
			pair_place(pair);
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
	pair_place(pair);
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

/*
 * Pages of an area that a few threads change at random, and other threads watch.  A watcher writes
 * a stamp of its own into each page of its watch.  If a stamp is missing, the page has changed: a
 * watch that is asked later and is current is wrong.
 */
#define AREA_PAGES 128
#define AREA_SIZE ((size_t)AREA_PAGES * PAGE)
#define AREA_WATCHERS 3
#define AREA_CHANGERS 2

static struct {
	char *area;
	_Atomic uint64_t last; /* stamp */
	atomic_int watching;
	atomic_long asked, current, stale, wrong;
} storm;

/* Marsaglia's xorshift. */
static uint32_t storm_random(uint32_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 17;
	*state ^= *state << 5;
	return *state;
}

/* System calls as such: the thread sanitizer takes mmap() for a write of the pages. */
static char *storm_map(char *p, size_t size, int flags)
{
	return (char *)syscall(SYS_mmap, p, size, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
}

static void storm_map_over(char *p, size_t size)
{
	storm_map(p, size, MAP_FIXED);
}

static void storm_move(char *p, size_t size)
{
	char *to =
		(char *)syscall(SYS_mremap, p, size, size, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, NULL);

	if (to != MAP_FAILED)
		syscall(SYS_munmap, to, size);
}

static void storm_move_onto(char *p, size_t size)
{
	syscall(SYS_mremap, storm_map(NULL, size, 0), size, size, MREMAP_MAYMOVE | MREMAP_FIXED, p);
}

static void *storm_change(void *arg)
{
	static void (*const ways[])(char *, size_t) = { storm_map_over, storm_move,
							storm_move_onto };
	uint32_t random = (uint32_t)(uintptr_t)arg + 1;

	while (atomic_load(&storm.watching)) {
		uint32_t first = storm_random(&random) % AREA_PAGES,
			 count = 1 + storm_random(&random) % 8;

		if (first + count <= AREA_PAGES)
			ways[storm_random(&random) % 3](storm.area + (size_t)first * PAGE,
							(size_t)count * PAGE);
	}
	return NULL;
}

static _Atomic uint64_t *storm_stamp(uint32_t page, uint32_t watcher)
{
	return (_Atomic uint64_t *)(storm.area + (size_t)page * PAGE) + watcher;
}

/* False: the watch is stale. */
static bool storm_ask(const struct watch *watch, uint32_t page, uint32_t watcher, uint64_t stamp)
{
	bool is_same = atomic_load(storm_stamp(page, watcher)) == stamp,
	     is_current = watch_is_current(watch);

	atomic_fetch_add(&storm.asked, 1);
	atomic_fetch_add(is_current ? &storm.current : &storm.stale, 1);
	atomic_fetch_add(&storm.wrong, is_current && !is_same);
	return is_current;
}

static void storm_watch_once(uint32_t watcher, uint32_t *random)
{
	uint32_t count = MONITOR_MIN_SIZE / PAGE + storm_random(random) % 16,
		 first = storm_random(random) % (AREA_PAGES - count);
	uint64_t stamp = atomic_fetch_add(&storm.last, 1) + 1;
	struct watch watch;

	if (monitor_watch((uintptr_t)storm.area + (uintptr_t)first * PAGE, (size_t)count * PAGE,
			  &watch))
		return;
	for (uint32_t i = 0; i < count; i++)
		atomic_store(storm_stamp(first + i, watcher), stamp);
	for (int i = 0; i < 100; i++)
		if (!storm_ask(&watch, first + storm_random(random) % count, watcher, stamp))
			break;
	watch_put(&watch);
}

static void *storm_watch(void *arg)
{
	uint32_t watcher = (uint32_t)(uintptr_t)arg, random = 77 + watcher;

	for (long i = rounds_wanted(); i > 0; i--)
		storm_watch_once(watcher, &random);
	atomic_fetch_sub(&storm.watching, 1);
	return NULL;
}

TEST(storm, "No watch is current after a page of the range changed, in a storm of changes.")
{
	pthread_t watchers[AREA_WATCHERS], changers[AREA_CHANGERS];

	monitor_fixture_needed();
	storm.area = monitor_fixture_map(AREA_SIZE);
	monitor_fixture_wait(storm.area, AREA_SIZE);
	atomic_store(&storm.watching, AREA_WATCHERS);
	for (uintptr_t i = 0; i < AREA_CHANGERS; i++)
		EXPECT_EQ(pthread_create(&changers[i], NULL, storm_change, (void *)i), 0);
	for (uintptr_t i = 0; i < AREA_WATCHERS; i++)
		EXPECT_EQ(pthread_create(&watchers[i], NULL, storm_watch, (void *)i), 0);
	for (int i = 0; i < AREA_WATCHERS; i++)
		pthread_join(watchers[i], NULL);
	for (int i = 0; i < AREA_CHANGERS; i++)
		pthread_join(changers[i], NULL);
	printf("# asked %ld, current %ld, stale %ld, wrong %ld\n", storm.asked, storm.current,
	       storm.stale, storm.wrong);
	EXPECT(storm.current && storm.stale);
	EXPECT_EQ(storm.wrong, 0);
	monitor_fixture_unmap(storm.area, AREA_SIZE);
}

/*
 * A thread empties pages while another tries to watch the pages.  Each round has a lower address
 * than all before: memory near a page that was emptied a moment ago is not watched.
 */
struct emptied {
	char *at;
	atomic_bool is_begun, is_over;
};

static void *emptied_main(void *arg)
{
	struct emptied *emptied = arg;

	while (!atomic_load(&emptied->is_begun))
		sched_yield();
	madvise(emptied->at, SIZE, MADV_DONTNEED);
	atomic_store(&emptied->is_over, true);
	return NULL;
}

/* 1: the watch is current, and has a page that is another than the page at its begin. */
static int emptied_watch(struct emptied *emptied)
{
	struct watch watch;
	int wrong;

	if (monitor_watch((uintptr_t)emptied->at, SIZE, &watch))
		return 0;
	emptied->at[PAGE] = 1;
	while (watch_is_current(&watch) && !atomic_load(&emptied->is_over))
		sched_yield();
	wrong = atomic_load(&emptied->is_over) && !emptied->at[PAGE] && watch_is_current(&watch);
	watch_put(&watch);
	return wrong;
}

static int emptied_round(struct emptied *emptied)
{
	struct watch first;
	pthread_t thread;
	int wrong = 0;

	emptied->at[PAGE] = 1;
	EXPECT_EQ(monitor_watch((uintptr_t)emptied->at, SIZE, &first), 0);
	EXPECT_EQ(pthread_create(&thread, NULL, emptied_main, emptied), 0);
	atomic_store(&emptied->is_begun, true);
	while (watch_is_current(&first))
		;
	while (!atomic_load(&emptied->is_over))
		wrong += emptied_watch(emptied);
	pthread_join(thread, NULL);
	watch_put(&first);
	return wrong;
}

TEST(emptied_by_another, "A watch that begins while madvise() empties the range is not current.")
{
	long rounds = rounds_wanted() / 4;
	int wrong = 0;
	char *p;

	monitor_fixture_needed();
	p = mmap(NULL, 2 * SIZE * (size_t)rounds, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	EXPECT(p != MAP_FAILED);
	for (long i = rounds; i-- > 0;) {
		struct emptied emptied = { .at = p + 2 * SIZE * (size_t)i };

		wrong += emptied_round(&emptied);
	}
	EXPECT_EQ(wrong, 0);
	munmap(p, 2 * SIZE * (size_t)rounds);
}
