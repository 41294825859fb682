/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness.h"
#include "monitor_fixture.h"
#include "process.h"

/* Tests unmap no page twice: a thread of the process may have the address by then. */
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
	pid_t child = vfork();

	if (!child)
		_exit(munmap(p, PAGE));
	return waitpid(child, &status, 0) != child || status;
}

/* The kernel tells nobody of shared memory that is attached over a range. */
static int watched_attach(char *p, size_t size)
{
	int id = shmget(IPC_PRIVATE, size, IPC_CREAT | 0600);
	void *at;

	if (id < 0)
		test_skip("no shared memory of System V");
	at = shmat(id, p, SHM_REMAP);
	shmctl(id, IPC_RMID, NULL);
	return at != p;
}

static int watched_attach_over(char *p)
{
	return watched_attach(p, SIZE);
}

static int watched_attach_inside(char *p)
{
	return watched_attach(p + SIZE / 2, PAGE);
}

static int watched_attach_and_map(char *p)
{
	return watched_attach(p + SIZE / 2, PAGE) || shmdt(p + SIZE / 2) ||
	       mmap(p + SIZE / 2, PAGE, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) != p + SIZE / 2;
}

/* Of several mappings, one is another. */
static int watched_attach_to_split(char *p)
{
	return madvise(p + SIZE / 4, PAGE, MADV_DONTDUMP) || watched_attach_and_map(p);
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
	{ "attach_over", watched_attach_over },
	{ "attach_inside", watched_attach_inside },
	{ "attach_and_map", watched_attach_and_map },
	{ "attach_to_split", watched_attach_to_split },
};

TEST_EACH(change, struct change, changes, "A watch is stale once a page of the range has changed.")
{
	struct watch watch, neighbour;
	char *p, *other;

	monitor_fixture_needed();
	if (row->make == watched_in_vfork && !strcmp(SANITIZER, "thread"))
		test_skip("the thread sanitizer's vfork() is fork()");
	p = monitor_fixture_map(SIZE);
	other = monitor_fixture_map(SIZE);
	watch = monitor_fixture_watch(p, SIZE);
	neighbour = monitor_fixture_watch(other, SIZE);
	EXPECT(!row->make(p));
	EXPECT(!watch_is_current(&watch));
	EXPECT(watch_is_current(&neighbour));
	watch_put(&watch);
	watch_put(&neighbour);
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
	EXPECT(!munmap(p + SIZE, PAGE));
	mremap(p, SIZE, SIZE + PAGE, 0);
	return 0;
}

/* Swapped out, a page that is pinned stays in its place; the content of any page stays. */
static int same_paged_out(char *p)
{
	return madvise(p, SIZE, MADV_PAGEOUT);
}

/* Three mappings, of which one is read-only. */
static int same_split(char *p)
{
	return madvise(p + SIZE / 4, PAGE, MADV_DONTDUMP) || mprotect(p, PAGE, PROT_READ);
}

static int same_huge(char *p)
{
	return madvise(p, SIZE, MADV_HUGEPAGE) && errno != EINVAL;
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
	{ "write", same_write },
	{ "protection", same_protection },
	{ "locked", same_locked },
	{ "advice", same_advice },
	{ "neighbours", same_neighbours },
	{ "grow", same_grow },
	{ "paged_out", same_paged_out },
	{ "split", same_split },
	{ "huge", same_huge },
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
	munmap(p, SIZE);
}

TEST(put, "A watch that was put is not current, and may be put again: a later watch stays.")
{
	struct watch watch, copy, next;
	char *p;

	monitor_fixture_needed();
	p = monitor_fixture_map(SIZE);
	watch = monitor_fixture_watch(p, SIZE);
	copy = watch;
	watch_put(&watch);
	EXPECT(!watch_is_current(&watch));
	EXPECT(!watch_is_current(&copy));
	next = monitor_fixture_watch(p, SIZE);
	watch_put(&watch);
	watch_put(&copy);
	EXPECT(watch_is_current(&next));
	watch_put(&next);
	monitor_fixture_unmap(p, SIZE);
}

struct refused {
	const char *name;
	char *(*create)(void); /* SIZE bytes; NULL: not to be had here */
	int error;
};

