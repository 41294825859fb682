/* SPDX-License-Identifier: Apache-2.0 */
/* Exports of host memory and RLIMIT_MEMLOCK: how pages are charged to the user. */
#include "host_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void export_beyond_limit(void *arg)
{
	(void)arg;
	int ctx = gdm_open();
	unsigned char *p = pages_new(LENGTH, 1);
	struct gdm_export e;

	become_user(LENGTH / 2);
	if (gdm_export_host(ctx, p, LENGTH, 0, NULL) != -ENOMEM)
		_exit(1);
	if (gdm_export_host(ctx, p, LENGTH / 2, 0, &e))
		_exit(2);
	if (gdm_export_host(ctx, p + LENGTH / 2, PAGE, 0, NULL) != -ENOMEM)
		_exit(3);
	close(e.fd);
	if (gdm_export_host(ctx, p + LENGTH / 2, LENGTH / 2, GDMABUF_KEEP, NULL))
		_exit(4);
	/* The idle pin of the export before is evicted. */
	if (gdm_export_host(ctx, p, LENGTH / 2, 0, NULL))
		_exit(5);
	if (gdm_stats(ctx).out_retries != 1)
		_exit(6);
}

TEST(host_memlock,
     "An export beyond RLIMIT_MEMLOCK evicts idle pins, and fails with ENOMEM if the room does "
     "not suffice.")
{
	EXPECT_EQ(in_child(export_beyond_limit, NULL), 0);
}

static void lower_ipc_lock(void *arg)
{
	unsigned char *p = pages_new(LENGTH, 1);
	struct rlimit limit = { LENGTH / 2, LENGTH / 2 };
	int ctx = gdm_open();

	(void)arg;
	if (setrlimit(RLIMIT_MEMLOCK, &limit) || gdm_export_host(ctx, p, LENGTH, 0, NULL))
		_exit(1);
	raise_ipc_lock(0);
	if (gdm_export_host(ctx, p, LENGTH, 0, NULL) != -ENOMEM)
		_exit(2);
	raise_ipc_lock(1);
	if (gdm_export_host(ctx, p, LENGTH, 0, NULL))
		_exit(3);
}

TEST(host_memlock_capability,
     "RLIMIT_MEMLOCK applies while the process lacks CAP_IPC_LOCK, even if the process opened "
     "the device with the capability.")
{
	EXPECT_EQ(in_child(lower_ipc_lock, NULL), 0);
}

TEST(host_memlock_of_exited,
     "RLIMIT_MEMLOCK counts dma-bufs that outlive the user's process that exported the memory.")
{
	struct pinner pinner = pinner_new(LENGTH, 2 * LENGTH);
	int a, b;

	EXPECT_EQ(in_child(pin_and_pass, &pinner), 0);
	a = receive_fd(pinner.sockets[1]);
	EXPECT_EQ(in_child(pin_and_pass, &pinner), 0);
	b = receive_fd(pinner.sockets[1]);
	EXPECT_EQ(in_child(pin_and_pass, &pinner), 1);
	close(a);
	EXPECT_EQ(in_child(pin_and_pass, &pinner), 0);
	close(b);
	close(receive_fd(pinner.sockets[1]));
	pinner_free(&pinner);
}

TEST(host_memlock_mapped,
     "RLIMIT_MEMLOCK counts the pages of a closed dma-buf until the last mapping is gone.")
{
	struct pinner pinner = pinner_new(LENGTH, LENGTH);
	unsigned char *view;
	int fd;

	EXPECT_EQ(in_child(pin_and_pass, &pinner), 0);
	fd = receive_fd(pinner.sockets[1]);
	view = dmabuf_map(fd, LENGTH, PROT_READ);
	EXPECT(view);
	close(fd);
	EXPECT_EQ(in_child(pin_and_pass, &pinner), 1);
	munmap(view, LENGTH);
	EXPECT_EQ(in_child(pin_and_pass, &pinner), 0);
	close(receive_fd(pinner.sockets[1]));
	pinner_free(&pinner);
}

