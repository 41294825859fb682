/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Registrations of host memory that stay between imports, watched by the memory monitor, on the fake
 * of RM.  Each test is a process of its own: what was imported lately is a matter of the process.
 */
#include "driver_fixture.h"
#include "driver_time.h"
#include "fake_rm.h"
#include "harness.h"
#include "monitor_fixture.h"
#include "process.h"
#include "refused_userfaultfd.h"

#include "import/opaque_fd/opaque_host.h"
#include "util/descriptor.h"
#include "util/log.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define SIZE ((size_t)1 << 20)
#define IDLE 32 /* registrations that no import uses */

static struct cache_stats host_stats(void)
{
	struct cache_stats stats;

	opaque_stats(&stats);
	return stats;
}

static uintptr_t host_map_at(uintptr_t at, size_t size)
{
	void *p = mmap((void *)at, size, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (at ? MAP_FIXED : 0), -1, 0);

	EXPECT(p != MAP_FAILED);
	return (uintptr_t)p;
}

static uintptr_t host_map_new(void)
{
	return host_map_at(0, SIZE);
}

static void host_begin(void)
{
	monitor_fixture_needed();
	driver_begin();
}

static void (*host_body)(void);

static void host_run(void)
{
	host_begin();
	host_body();
	EXPECT_EQ(fake_rm.misuses, 0);
	EXPECT_EQ(fake_rm.inherited, 0);
}

#define HOST_TEST(id, sentence)          \
	static void host_##id(void);     \
	TEST(id, sentence)               \
	{                                \
		host_body = host_##id;   \
		test_in_child(host_run); \
	}                                \
	static void host_##id(void)

/* The name of the range's registration, if the second import makes one. */
static uint64_t host_import_twice(uintptr_t p, size_t size)
{
	EXPECT_EQ(driver_once(p, size), 0);
	return driver_once(p, size);
}

/* A range with an idle registration that was used: the name. */
static uint64_t host_register(uintptr_t p, size_t size)
{
	uint64_t kept = host_import_twice(p, size);

	EXPECT(kept);
	EXPECT_EQ(driver_once(p, size), kept);
	return kept;
}

HOST_TEST(second, "The second import of a range registers the range, and the third pins nothing.")
{
	uintptr_t p = host_map_new();
	uint64_t kept;

	EXPECT_EQ(driver_once(p, SIZE), 0);
	EXPECT_EQ(driver_memories(), 0);
	kept = driver_once(p, SIZE);
	EXPECT(kept);
	EXPECT_EQ(fake_rm.pins_made, 2);
	EXPECT_EQ(driver_once(p, SIZE), kept);
	EXPECT_EQ(driver_once(p + SIZE / 2, 100), kept);
	EXPECT_EQ(fake_rm.pins_made, 2);
	EXPECT_EQ(host_stats().hits, 2);
}

HOST_TEST(once, "A program that imports each range once starts no thread and opens no descriptor.")
{
	int threads = process_count_threads(), fds = process_count_descriptors();

	for (int i = 0; i < 300; i++)
		EXPECT_EQ(driver_once(host_map_new(), SIZE), 0);
	EXPECT_EQ(process_count_threads(), threads);
	EXPECT_EQ(process_count_descriptors(), fds);
	EXPECT_EQ(driver_memories(), 0);
}

HOST_TEST(small, "A range of less than 64 KiB is pinned for each import.")
{
	uintptr_t p = host_map_new();

	for (unsigned int i = 0; i < 4; i++)
		EXPECT_EQ(driver_once(p, ((size_t)64 << 10) - 1), 0);
	EXPECT_EQ(fake_rm.pins_made, 4);
}

HOST_TEST(unmapped, "If the range is unmapped, the pages go, and new memory there is pinned anew.")
{
	uintptr_t p = host_map_new();
	uint64_t kept = host_register(p, SIZE);

	EXPECT_EQ(driver_once(p, SIZE), kept);
	EXPECT_EQ(driver_memories(), 1);
	EXPECT(!munmap((void *)p, SIZE));
	driver_settle(0);
	EXPECT_EQ(driver_last_forgotten, kept);
	host_map_at(p, SIZE);
	EXPECT(driver_once(p, SIZE) != kept);
}

