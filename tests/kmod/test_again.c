/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exports of memory that another thread remaps all the time.  The module gdmabuf_delay makes each
 * invalidation hold the pin for long.
 */
#include "../harness.h"
#include "gdm.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <unistd.h>

enum { EXPORTS = 5000, ENOUGH = 10 };

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
