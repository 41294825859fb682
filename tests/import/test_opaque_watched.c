/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Registrations of host memory that the kernel module watches: how they begin and end.
 */
#include "driver_time.h"
#include "watched_fixture.h"

#include "import/opaque_fd/opaque_cache.h"
#include "import/opaque_fd/opaque_watched.h"
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

WATCHED_TEST(kept, "If the module is loaded, the third import of a range pins nothing.")
{
	uintptr_t p = watched_map();
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

/* The tick finds no registration. */
static void watched_wait_for_tick(void)
{
	EXPECT(process_settles(watched_idle_thread_has_no_limit, NULL));
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
	uintptr_t p = watched_map();

	atomic_store(&driver_time_passes, true);
	fake_gdmabuf.watching = watched_wait_for_tick;
	EXPECT(watched_register(p, SIZE));
	EXPECT(process_settles(watched_is_over, NULL));
}

WATCHED_TEST(small, "A page is kept.")
{
	uintptr_t p = watched_map();
	uint64_t kept = watched_register(p, 64);

	EXPECT(kept);
	EXPECT_EQ(driver_once(p, PAGE), kept);
}

WATCHED_TEST(stale, "If the address gets other pages, the next import pins these pages.")
{
	uintptr_t p = watched_map();
	uint64_t kept = watched_register(p, SIZE);

	watched_remap(p);
	EXPECT(driver_once(p, SIZE) != kept);
	EXPECT_EQ(fake_rm.pins_made, 3);
	EXPECT_EQ(atomic_load(&driver_last_forgotten), kept);
}

WATCHED_TEST(stale_in_use, "If the address gets other pages during an import, the next import pins "
			   "these pages, and the import keeps its own.")
{
	uintptr_t p = watched_map();
	uint64_t kept = watched_use(p);
	struct driver_import i = driver_get(p, SIZE);

	EXPECT_EQ(i.out.kept, kept);
	watched_remap(p);
	EXPECT(driver_once(p, SIZE) != kept);
	EXPECT_EQ(driver_forgotten, 0);
	EXPECT_EQ(driver_memories(), 2);
	driver_put(&i);
	driver_settle(1);
	EXPECT_EQ(driver_last_forgotten, kept);
}

static bool watched_has_no_watch(void *unused)
{
	(void)unused;
	return !fake_gdmabuf.watches;
}

WATCHED_TEST(idle,
	     "A registration that no import uses goes after some seconds, and with it the watch.")
{
	uintptr_t p = watched_map();

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
	uintptr_t p = watched_map(), other = watched_map();
	uint64_t freed = watched_register(p, SIZE), kept = watched_register(other, SIZE);
	unsigned int one = 1;

	EXPECT_EQ(fake_gdmabuf.watches, 2);
	watched_unmap(p);
	EXPECT(process_settles(watched_forgot, &one));
	EXPECT_EQ(atomic_load(&driver_last_forgotten), freed);
	EXPECT_EQ(driver_once(other, SIZE), kept);
}

WATCHED_TEST(
	invalidated,
	"An invalidation of a part ends an idle registration before the call returns, and other "
	"registrations stay.")
{
	uintptr_t p = watched_map(), other = watched_map();
	uint64_t kept = watched_register(p, SIZE), others = watched_register(other, SIZE);

	watched_is_patient = true;
	opaque_watched_invalidate(p + SIZE - 1, 1);
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
	uintptr_t p = watched_map();
	uint64_t kept = watched_register(p, SIZE);
	struct driver_import i = driver_get(p, SIZE);
	unsigned int one = 1;

	EXPECT_EQ(i.out.kept, kept);
	opaque_watched_invalidate(p, SIZE);
	EXPECT_EQ(driver_forgotten, 0);
	EXPECT(driver_once(p, SIZE) != kept);
	driver_put(&i);
	EXPECT(process_settles(watched_forgot, &one));
	EXPECT_EQ(atomic_load(&driver_last_forgotten), kept);
}

WATCHED_TEST(dropped, "All registrations without an import are ended at once.")
{
	uintptr_t p = watched_map(), used = watched_map();
	uint64_t kept = watched_register(p, SIZE);
	struct driver_import i;

	watched_register(used, SIZE);
	i = driver_get(used, SIZE);
	watched_is_patient = true;
	opaque_watched_drop_idle();
	EXPECT_EQ(driver_forgotten, 1);
	EXPECT_EQ(atomic_load(&driver_last_forgotten), kept);
	EXPECT_EQ(fake_gdmabuf.watches, 1);
	driver_put(&i);
}

static const struct watched_limit {
	const char *name;
	uint64_t ranges, entries; /* ranges: of SIZE bytes */
	int stay;
} watched_limits[] = {
	{ "no_bytes", 0, UINT64_MAX, 0 },	 { "no_entries", UINT32_MAX, 0, 0 },
	{ "bytes", 2, UINT64_MAX, 2 },		 { "entries", UINT32_MAX, 1, 1 },
	{ "larger", UINT32_MAX, UINT64_MAX, 3 },
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
		p[i] = watched_map();
		EXPECT(watched_register(p[i], SIZE));
	}
	watched_is_patient = true;
	opaque_watched_set_limits(watched_limit->ranges * SIZE, watched_limit->entries);
	EXPECT_EQ(driver_forgotten, 3 - watched_limit->stay);
	for (int i = 0; i < 6; i++)
		driver_once(p[i % 3], SIZE);
	EXPECT(process_settles(watched_holds_limit, NULL));
	opaque_watched_set_limits(UINT64_MAX, UINT64_MAX);
}