HOST_TEST(unmapped_in_use, "If the range is unmapped during an import, the next import pins anew.")
{
	uintptr_t p = host_map_new();
	uint64_t kept = host_register(p, SIZE);
	struct driver_import i = driver_get(p, SIZE);

	EXPECT_EQ(i.out.kept, kept);
	host_map_at(p, SIZE);
	EXPECT(driver_once(p, SIZE) != kept);
	EXPECT_EQ(driver_forgotten, 0);
	EXPECT_EQ(driver_memories(), 2);
	driver_put(&i);
	driver_settle(1);
	EXPECT_EQ(driver_last_forgotten, kept);
}

HOST_TEST(in_vain, "If registrations of a range are never used, they become rare.")
{
	uintptr_t p = host_map_new();
	int registrations = 0;

	for (int i = 0; i < 200; i++) {
		registrations += driver_once(p, SIZE) != 0;
		host_map_at(p, SIZE);
		driver_settle(0);
	}
	EXPECT(registrations > 0);
	EXPECT(registrations <= 8);
}

HOST_TEST(mostly_in_vain, "If most registrations are never used, new ranges are registered later.")
{
	uintptr_t p;
	int registrations = 0;

	for (int i = 0; i < 100; i++) {
		p = host_map_new();
		registrations += host_import_twice(p, SIZE) != 0;
		host_map_at(p, SIZE);
		driver_settle(0);
	}
	EXPECT(registrations > 0);
	EXPECT(registrations <= 8);
	p = host_map_new();
	for (int i = 0; i < 20; i++)
		driver_once(p, SIZE);
	EXPECT(host_stats().hits > 0);
	EXPECT(host_map_at(p, SIZE));
	driver_settle(0);
	EXPECT(host_register(host_map_new(), SIZE));
}

HOST_TEST(pays_again,
	  "A registration that was used is made anew by the first import after its end.")
{
	uintptr_t p = host_map_new();
	uint64_t kept = host_register(p, SIZE);

	for (int i = 0; i < 5; i++) {
		EXPECT_EQ(driver_once(p, SIZE), kept);
		host_map_at(p, SIZE);
		driver_settle(0);
		kept = driver_once(p, SIZE);
		EXPECT(kept);
	}
}

HOST_TEST(live, "80 imports that are alive at once are 80 pins, without a fault in the log.")
{
	enum { COUNT = 80 };
	struct driver_import imports[COUNT];
	uintptr_t p[COUNT];

	for (int i = 0; i < COUNT; i++) {
		p[i] = host_map_new();
		EXPECT_EQ(driver_once(p[i], SIZE), 0);
	}
	fake_rm.pins_made = 0;
	for (int i = 0; i < COUNT; i++)
		imports[i] = driver_get(p[i], SIZE);
	EXPECT_EQ(fake_rm.pins_made, COUNT);
	EXPECT(!strcmp(log_last(), ""));
	for (int i = 0; i < COUNT; i++)
		driver_put(&imports[i]);
	driver_settle(IDLE);
}

HOST_TEST(live_again, "Imports that are alive leave the room of idle registrations to others.")
{
	enum { COUNT = 2 * IDLE };
	struct driver_import imports[COUNT];
	uintptr_t p = host_map_new();
	uint64_t kept;

	for (int i = 0; i < COUNT; i++) {
		uintptr_t q = host_map_new();

		driver_once(q, SIZE);
		imports[i] = driver_get(q, SIZE);
	}
	kept = host_register(p, SIZE);
	EXPECT_EQ(driver_once(p, SIZE), kept);
	for (int i = 0; i < COUNT; i++)
		driver_put(&imports[i]);
}

HOST_TEST(no_watch, "If there are too many watches, an idle registration makes room; without idle "
		    "registrations an import pins its own pages, without a fault.")
{
	uintptr_t p = host_map_new(), q = host_map_new();
	uint64_t kept = host_register(p, SIZE);
	struct driver_import i;

	for (int n = 0; n < MONITOR_MAX_WATCHES - 1; n++)
		monitor_fixture_watch((char *)host_map_new(), SIZE);
	EXPECT_EQ(driver_once(q, SIZE), 0);
	i = driver_get(q, SIZE);
	EXPECT(i.out.kept);
	EXPECT_EQ(driver_last_forgotten, kept);
	fake_rm.pins_made = 0;
	for (unsigned int n = 0; n < 4; n++)
		EXPECT_EQ(driver_once(p, SIZE), 0);
	EXPECT_EQ(fake_rm.pins_made, 4);
	EXPECT(!strcmp(log_last(), ""));
	driver_put(&i);
}

