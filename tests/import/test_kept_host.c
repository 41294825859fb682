/* SPDX-License-Identifier: Apache-2.0 */
/* Host memory that stays exported (EXPORT_KEEP), on a fake of the kernel module and a fake CUDA. */
#include "fake_gdmabuf.h"
#include "harness.h"
#include "process.h"

#include "import/cache/cache.h"
#include "import/export/export.h"
#include "import/export/registration.h"
#include "util/log.h"

#include <errno.h>
#include <fake_cuda.h>
#include <fcntl.h>
#include <linux/gdmabuf.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE ((size_t)sysconf(_SC_PAGESIZE))
#define SIZE (4 * PAGE)

static uintptr_t kept_host_map(void)
{
	void *p = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	EXPECT(p != MAP_FAILED);
	return (uintptr_t)p;
}

static struct export_range kept_export(uintptr_t address, size_t size, unsigned int options)
{
	struct export_range range;

	EXPECT_EQ(export_dmabuf(address, size, options, &range), 0);
	return range;
}

static ino_t kept_inode(int fd)
{
	struct stat st;

	EXPECT_EQ(fstat(fd, &st), 0);
	return st.st_ino;
}

/* The dma-buf of an export, which is closed. */
static ino_t kept_once(uintptr_t address, size_t size)
{
	struct export_range range = kept_export(address, size, EXPORT_KEEP);
	ino_t inode = kept_inode(range.fd);

	EXPECT_EQ(lseek(range.fd, 0, SEEK_END), range.whole);
	close(range.fd);
	return inode;
}

static struct cache_stats kept_stats(void)
{
	struct cache_stats stats;

	export_stats(&stats);
	return stats;
}

static void kept_host_unmap(uintptr_t address)
{
	export_invalidate(address, SIZE);
	munmap((void *)address, SIZE);
}

TEST(shared, "A kept export of a part is another descriptor of the dma-buf, without a call of the "
	     "module or of CUDA.")
{
	uintptr_t p = kept_host_map();
	struct export_range whole, part;
	int calls, cuda;

	fake_cuda_reset(1);
	whole = kept_export(p, SIZE, EXPORT_KEEP);
	calls = fake_gdmabuf.calls;
	cuda = fake_cuda_calls(NULL);
	part = kept_export(p + PAGE + 8, 100, EXPORT_KEEP | EXPORT_MAPPABLE);
	EXPECT_EQ(fake_gdmabuf.calls, calls);
	EXPECT_EQ(fake_cuda_calls(NULL), cuda);
	EXPECT_EQ(kept_inode(part.fd), kept_inode(whole.fd));
	EXPECT_EQ(part.offset, PAGE + 8);
	EXPECT_EQ(part.whole, SIZE);
	EXPECT(fcntl(part.fd, F_GETFD) & FD_CLOEXEC);
	close(part.fd);
	close(whole.fd);
	kept_host_unmap(p);
}

TEST(counted, "Kept host memory is counted, until an invalidation, which leaves neither a "
	      "descriptor nor a watch.")
{
	uintptr_t p = kept_host_map();
	struct cache_stats before = kept_stats(), after;
	int fds, watches = fake_gdmabuf.watches;

	kept_once(p, PAGE);
	export_invalidate(p, PAGE);
	fds = process_count_descriptors();
	kept_once(p, SIZE);
	kept_once(p + PAGE, PAGE);
	EXPECT_EQ(process_count_descriptors(), fds + 1);
	EXPECT_EQ(fake_gdmabuf.watches, watches + 1);
	after = kept_stats();
	EXPECT_EQ(after.bytes_pinned, SIZE);
	EXPECT_EQ(after.bytes_idle, SIZE);
	EXPECT_EQ(after.misses - before.misses, 2);
	EXPECT_EQ(after.hits - before.hits, 1);
	export_invalidate(p + 3 * PAGE, 1);
	EXPECT_EQ(kept_stats().bytes_pinned, 0);
	EXPECT_EQ(process_count_descriptors(), fds);
	EXPECT_EQ(fake_gdmabuf.watches, watches);
	kept_host_unmap(p);
}

