/* SPDX-License-Identifier: Apache-2.0 */
/* The registration cache and many threads. */
#include "fake_source.h"
#include "harness.h"
#include "process.h"

#include <sys/wait.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)
#define THREADS 8

#ifndef OPERATIONS
#define OPERATIONS 20000
#endif

static struct fake fake;
static struct cache *cache;
static pthread_barrier_t together;
static _Atomic int bad; /* failed checks in other threads */

static void threads_cache_open(enum fake_check check, size_t bytes, uint32_t entries)
{
	cache = fake_cache_open(&fake, check, MIB, bytes, entries);
	atomic_store(&bad, 0);
}

static void threads_cache_close(void)
{
	struct cache_stats stats;

	cache_stats(cache, &stats);
	EXPECT_EQ(stats.bytes_idle, stats.bytes_pinned);
	EXPECT_EQ(stats.bytes_pinned, fake.bytes);
	fake_cache_close(&fake, cache);
	EXPECT_EQ(atomic_load(&bad), 0);
}

static int block_try_get(size_t block, struct cache_ref *ref)
{
	return cache_get(cache, fake_address(&fake, block), MIB, NULL, ref);
}

static void pinners_meet(struct fake *f)
{
	(void)f;
	pthread_barrier_wait(&together);
}

static void *pin_at_once(void *arg)
{
	struct cache_ref ref;

	(void)arg;
	if (block_try_get(0, &ref)) {
		atomic_store(&bad, 1);
		return NULL;
	}
	pthread_barrier_wait(&together);
	atomic_fetch_or(&bad, !fake_is_pinned(ref.pin));
	cache_put(cache, &ref);
	return NULL;
}

TEST(pin_twice,
     "If two threads pin a range at once, the cache keeps a pin and unpins the other pin.")
{
	threads_cache_open(FAKE_STATUS, SIZE_MAX, 0);
	pthread_barrier_init(&together, NULL, 2);
	fake.in_pin = pinners_meet;
	process_run_threads(2, pin_at_once);
	fake.in_pin = NULL;
	EXPECT_EQ(fake.pins, 2);
	EXPECT_EQ(fake.unpins, 1);
	pthread_barrier_destroy(&together);
	threads_cache_close();
}

static struct cache_ref passed;

static void *actor_put_passed(void *arg)
{
	(void)arg;
	cache_put(cache, &passed);
	return NULL;
}

static void *actor_get_passed(void *arg)
{
	(void)arg;
	if (block_try_get(0, &passed))
		atomic_store(&bad, 1);
	return NULL;
}

TEST(put_elsewhere, "Any thread may put a reference, even after the getting thread has exited.")
{
	threads_cache_open(FAKE_NEITHER, SIZE_MAX, 0);
	process_run_threads(1, actor_get_passed);
	cache_invalidate(cache, fake_address(&fake, 0), 1);
	EXPECT_EQ(fake.unpins, 0);
	process_run_threads(1, actor_put_passed);
	EXPECT_EQ(fake.unpins, 1);
	threads_cache_close();
}

/* The work of a thread, which gets, holds and puts random references. */
struct actor {
	unsigned int seed;
	struct cache_ref held[12];
	uint32_t at_least[12]; /* the block's generation at the time of cache_get() */
};

static void actor_get(struct actor *a, int slot, size_t block)
{
	uint32_t generation = atomic_load(&fake.generation[block]);

	if (block_try_get(block, &a->held[slot])) {
		a->held[slot].pin = NULL;
		return;
	}
	/* If the memory was freed before cache_get(), an older pin must not be found. */
	if (fake.check != FAKE_NEITHER && fake_generation(a->held[slot].pin) < generation)
		atomic_store(&bad, 2);
}

static void actor_put(struct actor *a, int slot)
{
	if (!fake_is_pinned(a->held[slot].pin))
		atomic_store(&bad, 3);
	cache_put(cache, &a->held[slot]);
	a->held[slot].pin = NULL;
}

static void actor_act(struct actor *a)
{
	size_t block = (size_t)rand_r(&a->seed) % 24;
	int slot = rand_r(&a->seed) % 12, what = rand_r(&a->seed) % 100;

	if (what < 2)
		cache_invalidate(cache, fake_address(&fake, block), 2 * MIB);
	else if (what < 4)
		fake_free(&fake, block);
	else if (what < 5)
		cache_stats(cache, &(struct cache_stats){ 0 });
	else if (a->held[slot].pin)
		actor_put(a, slot);
	else
		actor_get(a, slot, block);
}