HOST_TEST(limit_entries, "32 registrations without an import stay, and one more for a moment.")
{
	for (int i = 0; i < 3 * IDLE; i++) {
		uintptr_t p = host_map_new();

		for (int j = 0; j < 3; j++)
			driver_once(p, SIZE);
		EXPECT(driver_memories() <= IDLE + 1);
	}
	driver_settle(IDLE);
}

HOST_TEST(limit_bytes, "Registrations without an import have 1 GiB together, of all devices.")
{
	const size_t size = (size_t)300 << 20;

	for (int i = 0; i < 8; i++) {
		uintptr_t p = host_map_at(0, size);
		struct driver_import import;

		for (int j = 0; j < 2; j++) {
			EXPECT_EQ(driver_try(p, size, i % 2, &import), 0);
			driver_put(&import);
		}
		EXPECT(driver_memories() <= 4);
	}
	driver_settle(3);
	EXPECT(host_stats().bytes_idle <= (size_t)1 << 30);
}

HOST_TEST(limit_descriptors,
	  "If the process may have few descriptors, no registration stays; with 256, eight stay.")
{
	struct rlimit before;
	uintptr_t p = host_map_new();

	for (int i = 0; i < IDLE; i++)
		host_register(host_map_new(), SIZE);
	process_limit_descriptors(256, &before);
	host_import_twice(host_map_new(), SIZE);
	driver_settle(8);
	process_limit_descriptors(31, &before);
	driver_once(p, SIZE);
	EXPECT_EQ(driver_once(p, SIZE), 0);
	EXPECT_EQ(driver_memories(), 0);
}

HOST_TEST(
	share,
	"Of ranges that no program has registered, the driver's buffers have a share of 32, and of "
	"a 32nd part of few descriptors.")
{
	uintptr_t p = host_map_new();
	struct driver_import i;
	struct rlimit before;

	EXPECT(host_register(p, SIZE));
	i = driver_get(p, SIZE);
	EXPECT(i.out.kept);
	EXPECT_EQ(opaque_share_most(i.out.share), 32);
	process_limit_descriptors(256, &before);
	EXPECT_EQ(opaque_share_most(i.out.share), 8);
	driver_put(&i);
}

HOST_TEST(shortage, "Without free descriptors, registrations that no import uses make room.")
{
	enum { LIMIT = 1024 };
	uint64_t kept = host_register(host_map_new(), SIZE);
	uintptr_t p = host_map_new();
	struct driver_import i;
	struct rlimit before;
	int count = 0;

	EXPECT(kept);
	process_limit_descriptors(LIMIT, &before);
	while (count < LIMIT && dup(0) >= 0)
		count++;
	i = driver_get(p, SIZE);
	EXPECT_EQ(driver_last_forgotten, kept);
	driver_put(&i);
}

HOST_TEST(devices, "Two devices share a registration, and each has a pin.")
{
	uintptr_t p = host_map_new();
	uint64_t kept = host_register(p, SIZE);
	struct driver_import i;

	EXPECT_EQ(driver_try(p, SIZE, 1, &i), 0);
	EXPECT_EQ(i.out.kept, kept);
	driver_put(&i);
	EXPECT_EQ(driver_memories(), 2);
	EXPECT(!munmap((void *)p, SIZE));
	driver_settle(0);
}

HOST_TEST(unused, "A registration that no import uses for two seconds is given up.")
{
	host_register(host_map_new(), SIZE);
	EXPECT_EQ(driver_memories(), 1);
	atomic_store(&driver_time_passes, true);
	driver_settle(0);
	EXPECT_EQ(host_stats().entries, 0);
	EXPECT_EQ(host_stats().stale, 0);
}

HOST_TEST(
	numbers,
	"A program may put other memory's descriptor at any number that an import has used: later "
	"imports are of the right memory, and no file of the program is closed.")
{
	uintptr_t p = host_map_new(), q = host_map_new();
	struct driver_import i = driver_get(q, SIZE);
	int other = fcntl(i.fd, F_DUPFD_CLOEXEC, 100), from;

	driver_put(&i);
	EXPECT(host_register(p, SIZE));
	driver_drop_buffers();
	from = dup(0);
	for (int fd = from; fd < from + 16; fd++)
		EXPECT_EQ(dup2(other, fd), fd);
	EXPECT(driver_once(p, SIZE));
	driver_drop_buffers();
	EXPECT(driver_once(p, SIZE));
	EXPECT(!munmap((void *)p, SIZE));
	driver_settle(1);
	for (int fd = from; fd < from + 16; fd++)
		EXPECT(!close(fd));
	close(other);
	driver_settle(0);
}