/* Exports, and executes cat, which inherits the dma-buf and ends when the socket is closed. */
static void pin_and_exec(void *arg)
{
	const struct pinner *pinner = arg;
	unsigned char *p = pages_new(pinner->length, 1);
	int ctx = gdm_open();
	struct gdm_export e;

	become_user(pinner->limit);
	if (gdm_export_host(ctx, p, pinner->length, 0, &e) || fcntl(e.fd, F_SETFD, 0) ||
	    dup2(pinner->sockets[0], 0) || dup2(pinner->sockets[0], 1) != 1)
		_exit(1);
	execlp("cat", "cat", "-", NULL);
	_exit(2);
}

TEST(host_memlock_exec,
     "RLIMIT_MEMLOCK counts an export across execve(), until the new program closes the dma-buf.")
{
	struct pinner pinner = pinner_new(LENGTH, LENGTH);
	pid_t child = fork();
	int status;
	char byte;

	if (!child)
		pin_and_exec(&pinner);
	close(pinner.sockets[0]);
	EXPECT_EQ(write(pinner.sockets[1], "x", 1), 1);
	EXPECT_EQ(read(pinner.sockets[1], &byte, 1), 1); /* cat runs */
	EXPECT_EQ(in_child(pin_and_pass, &pinner), 1);
	EXPECT_EQ(shutdown(pinner.sockets[1], SHUT_WR), 0);
	EXPECT_EQ(waitpid(child, &status, 0), child);
	EXPECT_EQ(status, 0);
	close(pinner.sockets[1]);
	pinner = pinner_new(LENGTH, LENGTH);
	EXPECT_EQ(in_child(pin_and_pass, &pinner), 0);
	pinner_free(&pinner);
}

/* Changes the user and loses all capabilities; the saved uid 0 permits the next change. */
static int host_become(uid_t uid)
{
	return setresuid((uid_t)-1, 0, (uid_t)-1) || setresuid(uid, uid, 0);
}

static void pin_as_two_users(void *arg)
{
	unsigned char *p = pages_new(3 * LENGTH, 1);
	struct rlimit limit = { LENGTH, LENGTH };
	struct gdm_export a, b, c;
	int ctx = gdm_open();

	(void)arg;
	if (setrlimit(RLIMIT_MEMLOCK, &limit) || host_become(1000) ||
	    gdm_export_host(ctx, p, LENGTH, 0, &a))
		_exit(1);
	if (gdm_export_host(ctx, p + LENGTH, LENGTH, 0, NULL) != -ENOMEM)
		_exit(2);
	if (host_become(1001) || gdm_export_host(ctx, p + LENGTH, LENGTH, 0, &b))
		_exit(3);
	close(a.fd);
	if (gdm_export_host(ctx, p + 2 * LENGTH, LENGTH, 0, NULL) != -ENOMEM)
		_exit(4);
	if (host_become(1000) || gdm_export_host(ctx, p + 2 * LENGTH, LENGTH, 0, &c))
		_exit(5);
}

TEST(host_memlock_setuid,
     "An export is charged to the user of the caller, and the charge of that user ends with the "
     "export.")
{
	EXPECT_EQ(in_child(pin_as_two_users, NULL), 0);
}

/*
 * A process of uid 1000 keeps the kernel's MMU notifiers busy: many threads remap a range, so the
 * kernel is always inside some invalidation.  The process also makes more pins stale at once than
 * the kernel runs work items at a time.
 */
enum { REMAPPERS = 16, REMAPPED_PINS = 1200 };
static const size_t REMAPPED = (size_t)16 << 30;

struct remapper {
	pid_t pid;
	int sockets[2];
	atomic_ulong *remapped; /* the number of remappings, in shared memory */
	unsigned char *range;
};