static void *actor_run(void *arg)
{
	struct actor a = { .seed = (unsigned int)(intptr_t)arg + 1 };

	for (int i = 0; i < OPERATIONS; i++)
		actor_act(&a);
	for (int slot = 0; slot < 12; slot++)
		if (a.held[slot].pin)
			actor_put(&a, slot);
	return NULL;
}

static void actors_run(enum fake_check check)
{
	threads_cache_open(check, 8 * MIB, 40);
	fake.capacity = 60 * MIB;
	process_run_threads(THREADS, actor_run);
	EXPECT_EQ(atomic_load(&bad), 0);
	/* Nobody uses anything: no more than the budget is left. */
	EXPECT(fake.bytes <= 8 * MIB);
	threads_cache_close();
}

TEST(random_status,
     "With a status word, eight threads never use an unpinned pin or find a stale pin.")
{
	actors_run(FAKE_STATUS);
}

TEST(random_is_current,
     "With is_current(), eight threads never use an unpinned pin or find a stale pin.")
{
	actors_run(FAKE_IS_CURRENT);
}

TEST(random_unchecked, "With cache_invalidate() alone, eight threads never use an unpinned pin.")
{
	actors_run(FAKE_NEITHER);
}

static void *use_one(void *arg)
{
	struct cache_ref ref;

	(void)arg;
	for (int i = 0; i < 5 * OPERATIONS; i++) {
		if (block_try_get(0, &ref)) {
			atomic_store(&bad, 4);
			break;
		}
		if (!fake_is_pinned(ref.pin))
			atomic_store(&bad, 5);
		cache_put(cache, &ref);
	}
	return NULL;
}

static void *use_or_invalidate(void *arg)
{
	pthread_barrier_wait(&together);
	if (!arg)
		return use_one(arg);
	for (int i = 0; i < 5 * OPERATIONS; i++)
		cache_invalidate(cache, fake_address(&fake, 0), 1);
	return NULL;
}

TEST(taken_while_found, "A pin that is invalidated during a lookup is either used or missed.")
{
	threads_cache_open(FAKE_NEITHER, SIZE_MAX, 0);
	pthread_barrier_init(&together, NULL, 3);
	process_run_threads(3, use_or_invalidate);
	pthread_barrier_destroy(&together);
	threads_cache_close();
}

static _Atomic int stop;

static void *use_until_stopped(void *arg)
{
	struct actor a = { .seed = (unsigned int)(intptr_t)arg + 1 };

	while (!atomic_load(&stop))
		actor_act(&a);
	for (int slot = 0; slot < 12; slot++)
		if (a.held[slot].pin)
			actor_put(&a, slot);
	return NULL;
}

/* In the child, the fake's lock may be held by a thread of the parent. */
static void actors_use_in_child(void)
{
	struct cache_ref ref;
	int unpins;

	alarm(TEST_HANG_S);
	pthread_mutex_init(&fake.lock, NULL);
	fake.bytes = 0;
	unpins = fake.unpins;
	for (size_t i = 0; i < 24; i++) {
		if (block_try_get(i, &ref) || !fake_is_pinned(ref.pin))
			_exit(1);
		cache_put(cache, &ref);
	}
	cache_invalidate(cache, fake_address(&fake, 0), 24 * MIB);
	_exit(fake.unpins == unpins + 24 && !fake.wrong ? 0 : 2);
}

TEST(fork_in_use, "A child of a busy process holds no lock, and unpins its own pins only.")
{
	pthread_t thread[3];
	int status = 0;

	threads_cache_open(FAKE_STATUS, 8 * MIB, 0);
	atomic_store(&stop, 0);
	for (intptr_t i = 0; i < 3; i++)
		EXPECT_EQ(pthread_create(&thread[i], NULL, use_until_stopped, (void *)i), 0);
	for (int i = 0; i < 30 && !status; i++) {
		pid_t child = fork();

		if (!child)
			actors_use_in_child();
		if (waitpid(child, &status, 0) != child)
			status = -1;
	}
	atomic_store(&stop, 1);
	for (int i = 0; i < 3; i++)
		pthread_join(thread[i], NULL);
	EXPECT_EQ(status, 0);
	threads_cache_close();
}