static char *refused_map(int protection, int flags, int fd)
{
	char *p = mmap(NULL, SIZE, protection, flags, fd, 0);

	return p == MAP_FAILED ? NULL : p;
}

static char *refused_shared(void)
{
	return refused_map(PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1);
}

static char *refused_memfd(int flags)
{
	int fd = memfd_create("memory", MFD_CLOEXEC);
	char *p;

	EXPECT(fd >= 0 && !ftruncate(fd, SIZE));
	p = refused_map(PROT_READ | PROT_WRITE, flags, fd);
	close(fd);
	return p;
}

static char *refused_memfd_shared(void)
{
	return refused_memfd(MAP_SHARED);
}

static char *refused_memfd_private(void)
{
	return refused_memfd(MAP_PRIVATE);
}

static char *refused_huge(void)
{
	return refused_map(PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1);
}

static char *refused_read_only(void)
{
	return refused_map(PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1);
}

static char *refused_hole(void)
{
	char *p = refused_map(PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);

	EXPECT(!munmap(p + SIZE / 2, PAGE));
	return p;
}

static char *refused_file_inside(void)
{
	char *p = refused_map(PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1),
	     *file = refused_memfd(MAP_PRIVATE);

	EXPECT(mremap(file, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, p + SIZE / 2) ==
	       p + SIZE / 2);
	return p;
}

static const struct refused refusals[] = {
	{ "shared", refused_shared, -EOPNOTSUPP },
	{ "memfd_shared", refused_memfd_shared, -EOPNOTSUPP },
	{ "memfd_private", refused_memfd_private, -EOPNOTSUPP },
	{ "huge", refused_huge, -EOPNOTSUPP },
	{ "read_only", refused_read_only, -EOPNOTSUPP },
	{ "hole", refused_hole, -EFAULT },
	{ "file_inside", refused_file_inside, -EOPNOTSUPP },
};

TEST_EACH(refused, struct refused, refusals,
	  "Memory that can change without an event is not watched.")
{
	struct watch watch = { 0 };
	char *p;

	monitor_fixture_needed();
	p = row->create();
	if (!p)
		test_skip("no such memory here");
	EXPECT_EQ(monitor_watch((uintptr_t)p, SIZE, &watch), row->error);
	EXPECT(!watch.number);
	EXPECT_EQ(monitor_fixture_registered(p, SIZE), 0);
}

/* The kernel lets the stack grow where the program writes. */
TEST(stack, "The stack of the first thread is not watched.")
{
	volatile char large[2 * SIZE];
	struct watch watch;

	monitor_fixture_needed();
	for (size_t i = 0; i < sizeof(large); i += PAGE)
		large[i] = 1;
	EXPECT_EQ(monitor_watch((uintptr_t)large, sizeof(large), &watch), -EOPNOTSUPP);
}

TEST(sizes, "A range of 64 KiB is watched, a smaller, an empty or an endless range is refused.")
{
	struct watch watch;
	char *p;

	monitor_fixture_needed();
	p = monitor_fixture_map(SIZE);
	EXPECT_EQ(monitor_watch((uintptr_t)p, MONITOR_MIN_SIZE - 1, &watch), -EOPNOTSUPP);
	EXPECT_EQ(monitor_watch((uintptr_t)p, 0, &watch), -EINVAL);
	EXPECT_EQ(monitor_watch((uintptr_t)p, SIZE_MAX, &watch), -ERANGE);
	EXPECT_EQ(monitor_watch(UINTPTR_MAX - SIZE, SIZE, &watch), -ERANGE);
	watch = monitor_fixture_watch(p, MONITOR_MIN_SIZE);
	watch_put(&watch);
	monitor_fixture_unmap(p, SIZE);
}

TEST(rounding, "A watch has the whole pages of its first and its last byte, and no other page.")
{
	const size_t inside = SIZE / 4 - 2 * PAGE - 200;
	struct watch watch;
	char *p;

	monitor_fixture_needed();
	p = monitor_fixture_map(SIZE);
	watch = monitor_fixture_watch(p + PAGE + 100, inside);
	EXPECT_EQ(monitor_fixture_registered(p, SIZE), SIZE / 4 - 2 * PAGE);
	EXPECT(!munmap(p, PAGE) && !munmap(p + SIZE / 4 - PAGE, PAGE));
	EXPECT(watch_is_current(&watch));
	EXPECT(!munmap(p + SIZE / 4 - 2 * PAGE, PAGE));
	EXPECT(!watch_is_current(&watch));
	watch_put(&watch);
}