/* The remapping threads take most of the two processors, so the wait is long. */
#define WITHIN_A_MINUTE(condition)                                   \
	({                                                           \
		time_t end_ = host_clock() + 60;                     \
		while (!(condition) && host_clock() < end_)          \
			usleep(10000); /* time: between two looks */ \
		condition;                                           \
	})

static time_t host_clock(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now); /* time: a limit on a hang */
	return now.tv_sec;
}

static void *remap_for_ever(void *arg)
{
	const struct remapper *remapper = arg;

	for (;;) {
		madvise(remapper->range, REMAPPED, MADV_DONTNEED);
		atomic_fetch_add(remapper->remapped, 1);
	}
	return NULL;
}

static int goes_on_remapping(const struct remapper *remapper, unsigned long times)
{
	unsigned long wanted = atomic_load(remapper->remapped) + times;

	return WITHIN_A_MINUTE(atomic_load(remapper->remapped) >= wanted);
}

/*
 * A sparse range: one page in each huge page makes the kernel walk many page tables, and takes
 * little memory.
 */
static unsigned char *sparse_pages_new(void)
{
	unsigned char *range = mmap(NULL, REMAPPED, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (range == MAP_FAILED || madvise(range, REMAPPED, MADV_NOHUGEPAGE))
		_exit(1);
	for (size_t at = 0; at < REMAPPED; at += HUGE_PAGE)
		range[at] = 1;
	return range;
}

static void start_remapping(struct remapper *remapper)
{
	pthread_t thread;

	remapper->range = sparse_pages_new();
	for (int i = 0; i < REMAPPERS; i++)
		if (pthread_create(&thread, NULL, remap_for_ever, remapper))
			_exit(2);
	if (!goes_on_remapping(remapper, REMAPPERS))
		_exit(3);
}

static void remapper_run(struct remapper *remapper)
{
	unsigned char *passed = pages_new(PAGE, 1), *kept = pages_new(REMAPPED_PINS * PAGE, 0);
	int ctx = gdm_open();
	struct gdm_export e;

	become_user((REMAPPED_PINS + 1) * PAGE);
	for (size_t i = 0; i < REMAPPED_PINS; i++)
		if (gdm_export_host(ctx, kept + i * PAGE, PAGE, GDMABUF_KEEP, NULL))
			_exit(4);
	if (gdm_export_host(ctx, passed, PAGE, 0, &e))
		_exit(5);
	start_remapping(remapper);
	madvise(kept, REMAPPED_PINS * PAGE, MADV_DONTNEED);
	send_fd(remapper->sockets[0], e.fd);
	close(e.fd);
	for (;;)
		pause();
}

/* Starts the process.  Returns a dma-buf that the process exported, sent and closed. */
static int remapper_start(struct remapper *remapper)
{
	remapper->remapped =
		mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	EXPECT((void *)remapper->remapped != MAP_FAILED);
	EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, remapper->sockets), 0);
	remapper->pid = fork();
	if (!remapper->pid)
		remapper_run(remapper);
	EXPECT(remapper->pid > 0);
	close(remapper->sockets[0]);
	return receive_fd(remapper->sockets[1]);
}

static void remapper_stop(struct remapper *remapper)
{
	EXPECT_EQ(kill(remapper->pid, SIGKILL), 0);
	EXPECT_EQ(waitpid(remapper->pid, NULL, 0), remapper->pid);
	close(remapper->sockets[1]);
	munmap(remapper->remapped, PAGE);
}

/* Whether the child has ended.  The child remains a zombie for a later waitpid(). */
static int has_ended(pid_t child)
{
	siginfo_t info = { 0 };

	EXPECT_EQ(waitid(P_PID, (id_t)child, &info, WEXITED | WNOHANG | WNOWAIT), 0);
	return info.si_pid == child;
}