TEST(invalidated_in_use, "A dma-buf that is in use outlives the invalidation of its memory.")
{
	uintptr_t p = kept_host_map();
	struct export_range range = kept_export(p, SIZE, EXPORT_KEEP);

	export_invalidate(p, SIZE);
	EXPECT_EQ(fake_gdmabuf_pinned(), SIZE);
	EXPECT(kept_once(p, SIZE) != kept_inode(range.fd));
	close(range.fd);
	kept_host_unmap(p);
	EXPECT_EQ(fake_gdmabuf_pinned(), 0);
}

TEST(beside, "An export that is not kept, and one of CUDA memory, end no kept export.")
{
	uintptr_t p = kept_host_map(), gpu;

	fake_cuda_reset(1);
	gpu = fake_cuda_alloc(0, PAGE);
	kept_once(p, SIZE);
	close(kept_export(p, 2 * PAGE, 0).fd);
	close(kept_export(gpu, PAGE, 0).fd);
	EXPECT_EQ(kept_stats().bytes_pinned, SIZE);
	fake_cuda_free(gpu);
	kept_host_unmap(p);
}

TEST(read_only, "A read-only export is neither kept nor served by a kept one.")
{
	uintptr_t p = kept_host_map();
	ino_t kept = kept_once(p, SIZE);
	struct export_range range = kept_export(p, SIZE, EXPORT_KEEP | EXPORT_READ_ONLY);

	EXPECT_EQ(fake_gdmabuf.flags, GDMABUF_READ_ONLY);
	EXPECT(kept_inode(range.fd) != kept);
	EXPECT_EQ(kept_once(p, SIZE), kept);
	close(range.fd);
	EXPECT_EQ(fake_gdmabuf_pinned(), SIZE);
	kept_host_unmap(p);
}

TEST(changed, "When the address gets other pages, the next export is another dma-buf, and the old "
	      "one goes.")
{
	uintptr_t p = kept_host_map();
	uint64_t stale = kept_stats().stale;
	ino_t old = kept_once(p, SIZE);

	fake_gdmabuf_change((void *)(p + PAGE), 1);
	EXPECT(kept_once(p, SIZE) != old);
	EXPECT_EQ(kept_stats().stale - stale, 1);
	EXPECT_EQ(fake_gdmabuf_pinned(), SIZE);
	kept_host_unmap(p);
}

TEST(changed_elsewhere, "Kept memory whose address got other pages goes with the next registration "
			"of any address.")
{
	uintptr_t p = kept_host_map(), q = kept_host_map();
	int watches = fake_gdmabuf.watches;

	kept_once(p, SIZE);
	fake_gdmabuf_change((void *)p, SIZE);
	munmap((void *)p, SIZE);
	kept_once(q, PAGE);
	EXPECT_EQ(fake_gdmabuf_pinned(), PAGE);
	EXPECT_EQ(fake_gdmabuf.watches, watches + 1);
	kept_host_unmap(q);
}

static uintptr_t copied_at;
static int copies; /* to come */

/* The export gives the process a copy of a page. */
static void copy_a_page(void)
{
	if (!copies)
		return;
	copies--;
	fake_gdmabuf_change((void *)copied_at, PAGE);
}

/* The next @count exports give the address other pages.  Returns the exports so far. */
static int kept_copies_begin(uintptr_t p, int count, int *fds)
{
	kept_once(p, SIZE);
	export_invalidate(p, SIZE);
	*fds = process_count_descriptors();
	copied_at = p;
	copies = count;
	fake_gdmabuf.exporting = copy_a_page;
	return fake_gdmabuf.exports;
}

TEST(copied, "An export that itself gives the address other pages is made again, with a new watch.")
{
	uintptr_t p = kept_host_map();
	int fds, watches = fake_gdmabuf.watches, exports = kept_copies_begin(p, 1, &fds);
	ino_t made;

	made = kept_once(p, SIZE);
	fake_gdmabuf.exporting = NULL;
	EXPECT_EQ(fake_gdmabuf.exports - exports, 2);
	EXPECT_EQ(process_count_descriptors(), fds + 1);
	EXPECT_EQ(fake_gdmabuf.watches, watches + 1);
	EXPECT_EQ(kept_once(p, SIZE), made);
	kept_host_unmap(p);
}

