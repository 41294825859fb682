/* SPDX-License-Identifier: Apache-2.0 */
/* Watches of host memory by the kernel module, on the fake of the module. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fake_gdmabuf.h"
#include "harness.h"
#include "import/export/gdmabuf.h"
#include "import/import.h"
#include "process.h"
#include "util/log.h"

#define PAGE ((size_t)sysconf(_SC_PAGESIZE))
#define SIZE (16 * PAGE)

static void gdmabuf_begin(void)
{
	fake_gdmabuf_child();
	fake_gdmabuf.open_error = 0;
}

static unsigned char *gdmabuf_memory(int flags)
{
	void *p = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);

	EXPECT(p != MAP_FAILED);
	return p;
}

static int gdmabuf_try(const void *p, size_t size, struct gdmabuf_watch *watch)
{
	return gdmabuf_watch_begin((uintptr_t)p, size, watch);
}

static struct gdmabuf_watch gdmabuf_watch(const void *p, size_t size)
{
	struct gdmabuf_watch watch = { 0 };

	EXPECT_EQ(gdmabuf_probe(), 0);
	EXPECT_EQ(gdmabuf_try(p, size, &watch), 0);
	EXPECT(gdmabuf_watch_is_current(&watch));
	return watch;
}

static void gdmabuf_watches(void)
{
	struct gdmabuf_watch watch;

	gdmabuf_begin();
	watch = gdmabuf_watch(gdmabuf_memory(MAP_SHARED), SIZE);
	EXPECT_EQ(fake_gdmabuf.watches, 1);
	gdmabuf_watch_end(&watch);
	EXPECT_EQ(fake_gdmabuf.watches, 0);
	EXPECT(!strcmp(import_describe_kept(), "the kernel module gdmabuf tells of changes"));
}

TEST(gdmabuf, "If the module is loaded, it watches memory of any kind.")
{
	test_in_child(gdmabuf_watches);
}

static void gdmabuf_becomes_stale(void)
{
	struct gdmabuf_watch watch, next;
	unsigned char *p;

	gdmabuf_begin();
	p = gdmabuf_memory(MAP_PRIVATE);
	watch = gdmabuf_watch(p, SIZE);
	next = gdmabuf_watch(p + PAGE, PAGE);
	fake_gdmabuf_change(p, PAGE);
	EXPECT(!gdmabuf_watch_is_current(&watch));
	EXPECT(gdmabuf_watch_is_current(&next));
	gdmabuf_watch_end(&watch);
	EXPECT(gdmabuf_watch_is_current(&next));
	watch = gdmabuf_watch(p, SIZE);
	EXPECT(gdmabuf_watch_is_current(&watch));
}

TEST(gdmabuf_stale, "A watch by the module is stale when the module's word says so.")
{
	test_in_child(gdmabuf_becomes_stale);
}

static void gdmabuf_watches_whole_pages(void)
{
	struct gdmabuf_watch watch;
	unsigned char *p;

	gdmabuf_begin();
	p = gdmabuf_memory(MAP_PRIVATE);
	watch = gdmabuf_watch(p + PAGE + 8, 16);
	fake_gdmabuf_change(p, PAGE);
	fake_gdmabuf_change(p + 2 * PAGE, PAGE);
	EXPECT(gdmabuf_watch_is_current(&watch));
	fake_gdmabuf_change(p + PAGE, 1);
	EXPECT(!gdmabuf_watch_is_current(&watch));
}

TEST(gdmabuf_small, "The module watches the pages around a range of any size.")
{
	test_in_child(gdmabuf_watches_whole_pages);
}

static const struct gdmabuf_open_error {
	const char *name;
	int error, ret;
	const char *why;
} gdmabuf_open_errors[] = {
	{ "missing", ENOENT, -ENXIO, "the kernel module gdmabuf is not loaded" },
	{ "unloaded", ENXIO, -ENXIO, "the kernel module gdmabuf is not loaded" },
	{ "refused", EACCES, -EACCES, "/dev/gdmabuf may not be opened" },
	{ "sandbox", EPERM, -EACCES, "/dev/gdmabuf may not be opened" },
	{ "descriptors", EMFILE, -EMFILE,
	  "/dev/gdmabuf cannot be opened: memory or descriptors are short" },
	{ "files", ENFILE, -ENFILE,
	  "/dev/gdmabuf cannot be opened: memory or descriptors are short" },
	{ "memory", ENOMEM, -ENOMEM,
	  "/dev/gdmabuf cannot be opened: memory or descriptors are short" },
};

static const struct gdmabuf_open_error *gdmabuf_row;

static void gdmabuf_open_fails(void)
{
	struct gdmabuf_watch watch;
	void *p;

	gdmabuf_begin();
	p = gdmabuf_memory(MAP_PRIVATE);
	fake_gdmabuf.open_error = gdmabuf_row->error;
	EXPECT_EQ(gdmabuf_probe(), gdmabuf_row->ret);
	EXPECT(!strcmp(import_describe_kept(), gdmabuf_row->why));
	EXPECT(!*log_last());
	EXPECT_EQ(gdmabuf_try(p, SIZE, &watch), gdmabuf_row->ret);
	EXPECT(strstr(log_last(), "/dev/gdmabuf: "));
}

TEST_EACH(gdmabuf_no_device, struct gdmabuf_open_error, gdmabuf_open_errors,
	  "If the device cannot be opened, nothing is watched, and the reason is told.")
{
	gdmabuf_row = row;
	test_in_child(gdmabuf_open_fails);
}

static const struct gdmabuf_watch_error {
	const char *name;
	int error;
} gdmabuf_watch_errors[] = {
	{ "unknown", ENOTTY },	{ "invalid", EINVAL }, { "address", EFAULT },
	{ "too_many", EDQUOT }, { "memory", ENOMEM },  { "foreign", EACCES },
};

static int gdmabuf_error;

static void gdmabuf_watch_fails(void)
{
	struct gdmabuf_watch watch;
	char says[64];
	void *p;

	gdmabuf_begin();
	p = gdmabuf_memory(MAP_PRIVATE);
	fake_gdmabuf.watch_error = gdmabuf_error;
	EXPECT_EQ(gdmabuf_probe(), 0);
	EXPECT_EQ(gdmabuf_try(p, PAGE, &watch), -gdmabuf_error);
	snprintf(says, sizeof(says), "watch of %zu bytes at ", PAGE);
	EXPECT(!strncmp(log_last(), says, strlen(says)));
	EXPECT(gdmabuf_error != EDQUOT ||
	       strstr(log_last(), "the process has 128 watches, the most that there may be"));
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

static struct gdmabuf_watch gdmabuf_parents;

static void gdmabuf_in_child(void)
{
	struct gdmabuf_watch own;
	int before = fake_gdmabuf.watches;

	fake_gdmabuf_child();
	/* The status page is no memory of a child. */
	munmap((void *)((uintptr_t)gdmabuf_parents.status & ~(PAGE - 1)), PAGE);
	gdmabuf_watch_end(&gdmabuf_parents);
	EXPECT_EQ(fake_gdmabuf.watches, before);
	own = gdmabuf_watch(gdmabuf_memory(MAP_PRIVATE), SIZE);
	gdmabuf_watch_end(&own);
}

