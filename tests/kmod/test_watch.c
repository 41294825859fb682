/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watches of host memory (GDMABUF_WATCH_HOST): what makes a watch stale, what leaves a watch
 * current, limits, and ends.  A pin of another driver is played by an export of a second context.
 */
#include "host_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#endif

/* A context, a range of LENGTH bytes, and a watch of the range. */
struct watched {
	int ctx;
	const volatile uint32_t *status;
	unsigned char *p;
	struct gdm_watch watch;
};

static struct watched watched_begin(unsigned char *p)
{
	struct watched w = { .ctx = gdm_open(), .p = p };

	w.status = gdm_status(w.ctx);
	EXPECT_EQ(gdm_watch_host(w.ctx, p, LENGTH, &w.watch), 0);
	EXPECT(gdm_is_current(w.status, &w.watch));
	return w;
}

static bool watched_is_current(const struct watched *w)
{
	return gdm_is_current(w->status, &w->watch);
}

static void watched_end(const struct watched *w)
{
	EXPECT_EQ(gdm_unwatch(w->ctx, &w->watch), 0);
	munmap((void *)(uintptr_t)w->status, STATUS_BYTES);
	close(w->ctx);
}

/* ---- memory ---- */

/* Reads which page frames the range has: the kernel tells root. */
static void frames_read(const unsigned char *p, uint64_t frames[PAGES])
{
	const size_t bytes = PAGES * sizeof(*frames);
	int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);

	EXPECT(fd >= 0);
	EXPECT_EQ(pread(fd, frames, bytes, (uintptr_t)p / PAGE * sizeof(*frames)), bytes);
	close(fd);
	for (int i = 0; i < PAGES; i++) {
		frames[i] &= (1ull << 55) - 1;
		EXPECT(frames[i]);
	}
}

static int watch_file = -1; /* of the last map_file() */

static unsigned char *map_anonymous(void)
{
	return pages_new(LENGTH, 1);
}

static unsigned char *map_file(int flags)
{
	unsigned char *p;

	if (watch_file >= 0)
		close(watch_file);
	watch_file = memfd_create("watched", MFD_CLOEXEC);
	EXPECT(watch_file >= 0 && !ftruncate(watch_file, LENGTH));
	p = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, flags, watch_file, 0);
	EXPECT(p != MAP_FAILED);
	pattern_fill(p, LENGTH);
	return p;
}

static unsigned char *map_shared(void)
{
	return map_file(MAP_SHARED);
}

/* The pages are copies of the file's. */
static unsigned char *map_private(void)
{
	return map_file(MAP_PRIVATE);
}

/* The pages are the file's. */
static unsigned char *map_private_unwritten(void)
{
	unsigned char *shared = map_file(MAP_SHARED), *p;

	p = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_PRIVATE, watch_file, 0);
	EXPECT(p != MAP_FAILED);
	EXPECT_EQ(pattern_mismatches(p, LENGTH), 0);
	munmap(shared, LENGTH);
	return p;
}

static unsigned char *map_heap(void)
{
	uintptr_t end = (uintptr_t)sbrk(0);
	unsigned char *p = (unsigned char *)((end + PAGE - 1) & -(uintptr_t)PAGE);

	EXPECT(!brk(p + LENGTH));
	pattern_fill(p, LENGTH);
	return p;
}

static unsigned char *map_system_v(void)
{
	int id = shmget(IPC_PRIVATE, LENGTH, 0600);
	unsigned char *p = shmat(id, NULL, 0);

	EXPECT(id >= 0 && p != (void *)-1);
	EXPECT_EQ(shmctl(id, IPC_RMID, NULL), 0);
	pattern_fill(p, LENGTH);
	return p;
}

static unsigned char *map_transparent_huge(void)
{
	unsigned char *p;

	gdm_need_huge_pages();
	p = huge_pages_new(1, 1);
	if (!p)
		test_skip("the kernel gives no huge page");
	return p;
}