HOST_TEST(refused, "Memory that RM refuses is refused once for an import, and logged once.")
{
	uintptr_t p = host_map_new();
	struct driver_import i;

	EXPECT_EQ(driver_once(p, SIZE), 0);
	fake_rm.refused = (void *)p;
	fake_rm.calls = 0;
	EXPECT_EQ(driver_try(p, SIZE, 0, &i), -EOPNOTSUPP);
	EXPECT_EQ(fake_rm.calls, 1);
	fake_rm.refused = NULL;
	EXPECT(driver_once(p, SIZE));
}

static void host_count_child_descriptors(void)
{
	int memories = 0;

	for (int fd = 3; fd < 256; fd++) {
		char path[64], name[256];
		ssize_t length;

		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		length = readlink(path, name, sizeof(name) - 1);
		name[length < 0 ? 0 : length] = '\0';
		memories += strstr(name, "nvidia") != NULL;
	}
	_exit(memories);
}

/* The descriptors of RM that a child has. */
static int host_fork(void)
{
	pid_t child = fork();
	int status;

	EXPECT(child >= 0);
	if (!child)
		host_count_child_descriptors();
	EXPECT_EQ(waitpid(child, &status, 0), child);
	EXPECT(WIFEXITED(status));
	return WEXITSTATUS(status);
}

HOST_TEST(forked, "fork() ends the registrations that no import uses, and a child inherits none.")
{
	uintptr_t p = host_map_new();
	int before = host_fork();
	uint64_t kept;

	for (int i = 0; i < 8; i++)
		host_register(host_map_new(), SIZE);
	EXPECT_EQ(driver_memories(), 8);
	EXPECT_EQ(host_fork(), before);
	EXPECT_EQ(driver_memories(), 0);
	kept = host_register(p, SIZE);
	EXPECT_EQ(driver_once(p, SIZE), kept);
}

HOST_TEST(forked_in_use, "A registration in use stays the parent's over fork().")
{
	uintptr_t p = host_map_new();
	uint64_t kept = host_register(p, SIZE);
	struct driver_import i = driver_get(p, SIZE);

	EXPECT_EQ(i.out.kept, kept);
	host_fork();
	EXPECT_EQ(driver_once(p, SIZE), kept);
	driver_put(&i);
	EXPECT_EQ(driver_once(p, SIZE), kept);
}

static uintptr_t host_at;

static void host_in_child(void)
{
	uint64_t kept;

	driver_in_child();
	EXPECT_EQ(host_stats().entries, 0);
	driver_once(host_at, SIZE);
	kept = driver_once(host_at, SIZE);
	EXPECT(kept);
	EXPECT_EQ(driver_once(host_at, SIZE), kept);
	EXPECT_EQ(fake_rm.inherited, 0);
}

HOST_TEST(child, "A child makes registrations of its own.")
{
	struct driver_import i;
	uint64_t kept;

	host_at = host_map_new();
	kept = host_register(host_at, SIZE);
	i = driver_get(host_at, SIZE);
	test_in_child(host_in_child);
	EXPECT_EQ(driver_once(host_at, SIZE), kept);
	driver_put(&i);
}

static atomic_bool host_answers;

static void host_block(uint64_t kept)
{
	const struct timespec tick = { 0, 1000000 };

	for (int ms = 0; ms < 30000 && !atomic_load(&host_answers); ms++)
		nanosleep(&tick, NULL);
	driver_forget(kept);
}

HOST_TEST(forked_blocked, "A driver that does not answer holds a fork up for a moment at most.")
{
	opaque_on_forget(host_block);
	host_register(host_map_new(), SIZE);
	host_fork();
	EXPECT_EQ(driver_forgotten, 0);
	atomic_store(&host_answers, true);
	driver_settle(0);
}

static atomic_bool host_ended;

static void host_forget_slowly(uint64_t kept)
{
	const struct timespec ms = { 0, 1000000 };
	bool was_ended = atomic_load(&host_ended);

	driver_forget(kept);
	nanosleep(&ms, NULL);
	if (was_ended || atomic_load(&host_ended))
		_exit(3);
}

