/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel module gdmabuf as a watcher of host memory, on the fake of the module. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fake_gdmabuf.h"
#include "harness.h"
#include "import/opaque_fd/watcher.h"
#include "process.h"
#include "util/log.h"

#define PAGE ((size_t)4096)
#define SIZE (16 * PAGE)

/* The module is loaded, and the program has not asked for userfaultfd(2). */
static void gdmabuf_begin(void)
{
	unsetenv("CLIMPORT_KEEP_HOST");
	fake_gdmabuf_child();
	fake_gdmabuf.open_error = 0;
}

static unsigned char *gdmabuf_memory(int flags)
{
	void *p = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);

	EXPECT(p != MAP_FAILED);
	return p;
}

static void gdmabuf_told_nothing(uintptr_t address, size_t size)
{
	(void)address, (void)size;
}

static int gdmabuf_try(const void *p, size_t size, struct watcher_watch *watch)
{
	return watcher_watch((uintptr_t)p, size, gdmabuf_told_nothing, watch);
}

static struct watcher_watch gdmabuf_watch(const void *p, size_t size)
{
	struct watcher_watch watch = { 0 };

	EXPECT(watcher_is_possible(size));
	EXPECT_EQ(gdmabuf_try(p, size, &watch), 0);
	EXPECT(watch.by == &watcher_gdmabuf);
	EXPECT(watcher_is_current(&watch));
	return watch;
}

static void gdmabuf_watches_by_default(void)
{
	struct watcher_watch watch;

	gdmabuf_begin();
	watch = gdmabuf_watch(gdmabuf_memory(MAP_SHARED), SIZE);
	EXPECT(watch.status && *watch.status == watch.valid);
	EXPECT_EQ(fake_gdmabuf.watches, 1);
	watcher_put(&watch);
	EXPECT_EQ(fake_gdmabuf.watches, 0);
	EXPECT(!strcmp(watcher_describe(), "the kernel module gdmabuf tells of changes"));
}

TEST(gdmabuf, "If the module is loaded, the module watches memory of any kind without being asked.")
{
	test_in_child(gdmabuf_watches_by_default);
}

static void gdmabuf_becomes_stale(void)
{
	struct watcher_watch watch, next;
	unsigned char *p;

	gdmabuf_begin();
	p = gdmabuf_memory(MAP_PRIVATE);
	watch = gdmabuf_watch(p, SIZE);
	next = gdmabuf_watch(p + PAGE, PAGE);
	fake_gdmabuf_change(p, PAGE);
	EXPECT(!watcher_is_current(&watch));
	EXPECT(watcher_is_current(&next));
	watcher_put(&watch);
	EXPECT(watcher_is_current(&next));
	watch = gdmabuf_watch(p, SIZE);
	EXPECT(watcher_is_current(&watch));
}

TEST(gdmabuf_stale, "A watch by the module is stale when the module's word says so.")
{
	test_in_child(gdmabuf_becomes_stale);
}

static void gdmabuf_watches_whole_pages(void)
{
	struct watcher_watch watch;
	unsigned char *p;

	gdmabuf_begin();
	p = gdmabuf_memory(MAP_PRIVATE);
	watch = gdmabuf_watch(p + PAGE + 8, 16);
	fake_gdmabuf_change(p, PAGE);
	fake_gdmabuf_change(p + 2 * PAGE, PAGE);
	EXPECT(watcher_is_current(&watch));
	fake_gdmabuf_change(p + PAGE, 1);
	EXPECT(!watcher_is_current(&watch));
}

TEST(gdmabuf_small, "The module watches the pages around a range of any size.")
{
	test_in_child(gdmabuf_watches_whole_pages);
}

static void gdmabuf_is_forbidden(void)
{
	gdmabuf_begin();
	setenv("CLIMPORT_KEEP_HOST", "0", 1);
	EXPECT(!watcher_is_possible(SIZE));
	EXPECT_EQ(fake_gdmabuf.opens, 0);
}

