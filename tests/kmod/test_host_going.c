/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits and pins that go: exports do not find them any more, and a work item has yet to end them.
 * The module gdmabuf_delay, if loaded, delays the ends.
 */
#include "host_fixture.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

/* Keeps a pin for each page, as many as the limit allows. */
static void going_keep(int ctx, unsigned char *p)
{
	for (size_t at = 0; at < LENGTH; at += PAGE) {
		struct gdm_export e;

		if (gdm_export_host(ctx, p + at, PAGE, GDMABUF_KEEP, &e))
			_exit(97);
		close(e.fd);
	}
}

static void going_unmap(void *arg)
{
	int ctx = gdm_open();

	(void)arg;
	become_user(LENGTH);
	for (int i = 0; i < 4; i++) {
		unsigned char *p = pages_new(LENGTH, 1);

		going_keep(ctx, p);
		munmap(p, LENGTH);
	}
	if (gdm_stats(ctx).out_evictions || gdm_stats(ctx).out_retries)
		_exit(1);
}

TEST(host_going_unmapped, "Kept pins of unmapped memory do not count against RLIMIT_MEMLOCK.")
{
	EXPECT_EQ(in_child(going_unmap, NULL), 0);
}

static void going_exit(void *arg)
{
	int ctx = gdm_open();

	(void)arg;
	become_user(LENGTH);
	going_keep(ctx, pages_new(LENGTH, 1));
	if (gdm_stats(ctx).out_evictions || gdm_stats(ctx).out_retries)
		_exit(1);
}

TEST(host_going_exited, "Pins of a process that has ended do not count against RLIMIT_MEMLOCK.")
{
	for (int i = 0; i < 4; i++)
		EXPECT_EQ(in_child(going_exit, NULL), 0);
}

/* The reclaiming process must be root, so pins of root are limited here. */
static void going_reclaim(void *arg)
{
	int ctx = gdm_open(), reclaim = open("/proc/sys/vm/drop_caches", O_WRONLY | O_CLOEXEC);
	unsigned char *p = pages_new(2 * LENGTH, 1);
	struct rlimit limit = { LENGTH, LENGTH };

	(void)arg;
	if (setrlimit(RLIMIT_MEMLOCK, &limit))
		_exit(99);
	raise_ipc_lock(0);
	going_keep(ctx, p);
	if (write(reclaim, "2", 1) != 1)
		_exit(2);
	if (gdm_export_host(ctx, p + LENGTH, LENGTH, 0, NULL))
		_exit(3);
}

TEST(host_going_reclaimed,
     "Pins that the kernel has reclaimed do not count against RLIMIT_MEMLOCK.")
{
	EXPECT_EQ(in_child(going_reclaim, NULL), 0);
}
