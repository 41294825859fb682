/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Registrations of host memory that the kernel module watches, on the fakes of RM and of the module.
 * The program asks for nothing.  Each test is a process of its own.
 */
#include "driver_fixture.h"
#include "driver_time.h"
#include "fake_gdmabuf.h"
#include "fake_rm.h"
#include "harness.h"
#include "process.h"

#include "import/opaque_fd/exporter.h"
#include "import/opaque_fd/late_put.h"
#include "import/opaque_fd/opaque_host.h"
#include "util/idle.h"
#include "util/log.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE ((size_t)4096)
#define SIZE (16 * PAGE)
#define PATIENCE_S 60

static uintptr_t watched_map_large(uintptr_t at, size_t size, int flags)
{
	void *p = mmap((void *)at, size, PROT_READ | PROT_WRITE,
		       flags | MAP_ANONYMOUS | (at ? MAP_FIXED : 0), -1, 0);

	EXPECT(p != MAP_FAILED);
	return (uintptr_t)p;
}

static uintptr_t watched_map_at(uintptr_t at, int flags)
{
	return watched_map_large(at, SIZE, flags);
}

static void watched_reset(void)
{
	fake_gdmabuf_child();
	driver_begin();
}

static void (*watched_body)(void);

static void watched_run(void)
{
	unsetenv("CLIMPORT_KEEP_HOST");
	watched_reset();
	watched_body();
	EXPECT_EQ(fake_rm.misuses, 0);
	EXPECT(!*log_last());
}

#define WATCHED_TEST(id, sentence)           \
	static void watched_##id(void);      \
	TEST(id, sentence)                   \
	{                                    \
		watched_body = watched_##id; \
		test_in_child(watched_run);  \
	}                                    \
	static void watched_##id(void)

/* A range with an idle registration: its name. */
static uint64_t watched_register(uintptr_t p, size_t size)
{
	EXPECT_EQ(driver_once(p, size), 0);
	return driver_once(p, size);
}

WATCHED_TEST(
	kept,
	"If the module is loaded, the third import of a range pins nothing, without a request.")
{
	uintptr_t p = watched_map_at(0, MAP_PRIVATE);
	uint64_t kept = watched_register(p, SIZE);

	EXPECT(kept);
	EXPECT_EQ(fake_rm.pins_made, 2);
	EXPECT_EQ(driver_once(p, SIZE), kept);
	EXPECT_EQ(driver_once(p + PAGE, 100), kept);
	EXPECT_EQ(fake_rm.pins_made, 2);
	EXPECT_EQ(fake_gdmabuf.watches, 1);
}

WATCHED_TEST(shared, "Shared memory is kept.")
{
	uintptr_t p = watched_map_at(0, MAP_SHARED);
	uint64_t kept = watched_register(p, SIZE);

	EXPECT(kept);
	EXPECT_EQ(driver_once(p, SIZE), kept);
}

static bool watched_has_aged(void *unused)
{
	(void)unused;
	return atomic_load(&driver_ages);
}

/* The tick finds no registration. */
static void watched_wait_for_tick(void)
{
	EXPECT(process_settles(watched_has_aged, NULL));
}

/* The watch ends after the driver has forgotten the pin. */
static bool watched_is_over(void *unused)
{
	(void)unused;
	return driver_forgotten == 1 && !fake_gdmabuf.watches;
}

WATCHED_TEST(tick,
	     "A registration that is made while the idle thread looks for old ones grows old.")
{
	uintptr_t p = watched_map_at(0, MAP_PRIVATE);

	atomic_store(&driver_time_passes, true);
	fake_gdmabuf.watching = watched_wait_for_tick;
	EXPECT(watched_register(p, SIZE));
	EXPECT(process_settles(watched_is_over, NULL));
}

WATCHED_TEST(small, "A page is kept.")
{
	uintptr_t p = watched_map_at(0, MAP_PRIVATE);
	uint64_t kept = watched_register(p, 64);

	EXPECT(kept);
	EXPECT_EQ(driver_once(p, PAGE), kept);
}