TEST(host_close_while_owner_remaps,
     "The last close of a dma-buf ends while the owner's threads remap memory without pause.")
{
	struct remapper remapper;
	int fd = remapper_start(&remapper), wake[2], ended, goes_on;
	pid_t closer;
	char byte;

	EXPECT_EQ(pipe(wake), 0);
	closer = fork();
	if (!closer)
		_exit(read(wake[0], &byte, 1) != 1 || close(fd));
	close(fd);
	EXPECT_EQ(write(wake[1], "", 1), 1); /* now the closer has the only descriptor */
	ended = WITHIN_A_MINUTE(has_ended(closer));
	goes_on = goes_on_remapping(&remapper, 1);
	remapper_stop(&remapper);
	EXPECT_EQ(waitpid(closer, NULL, 0), closer);
	close(wake[0]);
	close(wake[1]);
	EXPECT(goes_on);
	EXPECT(ended);
}

TEST(host_forget_while_other_remaps,
     "A kept pin goes after munmap() while another process's threads remap memory without pause.")
{
	unsigned char *p = pages_new(PAGE, 1);
	int ctx = gdm_open(), fd, gone, goes_on;
	struct remapper remapper;

	EXPECT_EQ(gdm_export_host(ctx, p, PAGE, GDMABUF_KEEP, NULL), 0);
	fd = remapper_start(&remapper);
	munmap(p, PAGE);
	gone = WITHIN_A_MINUTE(!gdm_stats(ctx).out_host_pins);
	goes_on = goes_on_remapping(&remapper, 1);
	remapper_stop(&remapper);
	close(fd);
	close(ctx);
	EXPECT(goes_on);
	EXPECT(gone);
}

static void exceed_own_limit(void *arg)
{
	int ctx = gdm_open();
	unsigned char *p = pages_new(LENGTH, 1);

	(void)arg;
	become_user(PAGE);
	if (gdm_export_host(ctx, p, LENGTH, 0, NULL) != -ENOMEM)
		_exit(1);
}

TEST(host_memlock_is_own, "An export beyond the limit of one user evicts no pin of another user.")
{
	int ctx = gdm_open();
	unsigned char *p = pages_new(LENGTH, 1);
	struct gdm_export e;

	EXPECT_EQ(gdm_export_host(ctx, p, LENGTH, GDMABUF_KEEP, &e), 0);
	close(e.fd);
	EXPECT_EQ(in_child(exceed_own_limit, NULL), 0);
	EXPECT(gdm_is_valid(gdm_status(ctx), &e));
	EXPECT_EQ(gdm_stats(ctx).out_evictions, 0);
	close(ctx);
	munmap(p, LENGTH);
}

enum { NO_HUGE_PAGES = 77 };

static void in_child_with_huge_pages(void (*body)(void *arg))
{
	int status = in_child(body, NULL);

	if (status == NO_HUGE_PAGES)
		test_skip("no huge pages");
	EXPECT_EQ(status, 0);
}

/* One page of each of @n huge pages of the caller, the pages in a row. */
static unsigned char *pages_of_huge(size_t n)
{
	unsigned char *huge = huge_pages_new(n, 0), *p = pages_new(n * PAGE, 0);

	if (!huge)
		_exit(NO_HUGE_PAGES);
	for (size_t i = 0; i < n; i++)
		if (mremap(huge + i * HUGE_PAGE + 5 * PAGE, PAGE, PAGE,
			   MREMAP_MAYMOVE | MREMAP_FIXED, p + i * PAGE) == MAP_FAILED)
			_exit(98);
	return p;
}

static void export_of_huge(void *arg)
{
	int ctx = gdm_open();
	unsigned char *p = pages_of_huge(5);
	struct gdm_export e;

	(void)arg;
	become_user(4 * HUGE_PAGE);
	if (gdm_export_host(ctx, p, 5 * PAGE, 0, NULL) != -ENOMEM)
		_exit(1);
	/* The failed export charged nothing. */
	if (gdm_export_host(ctx, p, 4 * PAGE, 0, &e))
		_exit(2);
	if (gdm_export_host(ctx, p + 4 * PAGE, PAGE, 0, NULL) != -ENOMEM)
		_exit(3);
	close(e.fd);
	if (gdm_export_host(ctx, p + PAGE, 4 * PAGE, 0, NULL))
		_exit(4);
}

