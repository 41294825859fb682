/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exports and watches of memory that another thread remaps all the time.  The module gdmabuf_delay makes each
 * invalidation hold the pin for long.
 */
#include "../harness.h"
#include "gdm.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <unistd.h>

enum { EXPORTS = 5000, ENOUGH = 10, WATCHES = 1000 };

static atomic_bool again_stop;

struct range {
	unsigned char *p;
	size_t length;
};

/* Replaces the last page, again and again. */
static void *again_remap(void *arg)
{
	const struct range *r = arg;

	while (!atomic_load(&again_stop))
		madvise(r->p + r->length - PAGE, PAGE, MADV_DONTNEED);
	return NULL;
}

static void again_export(size_t pages)
{
	struct range r = { pages_new(pages * PAGE, 1), pages * PAGE };
	int ctx = gdm_open(), given_up = 0;
	pthread_t thread;

	atomic_store(&again_stop, false);
	EXPECT_EQ(gdm_export_host(ctx, r.p, r.length, 0, NULL), 0);
	EXPECT_EQ(pthread_create(&thread, NULL, again_remap, &r), 0);
	for (int i = 0; i < EXPORTS && given_up < ENOUGH; i++) {
		int err = gdm_export_host(ctx, r.p, r.length, 0, NULL);

		given_up += err == -EAGAIN;
		EXPECT(!err || err == -EAGAIN);
	}
	atomic_store(&again_stop, true);
	pthread_join(thread, NULL);
	EVENTUALLY(gdm_stats(ctx).out_host_pins == 0);
	close(ctx);
	munmap(r.p, r.length);
	if (!given_up)
		test_skip("no export met an invalidation");
}

TEST(again_watch, "A watch ends only after the last invalidation of the watch.")
{
	struct range r = { pages_new(PAGE, 1), PAGE };
	int ctx = gdm_open(), stale = 0;
	const volatile uint32_t *status = gdm_status(ctx);
	pthread_t thread;

	atomic_store(&again_stop, false);
	EXPECT_EQ(pthread_create(&thread, NULL, again_remap, &r), 0);
	for (int i = 0; i < WATCHES; i++) {
		struct gdm_export watch;

		EXPECT_EQ(gdm_watch_host(ctx, r.p, PAGE, &watch), 0);
		for (int wait = i % 64; wait && gdm_is_valid(status, &watch); wait--)
			sched_yield();
		stale += !gdm_is_valid(status, &watch);
		EXPECT_EQ(gdm_drop(ctx, &watch), 0);
	}
	atomic_store(&again_stop, true);
	pthread_join(thread, NULL);
	EXPECT_EQ(gdm_stats(ctx).out_host_watches, 0);
	close(ctx);
	munmap(r.p, PAGE);
	if (!stale)
		test_skip("no watch met an invalidation");
}

TEST(again_page,
     "An export that gives up frees its pin only after the last invalidation of the pin.")
{
	again_export(1);
}

TEST(again_pages,
     "An export of many pages that gives up frees its pin only after the last invalidation of "
     "the pin.")
{
	again_export(256);
}
