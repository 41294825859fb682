/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watches of memory that another thread remaps all the time.  The module gdmabuf_delay makes each
 * invalidation hold the watch for long.
 */
#include "gdm.h"
#include "harness.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <unistd.h>

enum { ROUNDS = 1000 };

static atomic_bool again_stop;

static void *again_remap(void *arg)
{
	while (!atomic_load(&again_stop))
		madvise(arg, PAGE, MADV_DONTNEED);
	return NULL;
}

TEST(again_watch, "A watch ends only after the last invalidation of the watch.")
{
	unsigned char *p = pages_new(PAGE, 1);
	int ctx = gdm_open(), stale = 0;
	const volatile uint32_t *status = gdm_status(ctx);
	pthread_t thread;

	atomic_store(&again_stop, false);
	EXPECT_EQ(pthread_create(&thread, NULL, again_remap, p), 0);
	for (int i = 0; i < ROUNDS; i++) {
		struct gdm_watch watch;

		EXPECT_EQ(gdm_watch_host(ctx, p, PAGE, &watch), 0);
		for (int wait = i % 64; wait && gdm_is_current(status, &watch); wait--)
			sched_yield();
		stale += !gdm_is_current(status, &watch);
		EXPECT_EQ(gdm_unwatch(ctx, &watch), 0);
	}
	atomic_store(&again_stop, true);
	pthread_join(thread, NULL);
	close(ctx);
	munmap(p, PAGE);
	if (!stale)
		test_skip("no watch met an invalidation");
}