TEST(copied_always,
     "If every attempt gives the address other pages, the export is not kept, and no "
     "watch is left.")
{
	uintptr_t p = kept_host_map();
	struct export_range range;
	int fds, watches = fake_gdmabuf.watches, exports = kept_copies_begin(p, 1000, &fds);

	EXPECT_EQ(export_dmabuf(p, SIZE, EXPORT_KEEP, &range), 0);
	fake_gdmabuf.exporting = NULL;
	EXPECT_EQ(fake_gdmabuf.exports - exports, 5);
	close(range.fd);
	EXPECT_EQ(process_count_descriptors(), fds);
	EXPECT_EQ(fake_gdmabuf.watches, watches);
	kept_host_unmap(p);
}

static const struct refused_row {
	const char *name;
	int error;
	int watch_error;
} refused_rows[] = {
	{ "export", EINTR, 0 },
	{ "watch", 0, EINTR },
};

TEST_EACH(
	refused, struct refused_row, refused_rows,
	"If the module refuses the export or the watch, neither a descriptor nor a watch is left.")
{
	uintptr_t p = kept_host_map();
	struct export_range range;
	int fds, watches = fake_gdmabuf.watches;

	kept_once(p, SIZE);
	export_invalidate(p, SIZE);
	fds = process_count_descriptors();
	fake_gdmabuf.error = row->error;
	fake_gdmabuf.watch_error = row->watch_error;
	EXPECT_EQ(export_dmabuf(p, SIZE, EXPORT_KEEP, &range), -(row->error + row->watch_error));
	fake_gdmabuf.error = fake_gdmabuf.watch_error = 0;
	EXPECT_EQ(process_count_descriptors(), fds);
	EXPECT_EQ(fake_gdmabuf.watches, watches);
	kept_host_unmap(p);
}

static const struct room_row {
	const char *name;
	unsigned int options;
} room_rows[] = {
	{ "plain", 0 },
	{ "kept", EXPORT_KEEP },
};

TEST_EACH(memlock, struct room_row, room_rows,
	  "At the limit of locked memory kept memory without users is given up, and the export "
	  "succeeds.")
{
	uintptr_t p = kept_host_map(), q = kept_host_map(), used = kept_host_map();
	struct export_range held = kept_export(used, PAGE, EXPORT_KEEP);

	kept_once(p, PAGE);
	kept_once(p + PAGE, 2 * PAGE);
	fake_gdmabuf.memlock = SIZE;
	close(kept_export(q, 3 * PAGE, row->options).fd);
	fake_gdmabuf.memlock = 0;
	EXPECT_EQ(fake_gdmabuf_pinned(), row->options ? SIZE : PAGE);
	close(held.fd);
	kept_host_unmap(p);
	kept_host_unmap(q);
	kept_host_unmap(used);
}

TEST_EACH(memlock_used, struct room_row, room_rows,
	  "At the limit of locked memory, with nothing to give up, the export is -EDQUOT, and the "
	  "sentence names the limit.")
{
	uintptr_t p = kept_host_map();
	struct export_range range = { -7, 7, 7 };
	int watches = fake_gdmabuf.watches;

	fake_gdmabuf.memlock = PAGE;
	EXPECT_EQ(export_dmabuf(p, SIZE, row->options, &range), -EDQUOT);
	fake_gdmabuf.memlock = 0;
	EXPECT(strstr(log_last(), "RLIMIT_MEMLOCK"));
	EXPECT_EQ(range.fd, -7);
	EXPECT_EQ(fake_gdmabuf.watches, watches);
	kept_host_unmap(p);
}

TEST(memlock_register, "At the limit of locked memory a registration, too, has kept memory given "
		       "up.")
{
	uintptr_t p = kept_host_map(), q = kept_host_map();
	struct registration registration;

	kept_once(p, SIZE);
	fake_gdmabuf.memlock = SIZE;
	EXPECT_EQ(export_register(q, SIZE, &registration), 0);
	fake_gdmabuf.memlock = 0;
	EXPECT_EQ(fake_gdmabuf_pinned(), SIZE);
	export_unregister(&registration);
	kept_host_unmap(p);
	kept_host_unmap(q);
}

static void kept_few(void)
{
	struct rlimit before;
	uintptr_t p[20];

	fake_gdmabuf_child();
	process_limit_descriptors(64, &before);
	registration_set_limits(false, UINT64_MAX, UINT64_MAX); /* looks at the limit anew */
	for (int i = 0; i < 20; i++) {
		p[i] = kept_host_map();
		kept_once(p[i], PAGE);
	}
	EXPECT_EQ(fake_gdmabuf_pinned(), 8 * PAGE);
	EXPECT_EQ(kept_stats().bytes_idle, 8 * PAGE);
}

