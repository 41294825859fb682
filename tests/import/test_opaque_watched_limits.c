/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Registrations of host memory that the kernel module watches: how many, how often, over fork() and
 * exit, and by many threads.
 */
#include "watched_fixture.h"

#include "import/export/gdmabuf.h"
#include "import/opaque_fd/opaque_watched.h"
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

#define IDLE 32 /* registrations that no import uses */

static struct cache_stats limits_stats(void)
{
	struct cache_stats stats;

	opaque_stats(&stats);
	return stats;
}

WATCHED_TEST(in_vain, "If registrations of a range are never used, they become rare.")
{
	uintptr_t p = watched_map();
	int registrations = 0;

	for (int i = 0; i < 200; i++) {
		registrations += driver_once(p, SIZE) != 0;
		watched_remap(p);
		driver_settle(0);
	}
	EXPECT(registrations > 0);
	EXPECT(registrations <= 8);
}

WATCHED_TEST(pays_again,
	     "A registration that was used is made anew by the first import after its end.")
{
	uintptr_t p = watched_map();
	uint64_t kept = watched_use(p);

	for (int i = 0; i < 5; i++) {
		EXPECT_EQ(driver_once(p, SIZE), kept);
		watched_remap(p);
		driver_settle(0);
		kept = driver_once(p, SIZE);
		EXPECT(kept);
	}
}

WATCHED_TEST(live, "80 imports that are alive at once are 80 pins, without a fault in the log.")
{
	enum { COUNT = 80 };
	struct driver_import imports[COUNT];
	uintptr_t p[COUNT];

	for (int i = 0; i < COUNT; i++) {
		p[i] = watched_map();
		EXPECT_EQ(driver_once(p[i], SIZE), 0);
	}
	fake_rm.pins_made = 0;
	for (int i = 0; i < COUNT; i++)
		imports[i] = driver_get(p[i], SIZE);
	EXPECT_EQ(fake_rm.pins_made, COUNT);
	for (int i = 0; i < COUNT; i++)
		driver_put(&imports[i]);
	driver_settle(IDLE);
}

WATCHED_TEST(live_again, "Imports that are alive leave the room of idle registrations to others.")
{
	enum { COUNT = 2 * IDLE };
	struct driver_import imports[COUNT];
	uintptr_t p = watched_map();
	uint64_t kept;

	for (int i = 0; i < COUNT; i++) {
		uintptr_t q = watched_map();

		driver_once(q, SIZE);
		imports[i] = driver_get(q, SIZE);
	}
	kept = watched_use(p);
	EXPECT_EQ(driver_once(p, SIZE), kept);
	for (int i = 0; i < COUNT; i++)
		driver_put(&imports[i]);
}

static void limits_fill_module(void)
{
	struct gdmabuf_watch watch;

	while (!gdmabuf_watch_begin(watched_map(), SIZE, &watch))
		;
	log_clear();
}

WATCHED_TEST(no_watch,
	     "If there are too many watches, an idle registration makes room; without idle "
	     "registrations an import pins its own pages, without a fault.")
{
	uintptr_t p = watched_map(), q = watched_map();
	uint64_t kept = watched_use(p);
	struct driver_import i;

	limits_fill_module();
	EXPECT_EQ(driver_once(q, SIZE), 0);
	i = driver_get(q, SIZE);
	EXPECT(i.out.kept);
	EXPECT_EQ(driver_last_forgotten, kept);
	fake_rm.pins_made = 0;
	for (unsigned int n = 0; n < 4; n++)
		EXPECT_EQ(driver_once(p, SIZE), 0);
	EXPECT_EQ(fake_rm.pins_made, 4);
	driver_put(&i);
}

WATCHED_TEST(limit_entries, "32 registrations without an import stay, and one more for a moment.")
{
	for (int i = 0; i < 3 * IDLE; i++) {
		uintptr_t p = watched_map();

		for (int j = 0; j < 3; j++)
			driver_once(p, SIZE);
		EXPECT(driver_memories() <= IDLE + 1);
	}
	driver_settle(IDLE);
}

WATCHED_TEST(limit_bytes, "Registrations without an import have 1 GiB together, of all devices.")
{
	const size_t size = (size_t)300 << 20;

	for (int i = 0; i < 8; i++) {
		uintptr_t p = watched_map_large(0, size, MAP_PRIVATE);
		struct driver_import import;

		for (int j = 0; j < 2; j++) {
			EXPECT_EQ(driver_try(p, size, i % 2, &import), 0);
			driver_put(&import);
		}
		EXPECT(driver_memories() <= 4);
	}
	driver_settle(3);
	EXPECT(limits_stats().bytes_idle <= (size_t)1 << 30);
}