/* Runs after the handlers of climport, as a driver's do. */
static void host_end_driver(void)
{
	const struct timespec time = { 0, 20000000 };

	atomic_store(&host_ended, true);
	nanosleep(&time, NULL);
	_exit(0);
}

static void host_exit(void)
{
	uintptr_t p[8];

	EXPECT(!atexit(host_end_driver));
	host_begin();
	opaque_on_forget(host_forget_slowly);
	for (int i = 0; i < 8; i++) {
		p[i] = host_map_new();
		EXPECT(host_register(p[i], SIZE));
	}
	for (int i = 0; i < 8; i++)
		munmap((void *)p[i], SIZE);
	exit(2);
}

TEST(exits, "No driver is called once the driver's exit handlers run.")
{
	test_in_child(host_exit);
}

static void host_turned_off(void)
{
	int threads = process_count_threads();

	setenv("CLIMPORT_KEEP_HOST", "0", 1);
	fake_rm_reset(DRIVER_DEVICES);
	host_at = host_map_new();
	for (int i = 0; i < 4; i++)
		EXPECT_EQ(driver_once(host_at, SIZE), 0);
	EXPECT_EQ(process_count_threads(), threads);
}

TEST(turned_off, "With CLIMPORT_KEEP_HOST=0 each import pins its pages, and no thread starts.")
{
	test_in_child(host_turned_off);
}

static void host_without_watcher(void)
{
	refused_call = (struct refused_call){ SYS_userfaultfd, EPERM, 0 };
	fake_rm_reset(DRIVER_DEVICES);
	host_at = host_map_new();
	for (int i = 0; i < 4; i++)
		EXPECT_EQ(driver_once(host_at, SIZE), 0);
	EXPECT_EQ(refused_call.count, 1);
}

TEST(no_watcher, "Without a watcher each import pins its pages, and the system is asked once.")
{
	test_in_child(host_without_watcher);
}

static atomic_int host_errors;

static void *host_import_shared(void *number)
{
	(void)number;
	for (int i = 0; i < 300; i++)
		if (!driver_once(host_at, SIZE) && i > 100)
			host_errors++;
	return NULL;
}

HOST_TEST(threads, "Eight threads that import a range share a registration.")
{
	host_at = host_map_new();
	process_run_threads(8, host_import_shared);
	EXPECT_EQ(host_errors, 0);
	EXPECT_EQ(driver_memories(), 1);
}

static pthread_barrier_t host_barrier;
static atomic_bool host_was_busy; /* a drop may have ended before the idle thread's */

static void host_drop(void)
{
	struct timespec begin, end;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	opaque_host_drop_idle();
	clock_gettime(CLOCK_MONOTONIC, &end);
	if ((end.tv_sec - begin.tv_sec) * 1000 + (end.tv_nsec - begin.tv_nsec) / 1000000 >= 50)
		atomic_store(&host_was_busy, true);
}

/* Each thread's drop is the last call before the barrier. */
static void *host_import_and_drop(void *number)
{
	uintptr_t p = host_map_new();

	for (int i = 0; i < 100; i++) {
		for (int j = 0; j < 3; j++)
			driver_once(p, SIZE);
		host_drop();
		pthread_barrier_wait(&host_barrier);
		host_errors += host_stats().bytes_idle && !atomic_load(&host_was_busy);
		pthread_barrier_wait(&host_barrier);
		atomic_store(&host_was_busy, false);
		pthread_barrier_wait(&host_barrier);
	}
	return number;
}

HOST_TEST(threads_drop, "Eight threads may have what is idle dropped at once.")
{
	pthread_barrier_init(&host_barrier, NULL, 8);
	process_run_threads(8, host_import_and_drop);
	pthread_barrier_destroy(&host_barrier);
	EXPECT_EQ(host_errors, 0);
}

static void *host_import_own(void *number)
{
	(void)number;
	for (int i = 0; i < 300; i++) {
		uintptr_t p = host_map_new();

		for (int j = 0; j < 3; j++)
			driver_once(p, SIZE);
		munmap((void *)p, SIZE);
	}
	return NULL;
}

HOST_TEST(threads_unmap, "Eight threads may import, release and unmap at the same addresses.")
{
	process_run_threads(8, host_import_own);
	driver_settle(0);
}