/* mremap() takes no range of several mappings, and a registered part is a mapping of its own. */
TEST(most_of_a_mapping, "A mapping that is watched for the most part stays one mapping.")
{
	struct watch watch;
	char *p, *to;

	monitor_fixture_needed();
	p = monitor_fixture_map(SIZE);
	watch = monitor_fixture_watch(p + PAGE, SIZE / 2);
	EXPECT_EQ(monitor_fixture_registered(p, SIZE), SIZE);
	EXPECT(!madvise(p, PAGE, MADV_DONTNEED) && !madvise(p + SIZE - PAGE, PAGE, MADV_FREE));
	EXPECT(watch_is_current(&watch));
	to = mremap(p, SIZE, 2 * SIZE, MREMAP_MAYMOVE);
	EXPECT(to != MAP_FAILED);
	EXPECT(!watch_is_current(&watch));
	watch_put(&watch);
	munmap(to, 2 * SIZE);
}

TEST(grown, "The end of a watch ends the registration of what was added to the mapping, too.")
{
	struct watch watch;
	char *p;

	monitor_fixture_needed();
	p = monitor_fixture_map(SIZE);
	watch = monitor_fixture_watch(p, SIZE / 2);
	if (mprotect(p + SIZE - PAGE, PAGE, PROT_READ) || munmap(p + SIZE - PAGE, PAGE) ||
	    mremap(p, SIZE - PAGE, SIZE, 0) != p)
		test_skip("the address is somebody else's by now");
	EXPECT_EQ(monitor_fixture_registered(p, SIZE), SIZE);
	watch_put(&watch);
	EXPECT_EQ(monitor_fixture_registered(p, SIZE), 0);
}

/* Mappings with different flags are not merged. */
TEST(several_mappings, "A watch has a range of several mappings.")
{
	struct watch watch;
	char *p;

	monitor_fixture_needed();
	p = monitor_fixture_map(SIZE);
	EXPECT(!madvise(p + SIZE / 4, SIZE / 2, MADV_DONTDUMP));
	watch = monitor_fixture_watch(p, SIZE);
	EXPECT_EQ(monitor_fixture_registered(p, SIZE), SIZE);
	EXPECT(!munmap(p + SIZE / 2, PAGE));
	EXPECT(!watch_is_current(&watch));
	watch_put(&watch);
	EXPECT_EQ(monitor_fixture_registered(p, SIZE), 0);
}

TEST(heap, "A watch of the heap is stale when the heap shrinks.")
{
	struct watch watch;
	char *p, *before;

	monitor_fixture_needed();
	before = sbrk(SIZE);
	if (before == (char *)-1)
		test_skip("the heap does not grow");
	p = (char *)(((uintptr_t)before + PAGE - 1) & ~(uintptr_t)(PAGE - 1));
	watch = monitor_fixture_watch(p, SIZE / 2);
	EXPECT(!brk(p + SIZE / 4));
	EXPECT(!watch_is_current(&watch));
	EXPECT(!brk(before + SIZE));
	EXPECT(!watch_is_current(&watch));
	watch_put(&watch);
	EXPECT(!brk(before));
}