WATCHED_TEST(stale, "If the address gets other pages, the next import pins these pages.")
{
	uintptr_t p = watched_map_at(0, MAP_PRIVATE);
	uint64_t kept = watched_register(p, SIZE);

	watched_map_at(p, MAP_PRIVATE);
	fake_gdmabuf_change((void *)p, SIZE);
	EXPECT(driver_once(p, SIZE) != kept);
	EXPECT_EQ(fake_rm.pins_made, 3);
	EXPECT_EQ(atomic_load(&driver_last_forgotten), kept);
}

static bool watched_has_no_watch(void *unused)
{
	(void)unused;
	return !fake_gdmabuf.watches;
}

WATCHED_TEST(idle,
	     "A registration that no import uses goes after some seconds, and with it the watch.")
{
	uintptr_t p = watched_map_at(0, MAP_PRIVATE);

	EXPECT(watched_register(p, SIZE));
	EXPECT_EQ(fake_gdmabuf.watches, 1);
	atomic_store(&driver_time_passes, true);
	EXPECT(process_settles(watched_has_no_watch, NULL));
	EXPECT_EQ(driver_forgotten, 1);
}

static bool watched_forgot(void *count)
{
	return driver_forgotten == *(unsigned int *)count;
}

WATCHED_TEST(freed,
	     "An idle registration of memory that the program has freed goes by itself, before its "
	     "time, and registrations of other memory stay.")
{
	uintptr_t p = watched_map_at(0, MAP_PRIVATE), other = watched_map_at(0, MAP_PRIVATE);
	uint64_t freed = watched_register(p, SIZE), kept = watched_register(other, SIZE);
	unsigned int one = 1;

	EXPECT_EQ(fake_gdmabuf.watches, 2);
	munmap((void *)p, SIZE);
	fake_gdmabuf_change((void *)p, SIZE);
	EXPECT(process_settles(watched_forgot, &one));
	EXPECT_EQ(atomic_load(&driver_last_forgotten), freed);
	EXPECT_EQ(driver_once(other, SIZE), kept);
}

/* Linked with --wrap=pthread_cond_clockwait: waits of the thread with a time limit. */
static struct {
	_Atomic pthread_t thread;
	unsigned int count;
	long long longest_us; /* that a wait would have taken */
} watched_waits;

/* The first thread waits for the idle thread, however busy the machine is. */
static atomic_bool watched_is_patient;

int __real_pthread_cond_clockwait(pthread_cond_t *cond, pthread_mutex_t *mutex, clockid_t clock,
				  const struct timespec *until);
int __wrap_pthread_cond_clockwait(pthread_cond_t *cond, pthread_mutex_t *mutex, clockid_t clock,
				  const struct timespec *until);

int __wrap_pthread_cond_clockwait(pthread_cond_t *cond, pthread_mutex_t *mutex, clockid_t clock,
				  const struct timespec *until)
{
	struct timespec now, later = *until;
	long long us;

	if (pthread_equal(pthread_self(), atomic_load(&watched_waits.thread))) {
		clock_gettime(clock, &now);
		us = (until->tv_sec - now.tv_sec) * 1000000LL +
		     (until->tv_nsec - now.tv_nsec) / 1000;
		watched_waits.count++;
		if (us > watched_waits.longest_us)
			watched_waits.longest_us = us;
	}
	later.tv_sec += watched_is_patient && gettid() == getpid() ? PATIENCE_S : 0;
	return __real_pthread_cond_clockwait(cond, mutex, clock, &later);
}

WATCHED_TEST(
	invalidated,
	"An invalidation of a part ends an idle registration before the call returns, and other "
	"registrations stay.")
{
	uintptr_t p = watched_map_at(0, MAP_PRIVATE), other = watched_map_at(0, MAP_PRIVATE);
	uint64_t kept = watched_register(p, SIZE), others = watched_register(other, SIZE);

	watched_is_patient = true;
	opaque_host_invalidate(p + SIZE - 1, 1);
	EXPECT_EQ(driver_forgotten, 1);
	EXPECT_EQ(atomic_load(&driver_last_forgotten), kept);
	EXPECT_EQ(fake_gdmabuf.watches, 1);
	EXPECT_EQ(driver_once(other, SIZE), others);
	EXPECT(driver_once(p, SIZE) != kept);
}