TEST_EACH(watched_limits, struct watched_limit, watched_limits,
	  "The program's limits hold for registrations that are there, and for later ones.")
{
	watched_limit = row;
	watched_run(watched_lower_limit);
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
	struct driver_import i = watched_outlive_ticks(watched_map());

	EXPECT(i.out.kept);
	EXPECT_EQ(fake_gdmabuf.watches, 1);
	driver_put(&i);
}

WATCHED_TEST(live_ended, "A registration grows old after an import that has outlived the idle "
			 "thread's ticks.")
{
	struct driver_import i = watched_outlive_ticks(watched_map());

	driver_put(&i);
	EXPECT(process_settles(watched_has_no_watch, NULL));
}

WATCHED_TEST(live_freed, "A registration of memory that the program frees after an import that has "
			 "outlived the idle thread's ticks goes.")
{
	uintptr_t p = watched_map();
	struct driver_import i = watched_outlive_ticks(p);
	unsigned int one = 1;

	atomic_store(&driver_time_passes, false);
	driver_put(&i);
	watched_unmap(p);
	EXPECT(process_settles(watched_forgot, &one));
}

static void watched_end_thread(void)
{
	uintptr_t p = watched_map();

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

	alarm(TEST_HANG_S);
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
	uintptr_t p = watched_map();
	struct driver_import import;
	int status;
	pid_t child;

	if (!strcmp(SANITIZER, "thread"))
		test_skip("the thread sanitizer does not know such a child");
	/* A thread that is awake may hold a lock of malloc(), which the child would wait for. */
	import = watched_outlive_ticks(p);
	EXPECT(process_settles(process_is_quiet, NULL));
	child = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
	if (!child)
		watched_import_in_child(p, import.out.kept);
	EXPECT_EQ(waitpid(child, &status, 0), child);
	EXPECT_EQ(status, 0);
	atomic_store(&driver_time_passes, false);
	EXPECT_EQ(driver_once(p, SIZE), import.out.kept);
	driver_put(&import);
}

static int watched_count_devices(void)
{
	int count = 0;

	for (int fd = 3; fd < 256; fd++)
		count += fake_gdmabuf_is_device(fd);
	return count;
}

static pid_t watched_program; /* the thread of the test */