TEST(host_memlock_huge,
     "An export of a part of a huge page charges the whole huge page to RLIMIT_MEMLOCK.")
{
	in_child_with_huge_pages(export_of_huge);
}

static void export_huge_often(void *arg)
{
	int ctx = gdm_open(), second = gdm_open();
	unsigned char *huge = huge_pages_new(1, 0), *other = pages_new(PAGE, 1);
	struct gdm_export e[16];

	(void)arg;
	if (!huge)
		_exit(NO_HUGE_PAGES);
	become_user(HUGE_PAGE);
	for (size_t i = 0; i < 16; i++)
		if (gdm_export_host(i % 2 ? ctx : second, huge + i * 9 * PAGE, 2 * PAGE, 0, &e[i]))
			_exit(1);
	for (int i = 0; i < 16; i++) {
		if (gdm_export_host(ctx, other, PAGE, 0, NULL) != -ENOMEM)
			_exit(2);
		close(e[i].fd);
	}
	if (gdm_export_host(ctx, other, PAGE, 0, &e[0]))
		_exit(3);
	if (gdm_export_host(ctx, huge, PAGE, 0, NULL) != -ENOMEM)
		_exit(4);
	close(e[0].fd);
	if (gdm_export_host(ctx, huge, HUGE_PAGE, 0, NULL))
		_exit(5);
}

TEST(host_memlock_huge_once,
     "A huge page is charged once to RLIMIT_MEMLOCK, until the last export of a part is gone.")
{
	in_child_with_huge_pages(export_huge_often);
}

static void export_scattered(void *arg)
{
	int ctx = gdm_open();
	unsigned char *huge = huge_pages_new(1, 0), *p = pages_new(9 * PAGE, 1);

	(void)arg;
	if (!huge)
		_exit(NO_HUGE_PAGES);
	for (int i = 0; i < 9; i += 2)
		if (mremap(huge + i * PAGE, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED,
			   p + i * PAGE) == MAP_FAILED)
			_exit(98);
	become_user(HUGE_PAGE + 4 * PAGE);
	if (gdm_export_host(ctx, p, 9 * PAGE, 0, NULL))
		_exit(1);
}

TEST(host_memlock_huge_scattered,
     "A huge page is charged once to RLIMIT_MEMLOCK even if other pages lie between the parts.")
{
	in_child_with_huge_pages(export_scattered);
}

enum { IDLE = 16 };

static void keep_pages(int ctx, unsigned char *p)
{
	struct gdm_export e;

	for (size_t i = 0; i < IDLE; i++) {
		if (gdm_export_host(ctx, p + i * PAGE, PAGE, GDMABUF_KEEP, &e))
			_exit(97);
		close(e.fd);
	}
}

static void exceed_limit(void *arg)
{
	int ctx = gdm_open();
	unsigned char *p = pages_new(LENGTH + PAGE, 1);

	(void)arg;
	become_user(LENGTH);
	keep_pages(ctx, p);
	if (gdm_export_host(ctx, p, LENGTH + PAGE, 0, NULL) != -ENOMEM)
		_exit(1);
	if (gdm_export_host(ctx, (void *)0x10000000, LENGTH + PAGE, 0, NULL) != -ENOMEM)
		_exit(2);
	if (gdm_stats(ctx).out_evictions)
		_exit(3);
}

TEST(host_evicts_not_in_vain, "An export larger than RLIMIT_MEMLOCK evicts nothing.")
{
	EXPECT_EQ(in_child(exceed_limit, NULL), 0);
}