static unsigned char *map_hugetlb(void)
{
	unsigned char *p;
	FILE *f;

	gdm_need_huge_pages();
	f = fopen("/proc/sys/vm/nr_hugepages", "we");
	EXPECT(f && fputs("2\n", f) >= 0 && !fclose(f));
	if (watch_file >= 0)
		close(watch_file);
	watch_file = memfd_create("watched", MFD_CLOEXEC | MFD_HUGETLB);
	if (watch_file < 0 || ftruncate(watch_file, HUGE_PAGE))
		test_skip("hugetlb: %s", strerror(errno));
	p = mmap(NULL, HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, watch_file, 0);
	if (p == MAP_FAILED)
		test_skip("hugetlb: %s", strerror(errno));
	pattern_fill(p, LENGTH);
	return p;
}

/* ---- changes ---- */

static void take_munmap(unsigned char *p)
{
	EXPECT_EQ(munmap(p + PAGE, PAGE), 0);
}

static void take_munmap_huge(unsigned char *p)
{
	EXPECT_EQ(munmap(p, HUGE_PAGE), 0);
}

static void take_map_over(unsigned char *p)
{
	EXPECT(mmap(p + PAGE, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) !=
	       MAP_FAILED);
}

static void take_move(unsigned char *p)
{
	EXPECT(mremap(p, LENGTH, LENGTH, MREMAP_MAYMOVE | MREMAP_FIXED, pages_new(LENGTH, 0)) !=
	       MAP_FAILED);
}

static void take_move_and_keep(unsigned char *p)
{
	EXPECT(mremap(p, LENGTH, LENGTH, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, NULL) != MAP_FAILED);
}

static void take_move_over(unsigned char *p)
{
	EXPECT(mremap(pages_new(PAGE, 1), PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, p + PAGE) !=
	       MAP_FAILED);
}

static void take_shrink(unsigned char *p)
{
	EXPECT(mremap(p, LENGTH, LENGTH - PAGE, 0) != MAP_FAILED);
}

static void take_advise(unsigned char *p, int advice)
{
	if (madvise(p + PAGE, PAGE, advice))
		test_skip("madvise: %s", strerror(errno));
}

static void take_dontneed(unsigned char *p)
{
	take_advise(p, MADV_DONTNEED);
}

static void take_free(unsigned char *p)
{
	take_advise(p, MADV_FREE);
}

static void take_remove(unsigned char *p)
{
	take_advise(p, MADV_REMOVE);
}

static void take_guard(unsigned char *p)
{
	take_advise(p, MADV_GUARD_INSTALL);
}

static void take_brk(unsigned char *p)
{
	EXPECT_EQ(brk(p + LENGTH - PAGE), 0);
}

static void take_shm_remap(unsigned char *p)
{
	int id = shmget(IPC_PRIVATE, PAGE, 0600);

	EXPECT(shmat(id, p + PAGE, SHM_REMAP) == p + PAGE);
	EXPECT_EQ(shmctl(id, IPC_RMID, NULL), 0);
}

static void take_shmdt(unsigned char *p)
{
	EXPECT_EQ(shmdt(p), 0);
}

static void take_punch(unsigned char *p)
{
	(void)p;
	EXPECT_EQ(fallocate(watch_file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, PAGE, PAGE), 0);
}

static void take_punch_huge(unsigned char *p)
{
	(void)p;
	EXPECT_EQ(fallocate(watch_file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, HUGE_PAGE),
		  0);
}

static void take_truncate(unsigned char *p)
{
	(void)p;
	EXPECT_EQ(ftruncate(watch_file, 0), 0);
}

static void truncate_as_child(void *unused)
{
	take_truncate(unused);
}

static void take_truncate_elsewhere(unsigned char *p)
{
	EXPECT_EQ(in_child(truncate_as_child, p), 0);
}

static void take_write(unsigned char *p)
{
	p[PAGE]++;
}

/* Runs @body in a process that shares the memory; returns the child's status. */
static int in_child_sharing(int (*body)(void *), void *arg)
{
	unsigned char *stack = pages_new(LENGTH, 0);
	int status;
	pid_t pid = clone(body, stack + LENGTH, CLONE_VM | SIGCHLD, arg);

	EXPECT(pid > 0);
	EXPECT_EQ(waitpid(pid, &status, 0), pid);
	munmap(stack, LENGTH);
	return status;
}

static int munmap_as_sharer(void *p)
{
	return munmap(p, LENGTH) != 0;
}

static void take_by_sharer(unsigned char *p)
{
	EXPECT_EQ(in_child_sharing(munmap_as_sharer, p), 0);
}

struct watch_change {
	const char *name;
	unsigned char *(*map)(void);
	void (*change)(unsigned char *p);
};