TEST(gdmabuf_forbidden, "With CLIMPORT_KEEP_HOST=0 the module is not opened.")
{
	test_in_child(gdmabuf_is_forbidden);
}

static void gdmabuf_is_old(void)
{
	gdmabuf_begin();
	fake_gdmabuf.is_old = true;
	EXPECT(!watcher_is_possible(SIZE));
	EXPECT(!strcmp(watcher_describe(),
		       "the kernel module gdmabuf is too old to watch host memory; "
		       "CLIMPORT_KEEP_HOST is not 1"));
	EXPECT(!*log_last());
}

TEST(gdmabuf_old, "A module without watches watches nothing, and nothing is logged.")
{
	test_in_child(gdmabuf_is_old);
}

/* A shortage passes: -EMFILE is no last answer. */
static const struct gdmabuf_open_error {
	const char *name;
	int error;
	bool is_final;
	const char *why;
} gdmabuf_open_errors[] = {
	{ "missing", ENOENT, true,
	  "the kernel module gdmabuf is not loaded; CLIMPORT_KEEP_HOST is not 1" },
	{ "unloaded", ENXIO, true,
	  "the kernel module gdmabuf is not loaded; CLIMPORT_KEEP_HOST is not 1" },
	{ "refused", EACCES, true, "/dev/gdmabuf may not be opened; CLIMPORT_KEEP_HOST is not 1" },
	{ "sandbox", EPERM, true, "/dev/gdmabuf may not be opened; CLIMPORT_KEEP_HOST is not 1" },
	{ "descriptors", EMFILE, false,
	  "/dev/gdmabuf cannot be opened for want of memory or descriptors; "
	  "CLIMPORT_KEEP_HOST is not 1" },
	{ "files", ENFILE, false,
	  "/dev/gdmabuf cannot be opened for want of memory or descriptors; "
	  "CLIMPORT_KEEP_HOST is not 1" },
	{ "memory", ENOMEM, false,
	  "/dev/gdmabuf cannot be opened for want of memory or descriptors; "
	  "CLIMPORT_KEEP_HOST is not 1" },
};

static const struct gdmabuf_open_error *gdmabuf_row;

static void gdmabuf_open_fails(void)
{
	struct watcher_watch watch;
	void *p;

	gdmabuf_begin();
	p = gdmabuf_memory(MAP_PRIVATE);
	fake_gdmabuf.open_error = gdmabuf_row->error;
	EXPECT_EQ(watcher_is_possible(SIZE), !gdmabuf_row->is_final);
	EXPECT(gdmabuf_try(p, SIZE, &watch) < 0);
	EXPECT(!strcmp(watcher_describe(), gdmabuf_row->why));
	EXPECT(!*log_last());
	fake_gdmabuf.open_error = 0;
	EXPECT_EQ(watcher_is_possible(SIZE), !gdmabuf_row->is_final);
	EXPECT_EQ(!gdmabuf_try(p, SIZE, &watch), !gdmabuf_row->is_final);
}

TEST_EACH(gdmabuf_no_device, struct gdmabuf_open_error, gdmabuf_open_errors,
	  "If the device cannot be opened, nothing is watched, and a shortage is not the last "
	  "answer.")
{
	gdmabuf_row = row;
	test_in_child(gdmabuf_open_fails);
}

static const struct gdmabuf_watch_error {
	const char *name;
	int error;
} gdmabuf_watch_errors[] = {
	{ "unknown", ENOTTY },	{ "invalid", EINVAL }, { "address", EFAULT },
	{ "too_many", ENOSPC }, { "memory", ENOMEM },  { "foreign", EACCES },
	{ "flag", EOPNOTSUPP },
};

static int gdmabuf_error;