WATCHED_TEST(invalidated_in_use,
	     "An invalidated registration ends with its last import, and no later import finds the "
	     "registration.")
{
	uintptr_t p = watched_map_at(0, MAP_PRIVATE);
	uint64_t kept = watched_register(p, SIZE);
	struct driver_import i = driver_get(p, SIZE);
	unsigned int one = 1;

	EXPECT_EQ(i.out.kept, kept);
	opaque_host_invalidate(p, SIZE);
	EXPECT_EQ(driver_forgotten, 0);
	EXPECT(driver_once(p, SIZE) != kept);
	driver_put(&i);
	EXPECT(process_settles(watched_forgot, &one));
	EXPECT_EQ(atomic_load(&driver_last_forgotten), kept);
}

WATCHED_TEST(dropped, "All registrations without an import are ended at once.")
{
	uintptr_t p = watched_map_at(0, MAP_PRIVATE), used = watched_map_at(0, MAP_PRIVATE);
	uint64_t kept = watched_register(p, SIZE);
	struct driver_import i;

	watched_register(used, SIZE);
	i = driver_get(used, SIZE);
	watched_is_patient = true;
	opaque_host_drop_idle();
	EXPECT_EQ(driver_forgotten, 1);
	EXPECT_EQ(atomic_load(&driver_last_forgotten), kept);
	EXPECT_EQ(fake_gdmabuf.watches, 1);
	driver_put(&i);
}

static const struct watched_limit {
	const char *name;
	uint64_t bytes, entries;
	int stay;
} watched_limits[] = {
	{ "no_bytes", 0, UINT64_MAX, 0 },	 { "no_entries", UINT64_MAX, 0, 0 },
	{ "bytes", 2 * SIZE, UINT64_MAX, 2 },	 { "entries", UINT64_MAX, 1, 1 },
	{ "larger", UINT64_MAX, UINT64_MAX, 3 },
};

static const struct watched_limit *watched_limit; /* for the child */

static bool watched_holds_limit(void *unused)
{
	(void)unused;
	return fake_gdmabuf.watches == watched_limit->stay;
}

static void watched_lower_limit(void)
{
	uintptr_t p[3];

	for (int i = 0; i < 3; i++) {
		p[i] = watched_map_at(0, MAP_PRIVATE);
		EXPECT(watched_register(p[i], SIZE));
	}
	watched_is_patient = true;
	opaque_host_set_limits(watched_limit->bytes, watched_limit->entries);
	EXPECT_EQ(driver_forgotten, 3 - watched_limit->stay);
	for (int i = 0; i < 6; i++)
		driver_once(p[i % 3], SIZE);
	EXPECT(process_settles(watched_holds_limit, NULL));
	opaque_host_set_limits(UINT64_MAX, UINT64_MAX);
}

TEST_EACH(watched_limits, struct watched_limit, watched_limits,
	  "The program's limits hold for registrations that are there, and for later ones.")
{
	watched_limit = row;
	watched_body = watched_lower_limit;
	test_in_child(watched_run);
}

/* /proc/thread-self/syscall: the fourth argument of futex(2) is the limit. */
static bool watched_idle_thread_has_no_limit(void *unused)
{
	char path[64];
	unsigned long limit;
	long number;
	FILE *file;
	bool is_read;

	(void)unused;
	snprintf(path, sizeof(path), "/proc/self/task/%d/syscall",
		 (int)process_find_thread("climport-idle"));
	file = fopen(path, "re");
	if (!file)
		return false;
	is_read = fscanf(file, "%ld %*x %*x %*x %lx", &number, &limit) == 2;
	fclose(file);
	return is_read && number == SYS_futex && !limit;
}

/* An import during which the idle thread has nothing to do any more. */
static struct driver_import watched_outlive_ticks(uintptr_t p)
{
	struct driver_import i;

