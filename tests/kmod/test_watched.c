/* SPDX-License-Identifier: Apache-2.0 */
/* climport's watches of host memory on the real module, and the registrations that rest on them. */
#include "gdm.h"
#include "harness.h"

#include "driver_fixture.h"
#include "fake_rm.h"
#include "import/cache/cache.h"
#include "import/export/gdmabuf.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define LENGTH (4 * PAGE) /* with pages of 64 KiB, the mapped program has no 16 */

static struct gdmabuf_watch watched_begin_on(const void *p, size_t size)
{
	struct gdmabuf_watch watch;

	close(gdm_open());
	EXPECT_EQ(gdmabuf_watch_begin((uintptr_t)p, size, &watch), 0);
	EXPECT(gdmabuf_watch_is_current(&watch));
	return watch;
}

static unsigned char *watched_map_anonymous(void)
{
	return pages_new(LENGTH, 1);
}

static unsigned char *watched_map_memfd(void)
{
	int fd = memfd_create("watched", MFD_CLOEXEC);
	void *p;

	EXPECT(fd >= 0 && !ftruncate(fd, LENGTH));
	p = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	EXPECT(p != MAP_FAILED);
	close(fd);
	pattern_fill(p, LENGTH);
	return p;
}

static unsigned char *watched_map_file(void)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	void *p = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);

	EXPECT(p != MAP_FAILED);
	close(fd);
	pattern_fill(p, LENGTH);
	return p;
}

static const struct watched_memory {
	const char *name;
	unsigned char *(*map)(void);
} watched_memories[] = {
	{ "anonymous", watched_map_anonymous },
	{ "memfd", watched_map_memfd },
	{ "file", watched_map_file },
};

TEST_EACH(
	watched_real, struct watched_memory, watched_memories,
	"climport's watch is current while the memory is used, and stale after munmap() and mmap() "
	"at the address.")
{
	unsigned char *p = row->map();
	struct gdmabuf_watch watch = watched_begin_on(p, LENGTH);

	memset(p, 7, LENGTH);
	EXPECT(gdmabuf_watch_is_current(&watch));
	EXPECT_EQ(munmap(p, LENGTH), 0);
	EXPECT(!gdmabuf_watch_is_current(&watch));
	EXPECT(mmap(p, LENGTH, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == p);
	EXPECT(!gdmabuf_watch_is_current(&watch));
	gdmabuf_watch_end(&watch);
	munmap(p, LENGTH);
}

static struct gdmabuf_watch watched_parents;

static void watched_in_child(void *p)
{
	struct gdmabuf_watch own;

	gdmabuf_watch_end(&watched_parents);
	own = watched_begin_on(p, LENGTH);
	EXPECT_EQ(munmap(p, LENGTH), 0);
	EXPECT(!gdmabuf_watch_is_current(&own));
}

TEST(watched_real_fork,
     "A child ends no watch of its parent's, and the child's changes are the child's.")
{
	unsigned char *p = watched_map_memfd();

	watched_parents = watched_begin_on(p, LENGTH);
	EXPECT_EQ(in_child(watched_in_child, p), 0);
	EXPECT(gdmabuf_watch_is_current(&watched_parents));
	gdmabuf_watch_end(&watched_parents);
	munmap(p, LENGTH);
}

static void watched_as_user(void *p)
{
	struct gdmabuf_watch watch;

	become_user(0);
	watch = watched_begin_on(p, LENGTH);
	EXPECT(gdmabuf_watch_is_current(&watch));
}

static void watched_permit(mode_t mode)
{
	EXPECT_EQ(chmod("/dev/gdmabuf", mode), 0);
}

TEST(watched_real_memlock, "A user whose RLIMIT_MEMLOCK is 0 has watches.")
{
	close(gdm_open());
	watched_permit(0666);
	EXPECT_EQ(in_child(watched_as_user, watched_map_anonymous()), 0);
	watched_permit(0660);
}

static void watched_refused(void *unused)
{
	(void)unused;
	become_user(0);
	if (gdmabuf_probe() != -EACCES)
		_exit(1);
}

TEST(watched_real_refused, "A user who may not open the device has no watches.")
{
	close(gdm_open());
	EXPECT_EQ(in_child(watched_refused, NULL), 0);
}

enum { ROUNDS = 3000 };

TEST(watched_real_many, "Watches that are put leave no watch in the module.")
{
	long long before = gdm_read_total("watches");
	unsigned char *p = watched_map_anonymous();

	for (int i = 0; i < ROUNDS; i++) {
		struct gdmabuf_watch watch = watched_begin_on(p, LENGTH);

		if (i % 3 == 0)
			EXPECT_EQ(madvise(p, PAGE, MADV_DONTNEED), 0);
		gdmabuf_watch_end(&watch);
	}
	EXPECT_EQ(gdm_read_total("watches"), before);
	munmap(p, LENGTH);
}

/* ---- imports by the fake of RM, which tells of what memory a descriptor is ---- */

/* Linked with --wrap=cache_age: time stands still, for machines of any speed. */
bool __wrap_cache_age(struct cache *cache);

bool __wrap_cache_age(struct cache *cache)
{
	(void)cache;
	return true;
}

static uintptr_t map_at(uintptr_t at)
{
	void *p = mmap((void *)at, LENGTH, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | (at ? MAP_FIXED : 0), -1, 0);

	EXPECT(p != MAP_FAILED);
	*(volatile char *)p = 1;
	return (uintptr_t)p;
}

static void imports_begin(void)
{
	close(gdm_open());
	fake_rm_reset(DRIVER_DEVICES);
	import_on_forget(driver_forget);
}

/*
 * Two imports find one registration.  The fake pins nothing, so the kernel may move the pages at any
 * time, and tells the test's own watch as well as climport's.  False: the kernel has moved pages, or
 * no registration is due.
 */
static bool imports_find(int ctx, uintptr_t p, uint64_t *kept)
{
	const volatile uint32_t *status = gdm_status(ctx);
	struct gdm_watch watch;
	unsigned int pins;
	uint64_t again;
	bool is_current;

	EXPECT_EQ(gdm_watch_host(ctx, (void *)p, LENGTH, &watch), 0);
	*kept = driver_once(p, LENGTH);
	pins = fake_rm.pins_made;
	again = driver_once(p, LENGTH);
	is_current = gdm_is_current(status, &watch);
	EXPECT_EQ(gdm_unwatch(ctx, &watch), 0);
	munmap((void *)(uintptr_t)status, STATUS_BYTES);
	if (!*kept || !is_current)
		return false;
	EXPECT_EQ(again, *kept);
	EXPECT_EQ(fake_rm.pins_made, pins);
	return true;
}

static void imports_are_kept(void)
{
	uint64_t kept;
	int ctx, pins;
	uintptr_t p;

	imports_begin();
	ctx = gdm_open();
	p = map_at(0);
	EXPECT_EQ(driver_once(p, LENGTH), 0);
	while (!imports_find(ctx, p, &kept))
		printf("# the kernel has moved pages, or no registration is due\n");
	pins = fake_rm.pins_made;
	EXPECT(map_at(p) == p);
	EXPECT(driver_once(p, LENGTH) != kept);
	EXPECT_EQ(fake_rm.pins_made, pins + 1);
	close(ctx);
}

TEST(watched_real_import,
     "The third import of a range pins nothing, until the program maps other memory there.")
{
	test_in_child(imports_are_kept);
}