TEST(huge_page, "A watch of a part of a huge page is stale when a page of the part is unmapped.")
{
	const size_t huge = (size_t)2 << 20;
	struct watch watch;
	char *p, *page;

	monitor_fixture_needed();
	p = mmap(NULL, 2 * huge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	EXPECT(p != MAP_FAILED);
	page = (char *)(((uintptr_t)p + huge - 1) & ~(uintptr_t)(huge - 1));
	if (madvise(page, huge, MADV_HUGEPAGE))
		test_skip("no transparent huge pages: %s", strerror(errno));
	memset(page, 1, huge);
	watch = monitor_fixture_watch(page + 10 * PAGE, SIZE);
	EXPECT(!munmap(page, PAGE) && !munmap(page + huge - PAGE, PAGE));
	EXPECT(watch_is_current(&watch));
	EXPECT(!munmap(page + 20 * PAGE, PAGE));
	EXPECT(!watch_is_current(&watch));
	watch_put(&watch);
}

/* Of this size the C library maps each block. */
TEST(freed, "A watch of a large block of malloc() is stale when the block is freed.")
{
	struct watch watch;
	char *p;

	monitor_fixture_needed();
	if (strcmp(SANITIZER, ""))
		test_skip("a sanitizer's free() keeps the memory");
	p = malloc(64 * SIZE);
	EXPECT(p);
	watch = monitor_fixture_watch(p, 64 * SIZE);
	p[SIZE] = 1;
	EXPECT(watch_is_current(&watch));
	free(p);
	EXPECT(!watch_is_current(&watch));
	watch_put(&watch);
}

TEST(overlap,
     "If two watches share pages, the end of a watch leaves the pages of the other watch watched.")
{
	struct watch low, high, both;
	char *p;

	monitor_fixture_needed();
	p = monitor_fixture_map(8 * SIZE) + 4 * SIZE;
	low = monitor_fixture_watch(p, SIZE / 2);
	high = monitor_fixture_watch(p + SIZE / 4, SIZE / 2);
	both = monitor_fixture_watch(p, SIZE);
	watch_put(&both);
	EXPECT_EQ(monitor_fixture_registered(p, SIZE), SIZE / 4 * 3);
	watch_put(&low);
	EXPECT_EQ(monitor_fixture_registered(p, SIZE / 4), 0);
	EXPECT_EQ(monitor_fixture_registered(p + SIZE / 4, SIZE / 2), SIZE / 2);
	EXPECT(!munmap(p, PAGE));
	EXPECT(watch_is_current(&high));
	EXPECT(!munmap(p + SIZE / 4, PAGE));
	EXPECT(!watch_is_current(&high));
	watch_put(&high);
	EXPECT_EQ(monitor_fixture_registered(p, SIZE), 0);
}

TEST(inside, "A watch inside a larger watch stays current when the larger watch is stale, or put.")
{
	struct watch outer, inner;
	char *p;

	monitor_fixture_needed();
	p = monitor_fixture_map(SIZE);
	outer = monitor_fixture_watch(p, SIZE);
	inner = monitor_fixture_watch(p + SIZE / 4, SIZE / 4);
	EXPECT(!munmap(p + SIZE / 2, PAGE));
	EXPECT(!watch_is_current(&outer));
	EXPECT(watch_is_current(&inner));
	watch_put(&outer);
	EXPECT_EQ(monitor_fixture_registered(p, SIZE), SIZE / 4);
	EXPECT(watch_is_current(&inner));
	EXPECT(!munmap(p + SIZE / 4, PAGE));
	EXPECT(!watch_is_current(&inner));
	watch_put(&inner);
	EXPECT_EQ(monitor_fixture_registered(p, SIZE), 0);
}

TEST(again, "A new watch at an address is current while an old watch of the address is stale.")
{
	struct watch before, after;
	char *p;

	monitor_fixture_needed();
	p = monitor_fixture_map(SIZE);
	before = monitor_fixture_watch(p, SIZE);
	EXPECT(!watched_map_over(p));
	after = monitor_fixture_watch(p, SIZE);
	EXPECT(!watch_is_current(&before));
	watch_put(&before);
	EXPECT(watch_is_current(&after));
	EXPECT_EQ(monitor_fixture_registered(p, SIZE), SIZE);
	EXPECT(!munmap(p, PAGE));
	EXPECT(!watch_is_current(&after));
	watch_put(&after);
}

/* Under madvise() the pages go after the event: a watch in between would have the old pages. */
TEST(emptied, "Memory that madvise() emptied a moment ago is not watched, and later is.")
{
	struct watch watch;
	char *p;

	monitor_fixture_needed();
	p = monitor_fixture_map(SIZE);
	watch = monitor_fixture_watch(p, SIZE);
	EXPECT(!watched_dontneed(p));
	watch_put(&watch);
	EXPECT_EQ(monitor_watch((uintptr_t)p, SIZE, &watch), -EAGAIN);
	watch = monitor_fixture_watch(p, SIZE);
	watch_put(&watch);
	monitor_fixture_unmap(p, SIZE);
}

/* Where the second memory is, seen from the first. */
static const struct emptied_order {
	const char *name;
	size_t first, second;
} emptied_orders[] = { { "upwards", 0, SIZE }, { "downwards", SIZE, 0 } };

TEST_EACH(emptied_twice, struct emptied_order, emptied_orders,
	  "If madvise() empties memory twice within a second, neither memory is watched.")
{
	struct watch first, second;
	char *p;

	monitor_fixture_needed();
	p = monitor_fixture_map(2 * SIZE);
	first = monitor_fixture_watch(p + row->first, SIZE);
	second = monitor_fixture_watch(p + row->second, SIZE);
	EXPECT(!watched_dontneed(p + row->first) && !watched_dontneed(p + row->second));
	watch_put(&first);
	watch_put(&second);
	EXPECT_EQ(monitor_watch((uintptr_t)p, SIZE, &first), -EAGAIN);
	EXPECT_EQ(monitor_watch((uintptr_t)p + SIZE, SIZE, &second), -EAGAIN);
	monitor_fixture_unmap(p, 2 * SIZE);
}

TEST(budget, "Watches beyond 1,024 are refused until a watch is put.")
{
	static struct watch watches[MONITOR_MAX_WATCHES];
	struct watch more;
	char *p;

	monitor_fixture_needed();
	p = monitor_fixture_map(SIZE);
	for (int i = 0; i < MONITOR_MAX_WATCHES; i++)
		watches[i] = monitor_fixture_watch(p, SIZE);
	EXPECT_EQ(monitor_watch((uintptr_t)p, SIZE, &more), -ENOSPC);
	watch_put(&watches[7]);
	more = monitor_fixture_watch(p, SIZE);
	watch_put(&more);
	for (int i = 0; i < MONITOR_MAX_WATCHES; i++)
		watch_put(&watches[i]);
	EXPECT_EQ(monitor_fixture_registered(p, SIZE), 0);
	monitor_fixture_unmap(p, SIZE);
}

static struct {
	_Atomic uintptr_t at;
	_Atomic size_t size;
	_Atomic int calls;
	char *_Atomic to_unmap;
	char thread[16];
} told;

static void told_note(uintptr_t at, size_t size)
{
	char *other = told.to_unmap;

	pthread_getname_np(pthread_self(), told.thread, sizeof(told.thread));
	if (other)
		munmap(other, SIZE);
	told.at = at;
	told.size = size;
	told.calls++;
}

static bool told_is_called(void *calls)
{
	return told.calls >= *(int *)calls;
}

TEST(told, "The owner is told the range of a stale watch, once, and not by the reader of events.")
{
	struct watch watch;
	int calls;
	char *p;

	monitor_fixture_needed();
	calls = told.calls + 1;
	monitor_on_stale(told_note);
	p = monitor_fixture_map(SIZE);
	watch = monitor_fixture_watch(p, SIZE);
	EXPECT(!munmap(p, PAGE));
	EXPECT(process_settles(told_is_called, &calls));
	EXPECT_EQ(told.at, (uintptr_t)p);
	EXPECT_EQ(told.size, SIZE);
	EXPECT(!strcmp(told.thread, "climport-stale"));
	EXPECT(!munmap(p + PAGE, PAGE));
	EXPECT(!watch_is_current(&watch));
	EXPECT_EQ(told.calls, calls);
	watch_put(&watch);
	monitor_on_stale(NULL);
}

TEST(told_unmaps, "The owner may unmap watched memory when told of a stale watch.")
{
	struct watch watch, other;
	int calls;
	char *p, *q;

	monitor_fixture_needed();
	calls = told.calls + 2;
	p = monitor_fixture_map(SIZE);
	q = monitor_fixture_map(SIZE);
	told.to_unmap = q;
	monitor_on_stale(told_note);
	watch = monitor_fixture_watch(p, SIZE);
	other = monitor_fixture_watch(q, SIZE);
	EXPECT(!munmap(p, PAGE));
	EXPECT(process_settles(told_is_called, &calls));
	EXPECT(!watch_is_current(&other));
	told.to_unmap = NULL;
	monitor_on_stale(NULL);
	watch_put(&watch);
	watch_put(&other);
}