	atomic_store(&driver_time_passes, true);
	EXPECT(watched_register(p, SIZE));
	i = driver_get(p, SIZE);
	EXPECT(process_settles(watched_idle_thread_has_no_limit, NULL));
	return i;
}

WATCHED_TEST(live, "While every registration has an import, nothing wakes the idle thread.")
{
	struct driver_import i = watched_outlive_ticks(watched_map_at(0, MAP_PRIVATE));

	EXPECT(i.out.kept);
	EXPECT_EQ(fake_gdmabuf.watches, 1);
	driver_put(&i);
}

WATCHED_TEST(live_ended, "A registration grows old after an import that has outlived the idle "
			 "thread's ticks.")
{
	struct driver_import i = watched_outlive_ticks(watched_map_at(0, MAP_PRIVATE));

	driver_put(&i);
	EXPECT(process_settles(watched_has_no_watch, NULL));
}

WATCHED_TEST(live_freed, "A registration of memory that the program frees after an import that has "
			 "outlived the idle thread's ticks goes.")
{
	uintptr_t p = watched_map_at(0, MAP_PRIVATE);
	struct driver_import i = watched_outlive_ticks(p);
	unsigned int one = 1;

	atomic_store(&driver_time_passes, false);
	driver_put(&i);
	munmap((void *)p, SIZE);
	fake_gdmabuf_change((void *)p, SIZE);
	EXPECT(process_settles(watched_forgot, &one));
}

static void watched_end_thread(void)
{
	uintptr_t p = watched_map_at(0, MAP_PRIVATE);

	atomic_store(&driver_time_passes, true);
	EXPECT(watched_register(p, SIZE));
	driver_get(p, SIZE);
	pthread_exit(NULL);
}

struct watched_child {
	pid_t pid;
	int status;
};

static bool watched_has_ended(void *child)
{
	struct watched_child *c = child;

	return waitpid(c->pid, &c->status, WNOHANG) == c->pid;
}

WATCHED_TEST(live_last, "A process whose last thread has ended ends, though an import lives.")
{
	struct watched_child child = { 0 };

	if (!strcmp(SANITIZER, "thread"))
		test_skip("the thread sanitizer keeps a thread of its own");
	if (!strcmp(SANITIZER, "address"))
		test_skip("the leak sanitizer takes the memory of the ended thread for leaked");
	child.pid = fork();

	if (!child.pid) {
		fake_gdmabuf_child();
		driver_in_child();
		watched_end_thread();
	}
	if (!process_settles(watched_has_ended, &child)) {
		kill(child.pid, SIGKILL);
		waitpid(child.pid, &child.status, 0);
	}
	EXPECT_EQ(child.status, 0);
}

/* The module's status page is no memory of a child. */
static void watched_unmap_status(void)
{
	char line[512];
	void *status = NULL;
	FILE *maps = fopen("/proc/self/maps", "re");

	while (maps && fgets(line, sizeof(line), maps))
		if (strstr(line, "gdmabuf-device"))
			status = (void *)strtoul(line, NULL, 16);
	EXPECT(status && !munmap(status, PAGE));
	fclose(maps);
}

static void watched_import_in_child(uintptr_t p, uint64_t parents)
{
	uint64_t kept;

	alarm(20);
	watched_unmap_status();
	fake_gdmabuf_child();
	driver_in_child();
	driver_forgotten = 0;
	memset((void *)p, 1, SIZE);
	kept = driver_once(p, SIZE);
	_exit(kept == parents || driver_forgotten);
}

WATCHED_TEST(cloned, "A child without fork handlers imports none of the parent's registrations.")
{
	uintptr_t p = watched_map_at(0, MAP_PRIVATE);
	uint64_t kept = watched_register(p, SIZE);
	int status;
	pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);

	if (!child)
		watched_import_in_child(p, kept);
	EXPECT_EQ(waitpid(child, &status, 0), child);
	EXPECT_EQ(status, 0);
	EXPECT_EQ(driver_once(p, SIZE), kept);
}