TEST(few, "At most an eighth of the process's descriptors are kept.")
{
	test_in_child(kept_few);
}

static void kept_no_descriptors(void)
{
	uintptr_t p = kept_host_map(), q = kept_host_map();
	struct rlimit before;
	int count = 0;

	fake_gdmabuf_child();
	process_limit_descriptors(64, &before);
	for (size_t i = 0; i < 4; i++)
		kept_once(p + i * PAGE, PAGE);
	while (dup(0) >= 0)
		count++;
	EXPECT(count && errno == EMFILE);
	close(kept_export(q, PAGE, EXPORT_KEEP).fd);
	EXPECT(kept_stats().evictions > 0);
}

TEST(no_descriptors, "If the process has no descriptor left, kept memory is given up.")
{
	test_in_child(kept_no_descriptors);
}

static void kept_no_descriptors_for_gpu(void)
{
	uintptr_t p = kept_host_map(), gpu;
	struct registration registration;
	struct rlimit before;
	int count = 0;

	fake_gdmabuf_child();
	fake_cuda_reset(1);
	gpu = fake_cuda_alloc(0, PAGE);
	process_limit_descriptors(64, &before);
	for (size_t i = 0; i < 4; i++)
		kept_once(p + i * PAGE, PAGE);
	while (dup(0) >= 0)
		count++;
	EXPECT(count && errno == EMFILE);
	EXPECT_EQ(export_register(gpu, PAGE, &registration), 0);
	export_unregister(&registration);
}

TEST(no_descriptors_for_gpu, "If the process has no descriptor left for a registration of a GPU's "
			     "memory, kept memory of the "
			     "host is given up.")
{
	test_in_child(kept_no_descriptors_for_gpu);
}

TEST(limits, "Beyond the limits the memory that was kept first goes.")
{
	uintptr_t p = kept_host_map();

	for (size_t i = 0; i < 4; i++)
		kept_once(p + i * PAGE, PAGE);
	EXPECT_EQ(kept_stats().bytes_idle, 4 * PAGE);
	registration_set_limits(false, UINT64_MAX, 3);
	EXPECT_EQ(kept_stats().bytes_idle, 3 * PAGE);
	registration_set_limits(false, 2 * PAGE, UINT64_MAX);
	EXPECT_EQ(kept_stats().bytes_idle, 2 * PAGE);
	kept_once(p, PAGE);
	EXPECT_EQ(kept_stats().bytes_idle, 2 * PAGE);
	registration_set_limits(false, UINT64_MAX, UINT64_MAX);
	registration_drop_idle();
	EXPECT_EQ(kept_stats().bytes_pinned, 0);
	EXPECT_EQ(fake_gdmabuf_pinned(), 0);
	kept_host_unmap(p);
}

static uintptr_t inherited_at;
static ino_t inherited;
static const _Atomic uint32_t *inherited_status;

static void kept_in_child(void)
{
	int watches = fake_gdmabuf.watches;
	ino_t own;

	fake_gdmabuf_child();
	/* The status page is no memory of a child. */
	munmap((void *)((uintptr_t)inherited_status & ~(PAGE - 1)), PAGE);
	EXPECT_EQ(kept_stats().bytes_pinned, 0);
	own = kept_once(inherited_at, SIZE);
	EXPECT(own != inherited);
	EXPECT_EQ(kept_once(inherited_at, SIZE), own);
	EXPECT_EQ(fake_gdmabuf.watches, watches + 1);
	export_invalidate(0, SIZE_MAX);
	EXPECT_EQ(fake_gdmabuf.watches, watches);
}

TEST(forked,
     "A child has none of the memory that the parent uses, and leaves the parent's watches.")
{
	struct cache_ref ref;

	inherited_at = kept_host_map();
	inherited = kept_once(inherited_at, SIZE);
	EXPECT(registration_find(REGISTRATION_OF_HOST, REGISTRATION_OF_HOST, inherited_at, SIZE,
				 &ref));
	inherited_status = ref.pin->status;
	test_in_child(kept_in_child);
	EXPECT_EQ(kept_once(inherited_at, SIZE), inherited);
	registration_put(&ref);
	kept_host_unmap(inherited_at);
}