static const struct watch_change changes[] = {
	{ "munmap", map_anonymous, take_munmap },
	{ "map_over", map_anonymous, take_map_over },
	{ "move", map_anonymous, take_move },
	{ "move_and_keep", map_anonymous, take_move_and_keep },
	{ "move_over", map_anonymous, take_move_over },
	{ "shrink", map_anonymous, take_shrink },
	{ "dontneed", map_anonymous, take_dontneed },
	{ "free", map_anonymous, take_free },
	{ "guard", map_anonymous, take_guard },
	{ "sharer", map_anonymous, take_by_sharer },
	{ "brk", map_heap, take_brk },
	{ "heap_dontneed", map_heap, take_dontneed },
	{ "shm_remap", map_system_v, take_shm_remap },
	{ "shm_remap_anonymous", map_anonymous, take_shm_remap },
	{ "shmdt", map_system_v, take_shmdt },
	{ "shared_munmap", map_shared, take_munmap },
	{ "shared_dontneed", map_shared, take_dontneed },
	{ "shared_remove", map_shared, take_remove },
	{ "shared_punch", map_shared, take_punch },
	{ "shared_truncate", map_shared, take_truncate },
	{ "shared_truncate_elsewhere", map_shared, take_truncate_elsewhere },
	{ "private_dontneed", map_private, take_dontneed },
	{ "private_truncate", map_private, take_truncate },
	{ "private_copy", map_private_unwritten, take_write },
	{ "huge_dontneed", map_transparent_huge, take_dontneed },
	{ "huge_munmap", map_transparent_huge, take_munmap },
	{ "hugetlb_munmap", map_hugetlb, take_munmap_huge },
	{ "hugetlb_punch", map_hugetlb, take_punch_huge },
};

TEST_EACH(watch_stale, struct watch_change, changes,
	  "A watch is stale at once, and for ever, when the address gets other pages.")
{
	struct watched w = watched_begin(row->map());

	row->change(w.p);
	EXPECT(!watched_is_current(&w));
	watched_end(&w);
}

static void harmless_access(unsigned char *p)
{
	EXPECT_EQ(pattern_mismatches(p, LENGTH), 0);
	memset(p, 7, LENGTH);
}

static void harmless_protect(unsigned char *p)
{
	EXPECT_EQ(mprotect(p, LENGTH, PROT_NONE), 0);
	EXPECT_EQ(mprotect(p, LENGTH, PROT_READ), 0);
	EXPECT_EQ(mprotect(p, LENGTH, PROT_READ | PROT_WRITE), 0);
	memset(p, 7, LENGTH);
}

static void harmless_lock(unsigned char *p)
{
	EXPECT_EQ(mlock(p, LENGTH), 0);
	EXPECT_EQ(munlock(p, LENGTH), 0);
}

static void harmless_export(unsigned char *p)
{
	int ctx = gdm_open();

	EXPECT_EQ(gdm_export_host(ctx, p, LENGTH, 0, NULL), 0);
	close(ctx);
}

static void child_overwrites(void *p)
{
	memset(p, 55, LENGTH);
}

/*
 * The kernel makes the copies for the child; but behind the child's end the parent's write gets a
 * copy if the kernel has not noticed yet that the page is the parent's alone.
 */
static void harmless_fork(unsigned char *p)
{
	EXPECT_EQ(in_child(child_overwrites, p), 0);
	memset(p, 7, LENGTH);
}