WATCHED_TEST(
	limit_descriptors,
	"If the process may have few descriptors, no registration stays; with 256, eight stay.")
{
	struct rlimit before;
	uintptr_t p = watched_map();

	for (int i = 0; i < IDLE; i++)
		watched_use(watched_map());
	process_limit_descriptors(256, &before);
	watched_register(watched_map(), SIZE);
	driver_settle(8);
	process_limit_descriptors(31, &before);
	driver_once(p, SIZE);
	EXPECT_EQ(driver_once(p, SIZE), 0);
	EXPECT_EQ(driver_memories(), 0);
}

WATCHED_TEST(
	share,
	"Of ranges that no program has registered, the driver's buffers have a share of 32, and of "
	"a 32nd part of few descriptors.")
{
	uintptr_t p = watched_map();
	struct driver_import i;
	struct rlimit before;

	EXPECT(watched_use(p));
	i = driver_get(p, SIZE);
	EXPECT(i.out.kept);
	EXPECT_EQ(import_share_most(i.out.share), 32);
	process_limit_descriptors(256, &before);
	EXPECT_EQ(import_share_most(i.out.share), 8);
	driver_put(&i);
}

WATCHED_TEST(shortage, "Without free descriptors, registrations that no import uses make room.")
{
	enum { LIMIT = 1024 };
	uint64_t kept = watched_use(watched_map());
	uintptr_t p = watched_map();
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

WATCHED_TEST(devices, "Two devices share a registration, and each has a pin.")
{
	uintptr_t p = watched_map();
	uint64_t kept = watched_use(p);
	struct driver_import i;

	EXPECT_EQ(driver_try(p, SIZE, 1, &i), 0);
	EXPECT_EQ(i.out.kept, kept);
	driver_put(&i);
	EXPECT_EQ(driver_memories(), 2);
	watched_unmap(p);
	driver_settle(0);
}

WATCHED_TEST(
	numbers,
	"A program may put other memory's descriptor at any number that an import has used: later "
	"imports are of the right memory, and no file of the program is closed.")
{
	uintptr_t p = watched_map(), q = watched_map();
	struct driver_import i = driver_get(q, SIZE);
	int other = fcntl(i.fd, F_DUPFD_CLOEXEC, 100), from;

	driver_put(&i);
	EXPECT(watched_use(p));
	driver_drop_buffers();
	from = dup(0);
	for (int fd = from; fd < from + 16; fd++)
		EXPECT_EQ(dup2(other, fd), fd);
	EXPECT(driver_once(p, SIZE));
	driver_drop_buffers();
	EXPECT(driver_once(p, SIZE));
	watched_unmap(p);
	driver_settle(1);
	for (int fd = from; fd < from + 16; fd++)
		EXPECT(!close(fd));
	close(other);
	driver_settle(0);
}

WATCHED_TEST(refused, "Memory that RM refuses is refused once for an import, and logged once.")
{
	uintptr_t p = watched_map();
	struct driver_import i;

	EXPECT_EQ(driver_once(p, SIZE), 0);
	fake_rm.refused = (void *)p;
	fake_rm.calls = 0;
	EXPECT_EQ(driver_try(p, SIZE, 0, &i), -EOPNOTSUPP);
	EXPECT_EQ(fake_rm.calls, 1);
	fake_rm.refused = NULL;
	log_clear();
	EXPECT(driver_once(p, SIZE));
}

static void limits_count_child_descriptors(void)
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
static int limits_fork(void)
{
	pid_t child = fork();
	int status;

	EXPECT(child >= 0);
	if (!child)
		limits_count_child_descriptors();
	EXPECT_EQ(waitpid(child, &status, 0), child);
	EXPECT(WIFEXITED(status));
	return WEXITSTATUS(status);
}

WATCHED_TEST(forked,
	     "fork() ends the registrations that no import uses, and a child inherits none.")
{
	uintptr_t p = watched_map();
	int before = limits_fork();
	uint64_t kept;

	for (int i = 0; i < 8; i++)
		watched_use(watched_map());
	EXPECT_EQ(driver_memories(), 8);
	EXPECT_EQ(limits_fork(), before);
	EXPECT_EQ(driver_memories(), 0);
	kept = watched_use(p);
	EXPECT_EQ(driver_once(p, SIZE), kept);
}

WATCHED_TEST(forked_in_use, "A registration in use stays the parent's over fork().")
{
	uintptr_t p = watched_map();
	uint64_t kept = watched_use(p);
	struct driver_import i = driver_get(p, SIZE);

	EXPECT_EQ(i.out.kept, kept);
	limits_fork();
	EXPECT_EQ(driver_once(p, SIZE), kept);
	driver_put(&i);
	EXPECT_EQ(driver_once(p, SIZE), kept);
}

static uintptr_t limits_at;

static void limits_in_child(void)
{
	uint64_t kept;

	fake_gdmabuf_child();
	driver_in_child();
	EXPECT_EQ(limits_stats().entries, 0);
	driver_once(limits_at, SIZE);
	kept = driver_once(limits_at, SIZE);
	EXPECT(kept);
	EXPECT_EQ(driver_once(limits_at, SIZE), kept);
	EXPECT_EQ(fake_rm.inherited, 0);
}

WATCHED_TEST(child, "A child makes registrations of its own.")
{
	struct driver_import i;
	uint64_t kept;

	limits_at = watched_map();
	kept = watched_use(limits_at);
	i = driver_get(limits_at, SIZE);
	test_in_child(limits_in_child);
	EXPECT_EQ(driver_once(limits_at, SIZE), kept);
	driver_put(&i);
}

static atomic_bool limits_answers;

static void limits_block(uint64_t kept)
{
	const struct timespec tick = { 0, 1000000 };

	for (int ms = 0; ms < 30000 && !atomic_load(&limits_answers); ms++)
		nanosleep(&tick, NULL); /* time: between two looks at the answer */
	driver_forget(kept);
}

WATCHED_TEST(forked_blocked, "A driver that does not answer holds a fork up for a moment at most.")
{
	import_on_forget(limits_block);
	watched_use(watched_map());
	limits_fork();
	EXPECT_EQ(driver_forgotten, 0);
	atomic_store(&limits_answers, true);
	driver_settle(0);
}

static atomic_bool limits_ended;

static void limits_forget_slowly(uint64_t kept)
{
	bool was_ended = atomic_load(&limits_ended);

	driver_forget(kept);
	for (int i = 0; i < 1000; i++) /* no sleep: the process is not quiet meanwhile */
		sched_yield();
	if (was_ended || atomic_load(&limits_ended))
		_exit(3);
}

/* Runs after the handlers of climport, as a driver's do. */
static void limits_end_driver(void)
{
	atomic_store(&limits_ended, true);
	_exit(!process_settles(process_is_quiet, NULL));
}

static void limits_exit(void)
{
	uintptr_t p[8];

	EXPECT(!atexit(limits_end_driver));
	watched_is_patient = true; /* the exit waits for the driver, however slow it is */
	watched_reset();
	import_on_forget(limits_forget_slowly);
	for (int i = 0; i < 8; i++) {
		p[i] = watched_map();
		EXPECT(watched_use(p[i]));
	}
	for (int i = 0; i < 8; i++)
		watched_unmap(p[i]);
	exit(2);
}

TEST(exits, "No driver is called once the driver's exit handlers run.")
{
	test_in_child(limits_exit);
}

static atomic_int limits_errors;

static void *limits_import_shared(void *number)
{
	(void)number;
	for (int i = 0; i < 300; i++)
		if (!driver_once(limits_at, SIZE) && i > 100)
			limits_errors++;
	return NULL;
}

WATCHED_TEST(threads, "Eight threads that import a range share a registration.")
{
	limits_at = watched_map();
	process_run_threads(8, limits_import_shared);
	EXPECT_EQ(limits_errors, 0);
	EXPECT_EQ(driver_memories(), 1);
}

static pthread_barrier_t limits_barrier;

/* Each thread's drop is the last call before the barrier. */
static void *limits_import_and_drop(void *number)
{
	uintptr_t p = watched_map();

	watched_is_patient = true;
	for (int i = 0; i < 100; i++) {
		for (int j = 0; j < 3; j++)
			driver_once(p, SIZE);
		opaque_watched_drop_idle();
		pthread_barrier_wait(&limits_barrier);
		limits_errors += limits_stats().bytes_idle != 0;
		pthread_barrier_wait(&limits_barrier);
	}
	return number;
}

WATCHED_TEST(threads_drop, "Eight threads may have what is idle dropped at once.")
{
	pthread_barrier_init(&limits_barrier, NULL, 8);
	process_run_threads(8, limits_import_and_drop);
	pthread_barrier_destroy(&limits_barrier);
	EXPECT_EQ(limits_errors, 0);
}

static void *limits_import_own(void *number)
{
	(void)number;
	for (int i = 0; i < 300; i++) {
		uintptr_t p = watched_map();

		for (int j = 0; j < 3; j++)
			driver_once(p, SIZE);
		watched_unmap(p);
	}
	return NULL;
}

WATCHED_TEST(threads_unmap, "Eight threads may import, release and unmap at the same addresses.")
{
	process_run_threads(8, limits_import_own);
	driver_settle(0);
}