/* Each number is another file's afterwards. */
static void kept_is_closed(void)
{
	enum { LAST = 64 };
	uintptr_t p = kept_host_map();
	ino_t old, made;
	int others[LAST];

	fake_gdmabuf_child();
	old = kept_once(p, SIZE);
	for (int fd = 3; fd < LAST; fd++)
		others[fd] = close(fd) ? -1 : memfd_create("other", MFD_CLOEXEC);
	made = kept_once(p, SIZE);
	EXPECT(made != old);
	EXPECT_EQ(kept_once(p, SIZE), made);
	export_invalidate(0, SIZE_MAX);
	for (int fd = 3; fd < LAST; fd++)
		EXPECT(others[fd] < 0 || !close(others[fd]));
}

TEST(closed, "A program may close all descriptors and reuse the numbers: memory is kept anew, and "
	     "no foreign descriptor is used or closed.")
{
	test_in_child(kept_is_closed);
}

enum { THREADS = 4, ROUNDS = 200 };

static uintptr_t shared_at;
static ino_t seen[ROUNDS][THREADS];
static pthread_barrier_t at_once;

static void *kept_by_thread(void *number)
{
	const size_t thread = (size_t)number;

	for (int round = 0; round < ROUNDS; round++) {
		pthread_barrier_wait(&at_once);
		seen[round][thread] = kept_once(shared_at, SIZE);
		pthread_barrier_wait(&at_once);
		if (!thread)
			export_invalidate(shared_at, SIZE);
	}
	return NULL;
}

static bool kept_may_lock(int fd)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

	EXPECT_EQ(fcntl(fd, F_GETLK, &lock), 0);
	return lock.l_type == F_UNLCK;
}

/* Whether another process could lock the file. */
static bool kept_is_unlocked(int fd)
{
	pid_t child = fork();
	int status;

	if (!child)
		_exit(kept_may_lock(fd));
	EXPECT_EQ(waitpid(child, &status, 0), child);
	EXPECT(WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* Each number is another file's afterwards, which is locked. */
static void kept_locks_are_kept(void)
{
	enum { LAST = 64 };
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	uintptr_t p = kept_host_map();
	int files[LAST];

	fake_gdmabuf_child();
	kept_once(p, SIZE);
	for (int fd = 3; fd < LAST; fd++) {
		close(fd);
		files[fd] = memfd_create("locked", MFD_CLOEXEC);
		EXPECT_EQ(fcntl(files[fd], F_SETLK, &lock), 0);
	}
	kept_once(p, SIZE);
	for (int fd = 3; fd < LAST; fd++)
		EXPECT(!kept_is_unlocked(files[fd]));
}

TEST(locks,
     "A file that the program opens at the number of a closed descriptor keeps its record locks.")
{
	test_in_child(kept_locks_are_kept);
}

TEST(before_fork, "What is kept and not in use ends before fork(), which would copy its pages.")
{
	uintptr_t p = kept_host_map();
	int status, watches = fake_gdmabuf.watches;
	pid_t child;

	kept_once(p, SIZE);
	EXPECT_EQ(fake_gdmabuf.watches, watches + 1);
	child = fork();
	if (!child)
		_exit(0);
	EXPECT_EQ(waitpid(child, &status, 0), child);
	EXPECT_EQ(fake_gdmabuf.watches, watches);
	kept_host_unmap(p);
}

TEST(no_watches, "What cannot be watched is exported, and not kept.")
{
	uintptr_t p = kept_host_map();
	ino_t inode;

	fake_gdmabuf.watch_error = EDQUOT;
	inode = kept_once(p, SIZE);
	EXPECT(kept_once(p, SIZE) != inode);
	fake_gdmabuf.watch_error = 0;
	EXPECT_EQ(kept_stats().bytes_pinned, 0);
	kept_host_unmap(p);
}

TEST(threads, "Threads that export one range at once share one dma-buf, and one watch is left.")
{
	int watches = fake_gdmabuf.watches;

	shared_at = kept_host_map();
	pthread_barrier_init(&at_once, NULL, THREADS);
	process_run_threads(THREADS, kept_by_thread);
	for (int round = 0; round < ROUNDS; round++)
		for (int thread = 1; thread < THREADS; thread++)
			EXPECT_EQ(seen[round][thread], seen[round][0]);
	kept_once(shared_at, SIZE);
	EXPECT_EQ(fake_gdmabuf.watches, watches + 1);
	EXPECT_EQ(fake_gdmabuf_pinned(), SIZE);
	kept_host_unmap(shared_at);
}