static void harmless_neighbour(unsigned char *p)
{
	void *next = mmap(p + LENGTH, PAGE, PROT_READ,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	if (next != MAP_FAILED)
		EXPECT_EQ(munmap(next, PAGE), 0);
}

static const struct watch_change no_changes[] = {
	{ "access", map_anonymous, harmless_access },
	{ "protect", map_anonymous, harmless_protect },
	{ "lock", map_anonymous, harmless_lock },
	{ "export", map_anonymous, harmless_export },
	{ "fork", map_anonymous, harmless_fork },
	{ "neighbour", map_anonymous, harmless_neighbour },
	{ "shared_access", map_shared, harmless_access },
	{ "shared_export", map_shared, harmless_export },
	{ "private_export", map_private, harmless_export },
	{ "heap_access", map_heap, harmless_access },
};

TEST_EACH(watch_current, struct watch_change, no_changes,
	  "A watch stays current as long as the pages stay at the address.")
{
	uint64_t before[PAGES], after[PAGES];
	struct watched w = watched_begin(row->map());

	frames_read(w.p, before);
	row->change(w.p);
	frames_read(w.p, after);
	EXPECT(watched_is_current(&w) || memcmp(before, after, sizeof(before)));
	munmap(w.p, LENGTH);
	EXPECT(!watched_is_current(&w));
	watched_end(&w);
}

/* ---- watch, then pin ---- */

/* A pin of another driver, and the bytes that the driver sees. */
struct pin {
	int ctx, fd;
	unsigned char *view;
};

static struct pin pin_new(unsigned char *p)
{
	struct pin pin = { .ctx = gdm_open() };

	EXPECT_EQ(gdm_export_host(pin.ctx, p, LENGTH, 0, &pin.fd), 0);
	pin.view = dmabuf_map(pin.fd, LENGTH, PROT_READ);
	EXPECT(pin.view);
	return pin;
}

static void pin_free(struct pin *pin)
{
	munmap(pin->view, LENGTH);
	close(pin->fd);
	close(pin->ctx);
}

/* Whether the driver sees a write of the program. */
static bool pin_is_of(const struct pin *pin, unsigned char *p)
{
	unsigned char *at = p + PAGE;

	++*at;
	return pin->view[PAGE] == *at;
}

static void pin_again_stays_current(unsigned char *p)
{
	struct watched w = watched_begin(p);
	struct pin pin = pin_new(p);

	EXPECT(pin_is_of(&pin, p));
	EXPECT(watched_is_current(&w));
	pin_free(&pin);
	watched_end(&w);
}

static pid_t child_that_waits(int pipes[2])
{
	char byte;
	pid_t pid;

	EXPECT_EQ(pipe(pipes), 0);
	pid = fork();
	EXPECT(pid >= 0);
	if (!pid) {
		close(pipes[1]);
		_exit(read(pipes[0], &byte, 1) != 0);
	}
	return pid;
}

static void child_that_waits_end(pid_t pid, int pipes[2])
{
	close(pipes[0]);
	close(pipes[1]);
	EXPECT_EQ(waitpid(pid, NULL, 0), pid);
}

TEST(watch_fork_after_pin,
     "After fork() a watch of pinned memory stays current, and the driver sees the writes of the "
     "parent.")
{
	unsigned char *p = map_anonymous();
	struct watched w = watched_begin(p);
	struct pin pin = pin_new(p);
	int pipes[2];
	pid_t pid = child_that_waits(pipes);

	EXPECT(pin_is_of(&pin, p));
	EXPECT(watched_is_current(&w));
	child_that_waits_end(pid, pipes);
	pin_free(&pin);
	watched_end(&w);
}

TEST(watch_fork_before_pin,
     "If a child is forked between the watch and the pin, a current watch is of the pinned pages.")
{
	unsigned char *p = map_anonymous();
	struct watched w = watched_begin(p);
	int pipes[2];
	pid_t pid = child_that_waits(pipes);
	struct pin pin = pin_new(p);

	EXPECT(pin_is_of(&pin, p) || !watched_is_current(&w));
	pin_again_stays_current(p);
	child_that_waits_end(pid, pipes);
	pin_free(&pin);
	watched_end(&w);
}

TEST(watch_fork_without_pin,
     "After fork() a write that gives the parent a copy of the page makes the watch stale.")
{
	struct watched w = watched_begin(map_anonymous());
	int pipes[2];
	pid_t pid = child_that_waits(pipes);

	w.p[PAGE]++;
	EXPECT(!watched_is_current(&w));
	child_that_waits_end(pid, pipes);
	watched_end(&w);
}

TEST(watch_pin_copies,
     "If the pin gives the process private copies of a file's pages, a second watch and pin stay "
     "current.")
{
	unsigned char *p = map_private_unwritten();
	struct watched w = watched_begin(p);
	struct pin pin = pin_new(p);

	EXPECT(pin_is_of(&pin, p) || !watched_is_current(&w));
	pin_again_stays_current(p);
	pin_free(&pin);
	watched_end(&w);
}

TEST(watch_new_pages, "A pin that brings the pages into memory leaves the watch current.")
{
	pin_again_stays_current(pages_new(LENGTH, 0));
}

/* ---- a process that shares the memory ---- */

enum { SHARED = 2 << 20 };

static atomic_bool sharer_runs;

static int munmap_and_say(void *p)
{
	atomic_store(&sharer_runs, true);
	munmap(p, SHARED);
	_exit(0);
}

/* Kills the sharer after a while.  True if the memory is gone. */
static bool kill_in_munmap(unsigned char *p, unsigned char *stack, unsigned int delay)
{
	pid_t pid;
	unsigned char in_core;

	atomic_store(&sharer_runs, false);
	pid = clone(munmap_and_say, stack + LENGTH, CLONE_VM | SIGCHLD, p);
	EXPECT(pid > 0);
	while (!atomic_load(&sharer_runs))
		sched_yield();
	for (volatile unsigned int i = 0; i < delay; i++)
		;
	kill(pid, SIGKILL);
	EXPECT_EQ(waitpid(pid, NULL, 0), pid);
	return mincore(p, PAGE, &in_core) && errno == ENOMEM;
}

TEST(watch_killed_in_munmap,
     "A watch is stale if a process that shares the memory is killed while unmapping.")
{
	unsigned char *stack = pages_new(LENGTH, 0);
	int ctx = gdm_open(), gone = 0;
	const volatile uint32_t *status = gdm_status(ctx);

	for (unsigned int i = 0; i < 300; i++) {
		unsigned char *p = pages_new(SHARED, 0);
		struct gdm_watch watch;

		memset(p, 1, SHARED);
		EXPECT_EQ(gdm_watch_host(ctx, p, SHARED, &watch), 0);
		if (kill_in_munmap(p, stack, i * 7919 % 30000)) {
			gone++;
			EXPECT(!gdm_is_current(status, &watch));
		} else {
			munmap(p, SHARED);
		}
		EXPECT_EQ(gdm_unwatch(ctx, &watch), 0);
	}
	printf("# %d of 300 unmapped\n", gone);
	EXPECT(gone);
	close(ctx);
	munmap(stack, LENGTH);
}

/* ---- the call ---- */

struct bad_range {
	const char *name;
	uint64_t address, length;
	int error;
};

static const struct bad_range bad_ranges[] = {
	{ "empty", GPU_PAGE, 0, -EINVAL },
	{ "unaligned", GPU_PAGE + 8, GPU_PAGE, -EINVAL },
	{ "length", GPU_PAGE, GPU_PAGE + 8, -EINVAL },
	{ "wraps", -(uint64_t)GPU_PAGE, 2 * GPU_PAGE, -EINVAL },
	{ "kernel", 0xffff888000000000, GPU_PAGE, -EFAULT },
	{ "tagged", 0x0b00000000010000, GPU_PAGE, -EFAULT },
	{ "into_kernel", GPU_PAGE, 0xffff888000000000, -EFAULT },
};

TEST_EACH(watch_range, struct bad_range, bad_ranges,
	  "A watch of a range that no process can have fails, and uses no slot.")
{
	struct gdmabuf_watch_host c = { .size = sizeof(c),
					.address = row->address,
					.length = row->length };
	struct gdm_watch watch;
	int ctx = gdm_open();

	EXPECT_EQ(gdm_call(ctx, GDMABUF_WATCH_HOST, &c), row->error);
	EXPECT_EQ(gdm_watch_host(ctx, pages_new(PAGE, 0), PAGE, &watch), 0);
	EXPECT_EQ(watch.slot, 0);
	close(ctx);
}

TEST(watch_no_memory, "A watch of an address without memory tells of memory that comes and goes.")
{
	unsigned char *p = pages_new(LENGTH, 0);
	struct watched w = watched_begin(p);

	munmap(p, LENGTH);
	EXPECT_EQ(gdm_unwatch(w.ctx, &w.watch), 0);
	EXPECT_EQ(gdm_watch_host(w.ctx, p, LENGTH, &w.watch), 0);
	EXPECT(mmap(p, LENGTH, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
		    0) == p);
	*p = 1;
	munmap(p, LENGTH);
	EXPECT(!watched_is_current(&w));
	watched_end(&w);
}

TEST(watch_overlap, "Watches of one range are apart: each has a slot, and ends alone.")
{
	struct watched w = watched_begin(map_anonymous());
	struct gdm_watch other;

	EXPECT_EQ(gdm_watch_host(w.ctx, w.p + PAGE, LENGTH - PAGE, &other), 0);
	EXPECT(other.slot != w.watch.slot);
	EXPECT_EQ(gdm_unwatch(w.ctx, &other), 0);
	EXPECT(watched_is_current(&w));
	take_munmap(w.p);
	EXPECT(!watched_is_current(&w));
	watched_end(&w);
}

TEST(watch_unwatch, "After GDMABUF_UNWATCH_HOST the word differs, and the watch is unknown.")
{
	struct watched w = watched_begin(map_anonymous());
	struct gdm_watch other = w.watch;

	other.generation += 2;
	EXPECT_EQ(gdm_unwatch(w.ctx, &other), -ENOENT);
	EXPECT(watched_is_current(&w));
	EXPECT_EQ(gdm_unwatch(w.ctx, &w.watch), 0);
	EXPECT(!watched_is_current(&w));
	EXPECT_EQ(gdm_unwatch(w.ctx, &w.watch), -ENOENT);
	EXPECT_EQ(gdm_watch_host(w.ctx, w.p, LENGTH, &other), 0);
	EXPECT(other.slot == w.watch.slot && other.generation != w.watch.generation);
	EXPECT_EQ(gdm_unwatch(w.ctx, &w.watch), -ENOENT);
	EXPECT(gdm_is_current(w.status, &other));
	w.watch = other;
	watched_end(&w);
}

/* Fills a context of a process that has no other watch. */
static int watches_fill(struct gdm_watch *watches, unsigned char *p)
{
	int ctx = gdm_open();

	for (int i = 0; i < WATCHES; i++)
		EXPECT_EQ(gdm_watch_host(ctx, p, LENGTH, &watches[i]), 0);
	return ctx;
}

static void watches_at_limit(void *unused)
{
	static struct gdm_watch watches[WATCHES];
	unsigned char *p = map_anonymous();
	int ctx = watches_fill(watches, p);

	(void)unused;
	EXPECT_EQ(gdm_watch_host(ctx, p, LENGTH, &watches[0]), -EDQUOT);
	EXPECT_EQ(gdm_export_host(ctx, p, LENGTH, 0, NULL), 0);
	munmap(p, LENGTH);
	EXPECT_EQ(gdm_watch_host(ctx, p, LENGTH, &watches[0]), -EDQUOT);
	EXPECT_EQ(gdm_unwatch(ctx, &watches[7]), 0);
	EXPECT_EQ(gdm_watch_host(ctx, p, LENGTH, &watches[7]), 0);
	EXPECT_EQ(gdm_watch_host(ctx, p, LENGTH, &watches[0]), -EDQUOT);
	_exit(0);
}

TEST(watch_limit, "A watch beyond out_watches fails with EDQUOT, until another ends.")
{
	EXPECT_EQ(in_child(watches_at_limit, NULL), 0);
}

static void watches_at_limit_of_process(void *unused)
{
	static struct gdm_watch watches[WATCHES];
	unsigned char *p = map_anonymous();
	int second = gdm_open();

	(void)unused;
	watches_fill(watches, p);
	EXPECT_EQ(gdm_watch_host(second, p, LENGTH, &watches[0]), -EDQUOT);
	munmap(p, LENGTH);
	EXPECT_EQ(gdm_watch_host(second, p, LENGTH, &watches[0]), 0);
	_exit(0);
}

TEST(watch_limit_of_process,
     "All contexts of a process together have out_watches current watches at most, so that no "
     "change of memory takes long; stale ones do not count.")
{
	EXPECT_EQ(in_child(watches_at_limit_of_process, NULL), 0);
}

static void watch_as_user(void *p)
{
	int ctx = gdm_open();
	struct gdm_watch watch;

	become_user(0);
	if (gdm_export_host(ctx, p, LENGTH, 0, NULL) != -EDQUOT)
		_exit(1);
	if (gdm_watch_host(ctx, p, LENGTH, &watch))
		_exit(2);
}

TEST(watch_pins_nothing, "A watch pins nothing, and needs no RLIMIT_MEMLOCK.")
{
	long long pinned = gdm_pinned_pages();
	struct watched w = watched_begin(map_anonymous());

	EXPECT_EQ(gdm_pinned_pages(), pinned);
	watched_end(&w);
	EXPECT_EQ(in_child(watch_as_user, w.p), 0);
}

TEST(watch_no_answer, "If the answer cannot be written, the call fails and no watch is left.")
{
	struct gdmabuf_watch_host *c = (void *)pages_new(PAGE, 0);
	long long before = gdm_read_total("watches");
	int ctx = gdm_open();

	*c = (struct gdmabuf_watch_host){ .size = sizeof(*c),
					  .address = (uintptr_t)c,
					  .length = PAGE };
	mprotect(c, PAGE, PROT_READ);
	EXPECT_EQ(gdm_call(ctx, GDMABUF_WATCH_HOST, c), -EFAULT);
	EXPECT_EQ(gdm_read_total("watches"), before);
	close(ctx);
}

/* ---- ends ---- */

TEST(watch_close, "The close of the context ends all watches, stale and current.")
{
	long long before = gdm_read_total("watches");
	unsigned char *p = map_anonymous();
	int ctx = gdm_open();
	struct gdm_watch watch;

	for (int i = 0; i < 64; i++)
		EXPECT_EQ(gdm_watch_host(ctx, p + (size_t)i * PAGE, PAGE, &watch), 0);
	munmap(p, LENGTH / 2);
	EXPECT_EQ(gdm_read_total("watches"), before + 64);
	close(ctx);
	EXPECT_EQ(gdm_read_total("watches"), before);
	munmap(p + LENGTH / 2, LENGTH / 2);
}

static void watch_in_child(void *arg)
{
	int ctx = gdm_open();
	struct gdm_watch watch;

	(void)arg;
	for (int i = 0; i < 100; i++)
		if (gdm_watch_host(ctx, map_anonymous(), LENGTH, &watch))
			_exit(2);
}

TEST(watch_exit, "A process that exits leaves no watch.")
{
	long long before = gdm_read_total("watches");

	EXPECT_EQ(in_child(watch_in_child, NULL), 0);
	EXPECT_EQ(gdm_read_total("watches"), before);
}

static void watch_and_exec(void *unused)
{
	int ctx = gdm_open();
	struct gdm_watch watch;

	(void)unused;
	if (gdm_watch_host(ctx, map_anonymous(), LENGTH, &watch) || fcntl(ctx, F_SETFD, 0))
		_exit(1);
	execl("/bin/true", "true", NULL);
	_exit(2);
}

TEST(watch_exec, "A process that executes another program with the context open leaves no watch.")
{
	long long before = gdm_read_total("watches");

	EXPECT_EQ(in_child(watch_and_exec, NULL), 0);
	EXPECT_EQ(gdm_read_total("watches"), before);
}

static void watch_and_pass(void *arg)
{
	int *sockets = arg, ctx = gdm_open();
	struct gdm_watch watch;

	if (gdm_watch_host(ctx, map_anonymous(), LENGTH, &watch))
		_exit(1);
	send_fd(sockets[0], ctx);
}

TEST(watch_passed_on, "A context that outlives its owner keeps watches until the last close.")
{
	long long before = gdm_read_total("watches");
	int sockets[2], ctx;

	EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
	EXPECT_EQ(in_child(watch_and_pass, sockets), 0);
	ctx = receive_fd(sockets[1]);
	EXPECT_EQ(gdm_read_total("watches"), before + 1);
	close(ctx);
	EXPECT_EQ(gdm_read_total("watches"), before);
	close(sockets[0]);
	close(sockets[1]);
}

static int context_with_watches(void)
{
	int ctx = gdm_open();
	struct gdm_watch watch;

	for (int i = 0; i < 64; i++)
		EXPECT_EQ(gdm_watch_host(ctx, map_anonymous(), LENGTH, &watch), 0);
	return ctx;
}

TEST(watch_close_while_owner_remaps,
     "The last close of a context ends while the threads of its process remap without pause.")
{
	long long before = gdm_read_total("watches");
	int ctx, ended, goes_on;
	struct remapper *remapper = remapper_start(context_with_watches, &ctx);

	ended = close_elsewhere_ends(ctx);
	goes_on = remapper_goes_on(remapper, 1);
	remapper_stop(remapper);
	EXPECT(goes_on);
	EXPECT(ended);
	EXPECT_EQ(gdm_read_total("watches"), before);
}