static int watched_count_devices(void)
{
	int count = 0;

	for (int fd = 3; fd < 256; fd++)
		count += fake_gdmabuf_is_device(fd);
	return count;
}

/* A driver that has not yet called back for an import that the program has released. */
static struct watched_driver {
	struct driver_import import;
	pid_t program;
	atomic_bool begins, ends;
} watched_driver;

static bool watched_program_sleeps(void)
{
	char path[64], line[256] = "";
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", watched_driver.program);
	file = fopen(path, "re");
	EXPECT(file && fgets(line, sizeof(line), file));
	fclose(file);
	return strstr(line, ") S ");
}

/* Calls back while the program's thread waits, or at the end. */
static void *watched_call_back(void *unused)
{
	while (!atomic_load(&watched_driver.begins))
		sched_yield();
	while (!watched_program_sleeps() && !atomic_load(&watched_driver.ends))
		sched_yield();
	driver_put(&watched_driver.import);
	return unused;
}

static void watched_fork(void)
{
	pid_t child = fork();

	if (!child)
		_exit(0);
	EXPECT_EQ(waitpid(child, NULL, 0), child);
}

#define LARGE ((size_t)64 << 20) /* takes long to copy */

/* Whether fork() has ended the registration. */
static bool watched_fork_waits(void)
{
	uintptr_t p = watched_map_large(0, LARGE, MAP_PRIVATE | MAP_NORESERVE);
	bool has_ended;
	pthread_t thread;
	pid_t child;

	watched_register(p, LARGE);
	watched_driver.program = gettid();
	watched_driver.begins = watched_driver.ends = false;
	watched_driver.import = driver_get(p, LARGE);
	EXPECT_EQ(pthread_create(&thread, NULL, watched_call_back, NULL), 0);
	late_put_begin(opaque_released(watched_driver.import.opaque));
	atomic_store(&watched_driver.begins, true);
	child = fork();
	if (!child)
		_exit(0);
	has_ended = !fake_gdmabuf.watches;
	atomic_store(&watched_driver.ends, true);
	EXPECT_EQ(waitpid(child, NULL, 0), child);
	pthread_join(thread, NULL);
	munmap((void *)p, LARGE);
	return has_ended;
}

WATCHED_TEST(
	forked_released,
	"fork() waits a moment for the driver's end of an import that the program has released, "
	"and then ends the registration.")
{
	bool has_waited = false;

	for (int i = 0; i < 20 && !has_waited; i++)
		has_waited = watched_fork_waits();
	EXPECT(has_waited);
}

static void watched_waits_begin(void)
{
	atomic_store(&watched_waits.thread, pthread_self());
	watched_waits.count = 0;
	watched_waits.longest_us = 0;
}

static uint64_t watched_release_number;

/* An import that the program is releasing: the thread is in the driver. */
static struct driver_import watched_release_begin(size_t size)
{
	uintptr_t p = watched_map_large(0, size, MAP_PRIVATE | MAP_NORESERVE);
	struct driver_import import;

	watched_register(p, size);
	import = driver_get(p, size);
	EXPECT(import.out.kept);
	watched_release_number = opaque_released(import.opaque);
	watched_waits_begin();
	return import;
}

/* An import that the program has released, and a kernel still uses. */
static struct driver_import watched_release(size_t size)
{
	struct driver_import import = watched_release_begin(size);

	late_put_begin(watched_release_number);
	return import;
}

WATCHED_TEST(
	forked_small,
	"fork() waits for the end of a released import no longer than the copy of the import's "
	"pages takes.")
{
	struct driver_import import = watched_release((size_t)1 << 20);

	watched_fork();
	EXPECT(watched_waits.longest_us <= 1000);
	driver_put(&import);
}

WATCHED_TEST(forked_again, "fork() waits for the end of a released import once.")
{
	struct driver_import import = watched_release(LARGE);

	watched_fork();
	EXPECT(watched_waits.longest_us > 1000);
	watched_waits_begin();
	watched_fork();
	EXPECT_EQ(watched_waits.count, 0);
	driver_put(&import);
}