static bool watched_program_sleeps(void)
{
	char path[64], line[256] = "";
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", watched_program);
	file = fopen(path, "re");
	EXPECT(file && fgets(line, sizeof(line), file));
	fclose(file);
	return strstr(line, ") S ");
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

static struct idle_task watched_blocker = { .tick = watched_block };

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
	opaque_watched_drop_idle();
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
	uintptr_t p = watched_map();
	struct driver_import import;
	pthread_t thread;

	EXPECT(watched_register(p, SIZE));
	import = driver_get(p, SIZE);
	opaque_watched_invalidate(p, SIZE);
	EXPECT(idle_request(&watched_blocker));
	while (!atomic_load(&watched_blocks))
		sched_yield();
	driver_put(&import);
	EXPECT_EQ(driver_forgotten, 0);
	watched_program = gettid();
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
	watched_run(watched_wait_for_end);
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
	uintptr_t p = watched_map();

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
	uintptr_t p = watched_map();

	atomic_store(&watched_refuses_threads, true);
	for (int i = 0; i < 100; i++)
		driver_once(p, SIZE);
	atomic_store(&watched_refuses_threads, false);
	EXPECT(process_settles(watched_is_kept, &p));
}

WATCHED_TEST(once,
	     "A program that imports each range once starts no thread and opens no descriptor.")
{
	int threads = process_count_threads(), fds = process_count_descriptors();

	for (int i = 0; i < 300; i++)
		EXPECT_EQ(driver_once(watched_map(), SIZE), 0);
	EXPECT_EQ(process_count_threads(), threads);
	EXPECT_EQ(process_count_descriptors(), fds);
	EXPECT_EQ(driver_memories(), 0);
}

WATCHED_TEST(sample,
	     "Samples that get an address in turn are pinned one by one, as self-tests need it.")
{
	for (int i = 0; i < 4; i++) {
		struct import_region *sample;
		struct import_opaque out;

		EXPECT_EQ(import_sample(OPAQUE_BY_RM, fake_rm.gpu[0].uuid, &sample), 0);
		EXPECT_EQ(import_opaque(sample, fake_rm.gpu[0].uuid, &sample->opaque, &out), 0);
		EXPECT(out.fd >= 0);
		close(out.fd);
		import_put(sample);
	}
	EXPECT_EQ(fake_gdmabuf.watches, 0);
}

WATCHED_TEST(too_many, "If the module has no room for a watch, the import pins for itself.")
{
	uintptr_t p = watched_map();

	fake_gdmabuf.watch_error = EDQUOT;
	EXPECT_EQ(watched_register(p, SIZE), 0);
	EXPECT_EQ(driver_once(p, SIZE), 0);
	EXPECT_EQ(fake_rm.pins_made, 3);
}

WATCHED_TEST(not_now,
	     "After watches that cannot begin just now, the next import registers the range.")
{
	uintptr_t p = watched_map();

	fake_gdmabuf.watch_error = EAGAIN;
	for (int i = 0; i < 6; i++)
		EXPECT_EQ(driver_once(p, SIZE), 0);
	fake_gdmabuf.watch_error = 0;
	EXPECT(driver_once(p, SIZE));
}

/* Why the process may not use the module. */
static const struct watched_reason {
	const char *name;
	int open_error;
} watched_reasons[] = {
	{ "missing", ENOENT },
	{ "refused", EACCES },
};

static const struct watched_reason *watched_reason;

static void watched_not_at_all(void)
{
	uintptr_t p = watched_map();

	fake_gdmabuf.open_error = watched_reason->open_error;
	EXPECT_EQ(watched_register(p, SIZE), 0);
	fake_gdmabuf.open_error = 0;
	EXPECT_EQ(driver_once(p, SIZE), 0);
	EXPECT_EQ(fake_rm.pins_made, 3);
	EXPECT_EQ(fake_gdmabuf.watches, 0);
	EXPECT_EQ(fake_gdmabuf.opens, 0);
	EXPECT_EQ(watched_count_devices(), 0);
}

TEST_EACH(watched_not, struct watched_reason, watched_reasons,
	  "Where the module does not watch, each import pins its pages, nothing is logged, the "
	  "module stays closed, and the process asks once.")
{
	watched_reason = row;
	watched_run(watched_not_at_all);
}

WATCHED_TEST(shortage_passes, "A lack of descriptors at the first question is not the last answer.")
{
	uintptr_t p = watched_map();

	fake_gdmabuf.open_error = EMFILE;
	EXPECT_EQ(watched_register(p, SIZE), 0);
	fake_gdmabuf.open_error = 0;
	EXPECT(driver_once(p, SIZE));
}
