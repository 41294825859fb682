/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watches of memory that another thread remaps all the time.  The module gdmabuf_delay makes a step of
 * each invalidation long: the removal of a watch (interval_tree_remove) for again_watch, that of the
 * pages (unmap_page_range) for again_begin.
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

static atomic_int again_wanted, again_done;

/* Takes the page away once for each wish. */
static void *again_remap_once(void *arg)
{
	while (!atomic_load(&again_stop))
		if (atomic_load(&again_wanted) > atomic_load(&again_done)) {
			madvise(arg, PAGE, MADV_DONTNEED);
			atomic_fetch_add(&again_done, 1);
		}
	return NULL;
}

/* Watches and exports while the page goes.  Whether the dma-buf then has the address's page. */
static int again_export(int ctx, unsigned char *p, int round, struct gdm_watch *watch)
{
	const volatile unsigned char *view;
	int fd, is_of;

	*(volatile unsigned char *)p = 0;
	atomic_fetch_add(&again_wanted, 1);
	for (int wait = round % 16; wait; wait--)
		sched_yield();
	EXPECT_EQ(gdm_watch_host(ctx, p, PAGE, watch), 0);
	EXPECT_EQ(gdm_export_host(ctx, p, PAGE, 0, &fd), 0);
	view = dmabuf_map(fd, PAGE, PROT_READ);
	while (atomic_load(&again_done) < atomic_load(&again_wanted))
		sched_yield();
	*(volatile unsigned char *)p = 1;
	is_of = *view == 1;
	munmap((void *)(uintptr_t)view, PAGE);
	close(fd);
	return is_of;
}

TEST(again_begin,
     "A watch that begins while the page goes is stale, unless the export got the next page.")
{
	unsigned char *p = pages_new(PAGE, 1);
	int ctx = gdm_open(), gone = 0;
	const volatile uint32_t *status = gdm_status(ctx);
	pthread_t thread;

	atomic_store(&again_stop, false);
	EXPECT_EQ(pthread_create(&thread, NULL, again_remap_once, p), 0);
	for (int i = 0; i < ROUNDS; i++) {
		struct gdm_watch watch;

		if (!again_export(ctx, p, i, &watch)) {
			gone++;
			EXPECT(!gdm_is_current(status, &watch));
		}
		EXPECT_EQ(gdm_unwatch(ctx, &watch), 0);
	}
	atomic_store(&again_stop, true);
	pthread_join(thread, NULL);
	printf("# %d of %d exports got a page that went\n", gone, ROUNDS);
	close(ctx);
	munmap(p, PAGE);
	if (!gone)
		test_skip("no export met an invalidation");
}