static void exceed_what_is_idle(void *arg)
{
	int ctx = gdm_open();
	unsigned char *p = pages_new(LENGTH, 1), *q = pages_new(LENGTH, 1);
	struct gdm_export used;

	(void)arg;
	become_user(LENGTH);
	if (gdm_export_host(ctx, q, PAGE, 0, &used))
		_exit(1);
	keep_pages(ctx, p);
	/* Together with the page in use, the range exceeds the limit by one page. */
	if (gdm_export_host(ctx, q, LENGTH, 0, NULL) != -ENOMEM)
		_exit(2);
	if (gdm_stats(ctx).out_evictions)
		_exit(3);
	if (gdm_export_host(ctx, q, LENGTH - PAGE, 0, NULL))
		_exit(4);
	if (gdm_stats(ctx).out_evictions != IDLE)
		_exit(5);
}

TEST(host_evicts_what_suffices,
     "Idle pins are evicted for RLIMIT_MEMLOCK only if the room suffices for the export.")
{
	EXPECT_EQ(in_child(exceed_what_is_idle, NULL), 0);
}

static void make_room_elsewhere(void *arg)
{
	int a = gdm_open(), b = gdm_open();
	unsigned char *p = pages_new(LENGTH, 1);

	(void)arg;
	become_user(LENGTH);
	keep_pages(a, p);
	/* The least recently exported pins go, and no more than needed. */
	if (gdm_export_host(b, p, LENGTH - (IDLE - 3) * PAGE, 0, NULL))
		_exit(1);
	if (gdm_stats(a).out_evictions != 3 || gdm_stats(a).out_host_pins != IDLE - 3)
		_exit(2);
	if (gdm_export_host(b, p, LENGTH, 0, NULL))
		_exit(3);
	if (gdm_stats(a).out_host_pins)
		_exit(4);
}

TEST(host_evicts_other_context,
     "If RLIMIT_MEMLOCK is reached, idle pins of the user's other contexts are evicted.")
{
	EXPECT_EQ(in_child(make_room_elsewhere, NULL), 0);
}

static void evict_shared_huge(void *arg)
{
	int ctx = gdm_open();
	unsigned char *huge = huge_pages_new(2, 0);

	(void)arg;
	if (!huge)
		_exit(NO_HUGE_PAGES);
	become_user(HUGE_PAGE);
	keep_pages(ctx, huge);
	if (gdm_stats(ctx).out_host_pins != IDLE)
		_exit(1);
	if (gdm_export_host(ctx, huge + HUGE_PAGE, PAGE, 0, NULL))
		_exit(2);
}

TEST(host_evicts_shared_huge,
     "If a shared huge page is in the way, all idle pins with a part of the huge page are evicted.")
{
	in_child_with_huge_pages(evict_shared_huge);
}

/* Eviction of the idle pins frees nothing as long as a dma-buf has a page of the huge page. */
static void evict_beside_huge_in_use(void *arg)
{
	int ctx = gdm_open();
	unsigned char *huge = huge_pages_new(1, 0), *p = pages_new(HUGE_PAGE + LENGTH, 1);
	struct gdm_export used;

	(void)arg;
	if (!huge)
		_exit(NO_HUGE_PAGES);
	become_user(2 * HUGE_PAGE);
	if (gdm_export_host(ctx, huge + 100 * PAGE, PAGE, 0, &used))
		_exit(1);
	keep_pages(ctx, huge);
	if (gdm_export_host(ctx, p, HUGE_PAGE + PAGE, 0, NULL) != -ENOMEM)
		_exit(2);
	if (gdm_stats(ctx).out_evictions)
		_exit(3);
	keep_pages(ctx, p + HUGE_PAGE);
	if (gdm_export_host(ctx, p, HUGE_PAGE, 0, NULL))
		_exit(4);
	if (gdm_stats(ctx).out_evictions != IDLE || gdm_stats(ctx).out_host_pins != IDLE + 1)
		_exit(5);
}

TEST(host_evicts_not_beside_huge_in_use,
     "Idle pins that share a huge page with a pin in use are kept, as eviction would free nothing.")
{
	in_child_with_huge_pages(evict_beside_huge_in_use);
}