static void gdmabuf_watch_fails(void)
{
	struct watcher_watch watch;
	void *p;

	gdmabuf_begin();
	p = gdmabuf_memory(MAP_PRIVATE);
	fake_gdmabuf.watch_error = gdmabuf_error;
	EXPECT(watcher_is_possible(PAGE));
	EXPECT_EQ(gdmabuf_try(p, PAGE, &watch), -gdmabuf_error);
	EXPECT(!*log_last());
	fake_gdmabuf.watch_error = 0;
	EXPECT_EQ(gdmabuf_try(p, PAGE, &watch), 0);
	EXPECT_EQ(fake_gdmabuf.watches, 1);
}

TEST_EACH(gdmabuf_fails, struct gdmabuf_watch_error, gdmabuf_watch_errors,
	  "If the module refuses a watch, the range is not watched, and a later range may be.")
{
	gdmabuf_error = row->error;
	test_in_child(gdmabuf_watch_fails);
}

static struct watcher_watch gdmabuf_parents;

static void gdmabuf_in_child(void)
{
	struct watcher_watch own;
	int before = fake_gdmabuf.watches;

	fake_gdmabuf_child();
	/* The status page is no memory of a child. */
	munmap((void *)((uintptr_t)gdmabuf_parents.status & ~(PAGE - 1)), PAGE);
	EXPECT(!watcher_is_current(&gdmabuf_parents));
	watcher_put(&gdmabuf_parents);
	EXPECT_EQ(fake_gdmabuf.watches, before);
	own = gdmabuf_watch(gdmabuf_memory(MAP_PRIVATE), SIZE);
	watcher_put(&own);
}

static void gdmabuf_forks(void)
{
	gdmabuf_begin();
	gdmabuf_parents = gdmabuf_watch(gdmabuf_memory(MAP_PRIVATE), SIZE);
	test_in_child(gdmabuf_in_child);
	EXPECT(watcher_is_current(&gdmabuf_parents));
}

TEST(gdmabuf_fork,
     "In a child the parent's watch is stale and stays the parent's, and the child watches by a "
     "context of its own.")
{
	test_in_child(gdmabuf_forks);
}

static void gdmabuf_close_devices(void)
{
	for (int fd = 3; fd < 64; fd++)
		if (fake_gdmabuf_is_device(fd))
			close(fd);
}

static void gdmabuf_is_closed(void)
{
	struct watcher_watch before, after;
	unsigned char *p;

	gdmabuf_begin();
	p = gdmabuf_memory(MAP_PRIVATE);
	before = gdmabuf_watch(p, SIZE);
	gdmabuf_close_devices();
	after = gdmabuf_watch(p, SIZE);
	watcher_put(&before);
	EXPECT(watcher_is_current(&after));
	EXPECT_EQ(fake_gdmabuf.opens, 4);
}

TEST(gdmabuf_closed,
     "If the program closes the device, the next watch is by another context, and the end of an "
     "old watch ends no new watch.")
{
	test_in_child(gdmabuf_is_closed);
}

static void gdmabuf_is_closed_often(void)
{
	struct watcher_watch watch, other, next;
	unsigned char *p;

	gdmabuf_begin();
	p = gdmabuf_memory(MAP_PRIVATE);
	watch = gdmabuf_watch(p, SIZE);
	other = gdmabuf_watch(p, SIZE);
	for (int i = 0; i < 20; i++) {
		gdmabuf_close_devices();
		next = gdmabuf_watch(p, SIZE);
		watcher_put(&other);
		EXPECT(watcher_is_current(&watch));
		watcher_put(&watch);
		EXPECT_EQ(process_count_mappings("gdmabuf-device"), 1);
		watch = next;
		other = gdmabuf_watch(p, SIZE);
	}
	/* A context without a watch goes with the next context. */
	watcher_put(&watch);
	watcher_put(&other);
	gdmabuf_close_devices();
	watch = gdmabuf_watch(p, SIZE);
	EXPECT_EQ(process_count_mappings("gdmabuf-device"), 1);
}

TEST(gdmabuf_closed_often, "A context whose device the program has closed goes with its last "
			   "watch, when there is another "
			   "context.")
{
	test_in_child(gdmabuf_is_closed_often);
}