static void gdmabuf_forks(void)
{
	gdmabuf_begin();
	gdmabuf_parents = gdmabuf_watch(gdmabuf_memory(MAP_PRIVATE), SIZE);
	test_in_child(gdmabuf_in_child);
	EXPECT(gdmabuf_watch_is_current(&gdmabuf_parents));
}

TEST(gdmabuf_fork, "A child ends no watch of its parent's, and watches by a context of its own.")
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
	struct gdmabuf_watch before, after;
	unsigned char *p;

	gdmabuf_begin();
	p = gdmabuf_memory(MAP_PRIVATE);
	before = gdmabuf_watch(p, SIZE);
	gdmabuf_close_devices();
	after = gdmabuf_watch(p, SIZE);
	gdmabuf_watch_end(&before);
	EXPECT(gdmabuf_watch_is_current(&after));
	EXPECT_EQ(fake_gdmabuf.opens, 4); /* a look before each */
}

TEST(gdmabuf_closed,
     "If the program closes the device, the next watch is by another context, and the end of an "
     "old watch ends no new watch.")
{
	test_in_child(gdmabuf_is_closed);
}

static void gdmabuf_is_closed_often(void)
{
	struct gdmabuf_watch watch, other, next;
	unsigned char *p;

	gdmabuf_begin();
	p = gdmabuf_memory(MAP_PRIVATE);
	watch = gdmabuf_watch(p, SIZE);
	other = gdmabuf_watch(p, SIZE);
	for (int i = 0; i < 20; i++) {
		gdmabuf_close_devices();
		next = gdmabuf_watch(p, SIZE);
		gdmabuf_watch_end(&other);
		EXPECT(gdmabuf_watch_is_current(&watch));
		gdmabuf_watch_end(&watch);
		EXPECT_EQ(process_count_mappings("gdmabuf-device"), 1);
		watch = next;
		other = gdmabuf_watch(p, SIZE);
	}
	/* A context without a watch goes with the next context. */
	gdmabuf_watch_end(&watch);
	gdmabuf_watch_end(&other);
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

static void gdmabuf_ends(void)
{
	struct gdmabuf_watch watch, next;

	gdmabuf_begin();
	watch = gdmabuf_watch(gdmabuf_memory(MAP_PRIVATE), SIZE);
	gdmabuf_close_devices();
	next = gdmabuf_watch(gdmabuf_memory(MAP_PRIVATE), SIZE);
	gdmabuf_watch_end(&watch);
	EXPECT_EQ(process_count_mappings("gdmabuf-device"), 1);
	EXPECT(!gdmabuf_watch_is_current(&watch));
	EXPECT(gdmabuf_watch_is_current(&next));
}

TEST(gdmabuf_ended, "A copy of a watch may be asked when the watch's context has gone, and is not "
		    "current.")
{
	test_in_child(gdmabuf_ends);
}