WATCHED_TEST(
	forked_in_callback,
	"In a destructor callback, neither fork() nor climport_drop_all() waits for the end of "
	"the import whose release calls back.")
{
	struct driver_import import = watched_release_begin(LARGE);

	watched_fork();
	opaque_host_drop_idle();
	EXPECT_EQ(watched_waits.count, 0);
	driver_put(&import);
	late_put_begin(watched_release_number);
	opaque_host_drop_idle();
	EXPECT_EQ(fake_gdmabuf.watches, 0);
}

WATCHED_TEST(dropped_again,
	     "climport_drop_all() waits for the end of a small released import, too, and once.")
{
	struct driver_import import = watched_release(PAGE);

	watched_fork();
	watched_waits_begin();
	opaque_host_drop_idle();
	EXPECT(watched_waits.longest_us > 1000);
	watched_waits_begin();
	opaque_host_drop_idle();
	EXPECT_EQ(watched_waits.count, 0);
	driver_put(&import);
}

static atomic_bool watched_blocks, watched_may_go_on;
static unsigned int watched_ended; /* registrations, when the call returned */

static bool watched_block(void)
{
	atomic_store(&watched_blocks, true);
	while (!atomic_load(&watched_may_go_on))
		sched_yield();
	return false;
}

static struct idle_watcher watched_blocker = { .tick = watched_block };

/* The idle thread goes on when the program waits. */
static void *watched_unblock(void *unused)
{
	while (!watched_program_sleeps())
		sched_yield();
	atomic_store(&watched_may_go_on, true);
	return unused;
}

static void watched_end_by_fork(void)
{
	pid_t child = fork();

	if (!child)
		_exit(0);
	watched_ended = driver_forgotten;
	EXPECT_EQ(waitpid(child, NULL, 0), child);
}

static void watched_end_by_drop(void)
{
	opaque_host_drop_idle();
	watched_ended = driver_forgotten;
}

static const struct watched_end {
	const char *name;
	void (*end)(void);
} watched_ends[] = { { "fork", watched_end_by_fork }, { "drop", watched_end_by_drop } };

static const struct watched_end *watched_end;

/* The import's put has left the end to the idle thread, which is busy. */
static void watched_wait_for_end(void)
{
	uintptr_t p = watched_map_at(0, MAP_PRIVATE);
	struct driver_import import;
	pthread_t thread;

	EXPECT(watched_register(p, SIZE));
	import = driver_get(p, SIZE);
	opaque_host_invalidate(p, SIZE);
	EXPECT(idle_watch(&watched_blocker));
	while (!atomic_load(&watched_blocks))
		sched_yield();
	driver_put(&import);
	EXPECT_EQ(driver_forgotten, 0);
	watched_driver.program = gettid();
	watched_is_patient = true;
	EXPECT_EQ(pthread_create(&thread, NULL, watched_unblock, NULL), 0);
	watched_end->end();
	EXPECT_EQ(watched_ended, 1);
	pthread_join(thread, NULL);
}

TEST_EACH(ending, struct watched_end, watched_ends,
	  "fork() and climport_drop_all() wait for the end of a registration that an import's put "
	  "has left to the idle thread.")
{
	watched_end = row;
	watched_body = watched_wait_for_end;
	test_in_child(watched_run);
}

/* Linked with --wrap=pthread_create. */
static atomic_bool watched_refuses_threads;
static atomic_int watched_refusals;

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
			  void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
			  void *arg);

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
			  void *arg)
{
	if (!atomic_load(&watched_refuses_threads))
		return __real_pthread_create(thread, attr, run, arg);
	watched_refusals++;
	return EAGAIN;
}

WATCHED_TEST(no_thread,
	     "Where no thread can be started, imports succeed, nothing is logged, and threads are "
	     "tried ever more rarely.")
{
	uintptr_t p = watched_map_at(0, MAP_PRIVATE);

	atomic_store(&watched_refuses_threads, true);
	for (int i = 0; i < 100; i++) {
		EXPECT_EQ(driver_once(p, SIZE), 0);
		EXPECT(!*log_last());
	}
	EXPECT(watched_refusals > 1);
	EXPECT(watched_refusals <= 8);
}

