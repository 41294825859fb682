/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness.h"
#include "monitor_fixture.h"

#define SIZE ((size_t)1 << 20)

struct change {
	const char *name;
	int (*make)(char *p); /* to SIZE bytes; 0, or the skip reason's errno */
};

static int watched_munmap(char *p)
{
	return munmap(p, SIZE);
}

static int watched_munmap_first(char *p)
{
	return munmap(p, PAGE);
}

static int watched_munmap_last(char *p)
{
	return munmap(p + SIZE - PAGE, PAGE);
}

static int watched_munmap_around(char *p)
{
	return munmap(p - PAGE, SIZE + 2 * PAGE);
}

static int watched_map_over(char *p)
{
	return mmap(p + PAGE, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
		    -1, 0) == MAP_FAILED;
}

static int watched_move(char *p)
{
	char *to = mmap(NULL, SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return mremap(p, SIZE, SIZE, MREMAP_MAYMOVE | MREMAP_FIXED, to) != to;
}

static int watched_move_and_stay(char *p)
{
	return mremap(p, SIZE, SIZE, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, NULL) == MAP_FAILED;
}

static int watched_move_part(char *p)
{
	char *to = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return mremap(p + PAGE, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, to) != to;
}

static int watched_move_onto(char *p)
{
	char *from = monitor_fixture_map(PAGE);

	return mremap(from, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, p) != p;
}

static int watched_shrink(char *p)
{
	return mremap(p, SIZE, SIZE - PAGE, 0) != p;
}

static int watched_dontneed(char *p)
{
	return madvise(p + PAGE, PAGE, MADV_DONTNEED);
}

static int watched_free(char *p)
{
	return madvise(p + PAGE, PAGE, MADV_FREE);
}

/* The child of vfork() has the parent's memory, and runs no handlers of fork(). */
static int watched_in_vfork(char *p)
{
	int status = -1;
	pid_t child;

	if (!strcmp(SANITIZER, "thread"))
		test_skip("the thread sanitizer's vfork() is fork()");
	child = vfork();
	if (!child)
		_exit(munmap(p, PAGE));
	return waitpid(child, &status, 0) != child || status;
}

static const struct change changes[] = {
	{ "munmap", watched_munmap },
	{ "munmap_first", watched_munmap_first },
	{ "munmap_last", watched_munmap_last },
	{ "munmap_around", watched_munmap_around },
	{ "map_over", watched_map_over },
	{ "move", watched_move },
	{ "move_and_stay", watched_move_and_stay },
	{ "move_part", watched_move_part },
	{ "move_onto", watched_move_onto },
	{ "shrink", watched_shrink },
	{ "dontneed", watched_dontneed },
	{ "free", watched_free },
	{ "in_vfork", watched_in_vfork },
};

TEST_EACH(change, struct change, changes, "A watch is stale once a page of the range has changed.")
{
	struct watch watch, neighbour;
	char *p, *other;

	monitor_fixture_needed();
	p = monitor_fixture_map(SIZE);
	other = monitor_fixture_map(SIZE);
	watch = monitor_fixture_watch(p, SIZE);
	neighbour = monitor_fixture_watch(other, SIZE);
	EXPECT(!row->make(p));
	EXPECT(!watch_is_current(&watch));
	EXPECT(watch_is_current(&neighbour));
	watch_put(&watch);
	watch_put(&neighbour);
	monitor_fixture_unmap(p, SIZE);
	monitor_fixture_unmap(other, SIZE);
}

static int same_write(char *p)
{
	memset(p, 2, SIZE);
	return 0;
}

static int same_protection(char *p)
{
	return mprotect(p, PAGE, PROT_READ) || mprotect(p, PAGE, PROT_READ | PROT_WRITE);
}

static int same_locked(char *p)
{
	return mlock(p, PAGE) || munlock(p, PAGE);
}

static int same_advice(char *p)
{
	return madvise(p, SIZE, MADV_WILLNEED) || madvise(p, SIZE, MADV_DONTDUMP);
}

static int same_neighbours(char *p)
{
	return munmap(p - PAGE, PAGE) || munmap(p + SIZE, PAGE);
}

static int same_grow(char *p)
{
	return munmap(p + SIZE, PAGE) || mremap(p, SIZE, SIZE + PAGE, 0) != p;
}

static int same_fork(char *p)
{
	int status = -1;
	pid_t child = fork();

	if (!child)
		_exit(munmap(p, SIZE));
	return waitpid(child, &status, 0) != child || status;
}

static const struct change sames[] = {
	{ "write", same_write },   { "protection", same_protection }, { "locked", same_locked },
	{ "advice", same_advice }, { "neighbours", same_neighbours }, { "grow", same_grow },
	{ "fork", same_fork },
};

TEST_EACH(same, struct change, sames, "A watch stays current while the pages are unchanged.")
{
	struct watch watch;
	char *p;

	monitor_fixture_needed();
	p = monitor_fixture_map(SIZE);
	watch = monitor_fixture_watch(p, SIZE);
	EXPECT(!row->make(p));
	EXPECT(watch_is_current(&watch));
	watch_put(&watch);
	monitor_fixture_unmap(p, SIZE);
}

TEST(put, "A watch that was put is not current, and may be put again.")
{
	struct watch watch, copy;
	char *p;

	monitor_fixture_needed();
	p = monitor_fixture_map(SIZE);
	watch = monitor_fixture_watch(p, SIZE);
	copy = watch;
	watch_put(&watch);
	EXPECT(!watch_is_current(&watch));
	EXPECT(!watch_is_current(&copy));
	watch_put(&watch);
	watch_put(&copy);
	monitor_fixture_unmap(p, SIZE);
}