static bool watched_is_kept(void *address)
{
	return driver_once(*(uintptr_t *)address, SIZE);
}

WATCHED_TEST(no_thread_ends, "A range is kept again after threads could not be started.")
{
	uintptr_t p = watched_map_at(0, MAP_PRIVATE);

	atomic_store(&watched_refuses_threads, true);
	for (int i = 0; i < 100; i++)
		driver_once(p, SIZE);
	atomic_store(&watched_refuses_threads, false);
	EXPECT(process_settles(watched_is_kept, &p));
}

WATCHED_TEST(once, "A program that imports each range once does not open the module.")
{
	EXPECT_EQ(driver_once(watched_map_at(0, MAP_PRIVATE), SIZE), 0);
	EXPECT_EQ(fake_gdmabuf.opens, 0);
}

WATCHED_TEST(sample,
	     "Samples that get an address in turn are pinned one by one, as self-tests need it.")
{
	for (int i = 0; i < 4; i++) {
		struct import_region *sample;
		struct import_opaque out;

		EXPECT_EQ(import_sample(OPAQUE_BY_RM, fake_rm.gpu[0].uuid, &sample), 0);
		EXPECT_EQ(import_opaque(sample, fake_rm.gpu[0].uuid, 1u << OPAQUE_BY_RM, &out), 0);
		EXPECT(out.fd >= 0);
		close(out.fd);
		import_put(sample);
	}
	EXPECT_EQ(fake_gdmabuf.watches, 0);
}

WATCHED_TEST(too_many, "If the module has no room for a watch, the import pins for itself.")
{
	uintptr_t p = watched_map_at(0, MAP_PRIVATE);

	fake_gdmabuf.watch_error = ENOSPC;
	EXPECT_EQ(watched_register(p, SIZE), 0);
	EXPECT_EQ(driver_once(p, SIZE), 0);
	EXPECT_EQ(fake_rm.pins_made, 3);
}

WATCHED_TEST(not_now,
	     "After watches that cannot begin just now, the next import registers the range.")
{
	uintptr_t p = watched_map_at(0, MAP_PRIVATE);

	fake_gdmabuf.watch_error = EAGAIN;
	for (int i = 0; i < 6; i++)
		EXPECT_EQ(driver_once(p, SIZE), 0);
	fake_gdmabuf.watch_error = 0;
	EXPECT(driver_once(p, SIZE));
}

/* Why the module watches nothing. */
static const struct watched_reason {
	const char *name;
	const char *keep; /* CLIMPORT_KEEP_HOST */
	int open_error;
	bool is_old;
} watched_reasons[] = {
	{ "forbidden", "0", 0, false },
	{ "missing", NULL, ENOENT, false },
	{ "refused", NULL, EACCES, false },
	{ "old", NULL, 0, true },
};

static const struct watched_reason *watched_reason;

static void watched_not_at_all(void)
{
	uintptr_t p;

	unsetenv("CLIMPORT_KEEP_HOST");
	if (watched_reason->keep)
		setenv("CLIMPORT_KEEP_HOST", watched_reason->keep, 1);
	fake_gdmabuf.open_error = watched_reason->open_error;
	fake_gdmabuf.is_old = watched_reason->is_old;
	watched_reset();
	p = watched_map_at(0, MAP_PRIVATE);
	EXPECT_EQ(watched_register(p, SIZE), 0);
	EXPECT_EQ(driver_once(p, SIZE), 0);
	EXPECT_EQ(fake_rm.pins_made, 3);
	EXPECT_EQ(fake_gdmabuf.watches, 0);
	EXPECT_EQ(watched_count_devices(), 0);
	EXPECT(!*log_last());
}

TEST_EACH(watched_not, struct watched_reason, watched_reasons,
	  "Where the module does not watch, each import pins its pages, nothing is logged, and the "
	  "module stays closed.")
{
	watched_reason = row;
	test_in_child(watched_not_at_all);
}
