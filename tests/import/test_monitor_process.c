/* SPDX-License-Identifier: Apache-2.0 */
/* The memory monitor and what a program does to its process. */
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "harness.h"
#include "monitor_fixture.h"
#include "process.h"

#define SIZE ((size_t)1 << 20)
#define PATIENCE_S 60

/* A test whose process is another: a process that hangs is killed. */
static void process_in_child(void (*body)(void))
{
	monitor_fixture_needed();
	test_in_child(body);
}

/* A line of the thread's status. */
static void process_status(pid_t thread, const char *key, char *value, size_t size)
{
	char path[64], line[256];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/status", (int)thread);
	file = fopen(path, "re");
	EXPECT(file);
	while (fgets(line, sizeof(line), file))
		if (!strncmp(line, key, strlen(key)))
			snprintf(value, size, "%.60s", line + strlen(key));
	fclose(file);
}

static void child_has_its_own(void)
{
	struct watch watch, inherited;
	int status = -1;
	pid_t child;
	char *p;

	alarm(PATIENCE_S);
	p = monitor_fixture_map(SIZE);
	inherited = monitor_fixture_watch(p, SIZE);
	EXPECT_EQ(monitor_fixture_count(gettid(), "userfaultfd"), 1);
	child = fork();
	if (!child) {
		alarm(PATIENCE_S);
		if (watch_is_current(&inherited) || monitor_fixture_count(gettid(), "userfaultfd"))
			_exit(1);
		watch_put(&inherited);
		watch = monitor_fixture_watch(p, SIZE);
		watch_put(&watch);
		if (monitor_fixture_registered(p, SIZE))
			_exit(3);
		watch = monitor_fixture_watch(p, SIZE);
		munmap(p, PAGE);
		if (watch_is_current(&watch))
			_exit(2);
		_exit(process_find_thread("climport-watch") ? 0 : 4);
	}
	EXPECT_EQ(waitpid(child, &status, 0), child);
	EXPECT_EQ(status, 0);
	EXPECT(watch_is_current(&inherited));
	munmap(p, PAGE);
	EXPECT(!watch_is_current(&inherited));
}

TEST(after_fork, "A child has no watch and no descriptor of the parent, and can make watches.")
{
	process_in_child(child_has_its_own);
}

/* A thread of climport allocates no memory once it has its name. */
static bool threads_have_begun(void *unused)
{
	(void)unused;
	return process_find_thread("climport-watch") && process_find_thread("climport-guard") &&
	       process_find_thread("climport-stale");
}

/*
 * As a child that did not run the handlers of fork(), among which are those of malloc(): the child
 * of a moment in which a thread is inside malloc() would wait for ever.
 */
static void child_without_handlers(void)
{
	struct watch watch, inherited;
	int status = -1;
	pid_t child;
	char *p;

	alarm(PATIENCE_S);
	p = monitor_fixture_map(SIZE);
	inherited = monitor_fixture_watch(p, SIZE);
	EXPECT(process_settles(threads_have_begun, NULL));
	child = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
	if (!child) {
		alarm(PATIENCE_S);
		if (watch_is_current(&inherited))
			_exit(1);
		watch = monitor_fixture_watch(p, SIZE);
		munmap(p, PAGE);
		_exit(watch_is_current(&watch) ? 3 : 0);
	}
	EXPECT_EQ(waitpid(child, &status, 0), child);
	EXPECT_EQ(status, 0);
	EXPECT(watch_is_current(&inherited));
}

TEST(bare_fork, "A child whose fork handlers did not run can make watches.")
{
	if (strcmp(SANITIZER, ""))
		test_skip("a sanitizer has handlers of fork()");
	process_in_child(child_without_handlers);
}

/* A process that shares the memory, and is killed while it unmaps. */
static struct {
	char *p;
	atomic_bool is_begun;
} killed;

#define KILLED_SIZE ((size_t)32 << 20)

static int killed_main(void *unused)
{
	(void)unused;
	atomic_store(&killed.is_begun, true);
	syscall(SYS_munmap, killed.p, KILLED_SIZE);
	syscall(SYS_exit, 0);
	return 0;
}

static void killed_run(char *stack, int delay)
{
	pid_t child;

	atomic_store(&killed.is_begun, false);
	child = clone(killed_main, stack, CLONE_VM | SIGCHLD, NULL);
	EXPECT(child > 0);
	while (!atomic_load(&killed.is_begun))
		sched_yield();
	for (volatile int i = 0; i < delay; i++)
		;
	kill(child, SIGKILL);
	EXPECT_EQ(waitpid(child, NULL, 0), child);
}

/* True: the child unmapped the memory, and the watch is current nevertheless. */
static bool killed_round(char *stack, int delay)
{
	struct watch watch;
	bool is_wrong;

	killed.p = monitor_fixture_map(KILLED_SIZE);
	watch = monitor_fixture_watch(killed.p, KILLED_SIZE);
	killed_run(stack, delay);
	is_wrong = mmap(killed.p, KILLED_SIZE, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == killed.p &&
		   watch_is_current(&watch);
	watch_put(&watch);
	monitor_fixture_unmap(killed.p, KILLED_SIZE);
	return is_wrong;
}

/* The kernel drops the event of a thread that is killed. */
static void killed_while_unmapping(void)
{
	char *stack = monitor_fixture_map(SIZE);
	int wrong = 0;

	alarm(PATIENCE_S);
	for (int i = 0; i < 100; i++)
		wrong += killed_round(stack + SIZE, i * 7919 % 30000);
	EXPECT_EQ(wrong, 0);
}

TEST(killed, "A watch is stale if a killed process that shares the memory has unmapped the range.")
{
	if (strcmp(SANITIZER, ""))
		test_skip("a sanitizer knows no process that shares its memory");
	process_in_child(killed_while_unmapping);
}

static void closed_all(void)
{
	struct watch watch, more;
	char *p, *q;

	alarm(PATIENCE_S);
	p = monitor_fixture_map(SIZE);
	q = monitor_fixture_map(SIZE);
	watch = monitor_fixture_watch(p, SIZE);
	for (int fd = 3; fd < 1024; fd++)
		close(fd);
	EXPECT(!watch_is_current(&watch));
	EXPECT(!munmap(p, PAGE));
	EXPECT(!monitor_is_available());
	EXPECT(!strcmp(monitor_describe(), "the program has closed the descriptor"));
	EXPECT_EQ(monitor_watch((uintptr_t)q, SIZE, &more), -EOPNOTSUPP);
	watch_put(&watch);
	EXPECT(!munmap(p + PAGE, PAGE));
}

TEST(closed, "Where the program has closed all descriptors watches are stale, and nobody waits.")
{
	process_in_child(closed_all);
}

static void closed_and_used_again(void)
{
	struct watch watch;
	int others[64];
	char *p;

	alarm(PATIENCE_S);
	p = monitor_fixture_map(SIZE);
	watch = monitor_fixture_watch(p, SIZE);
	for (int fd = 3; fd < 64; fd++)
		close(fd);
	for (int fd = 3; fd < 64; fd++)
		others[fd] = (int)syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);
	EXPECT(!watch_is_current(&watch));
	watch_put(&watch);
	EXPECT(!munmap(p, PAGE));
	for (int fd = 3; fd < 64; fd++)
		EXPECT(others[fd] < 0 || fcntl(others[fd], F_GETFD) == FD_CLOEXEC);
}

TEST(number_used_again, "A foreign userfaultfd at the number of the descriptor is left alone.")
{
	process_in_child(closed_and_used_again);
}

/* A process that does not share memory holds the parent's userfaultfd open. */
static void closed_with_a_child(void)
{
	struct watch watch;
	int fds[2];
	pid_t child;
	char *p;

	alarm(PATIENCE_S);
	p = monitor_fixture_map(SIZE);
	watch = monitor_fixture_watch(p, SIZE);
	EXPECT(!pipe(fds));
	child = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
	if (!child) {
		char byte;

		close(fds[1]);
		_exit(read(fds[0], &byte, 1) != 0);
	}
	close(fds[0]);
	for (int fd = 3; fd < 1024; fd++)
		if (fd != fds[1])
			close(fd);
	EXPECT(!munmap(p, SIZE));
	EXPECT(!watch_is_current(&watch));
	close(fds[1]);
	EXPECT_EQ(waitpid(child, NULL, 0), child);
}

TEST(closed_but_inherited, "No thread waits for ever for a descriptor that a child still has.")
{
	process_in_child(closed_with_a_child);
}

static void made_to_block(void)
{
	struct watch watch;
	char *p;

	alarm(PATIENCE_S);
	p = monitor_fixture_map(SIZE);
	watch = monitor_fixture_watch(p, SIZE);
	for (int fd = 3; fd < 1024; fd++)
		fcntl(fd, F_SETFL, 0);
	for (int i = 0; i < 3; i++)
		EXPECT(!munmap(p + (ptrdiff_t)i * PAGE, PAGE));
	EXPECT(!watch_is_current(&watch));
	watch_put(&watch);
	watch = monitor_fixture_watch(p + SIZE / 2, SIZE / 2);
	EXPECT(!munmap(p + SIZE / 2, PAGE));
	EXPECT(!watch_is_current(&watch));
}

TEST(blocking, "The monitor works on where the program has made all descriptors block.")
{
	process_in_child(made_to_block);
}

static void reader_look(void)
{
	char blocked[64] = "";
	int files[2];
	pid_t reader;
	char *p, byte;

	alarm(PATIENCE_S);
	EXPECT(!pipe(files));
	p = monitor_fixture_map(SIZE);
	monitor_fixture_watch(p, SIZE);
	reader = process_find_thread("climport-watch");
	EXPECT(reader > 0);
	EXPECT_EQ(monitor_fixture_count(reader, ""), 1);
	close(files[1]);
	EXPECT_EQ(read(files[0], &byte, 1), 0);
	process_status(reader, "SigBlk:", blocked, sizeof(blocked));
	EXPECT(strstr(blocked, "fffffffe3ffbfa27") || strstr(blocked, "ffffffffbffbfa27"));
}

TEST(reader, "The reader of events takes no signal but of its own faults, and keeps no file of the "
	     "program open.")
{
	process_in_child(reader_look);
}

static void watch_when_turned_off(void)
{
	int threads = process_count_threads();
	struct watch watch;
	char *p;

	setenv("CLIMPORT_KEEP_HOST", "0", 1);
	p = monitor_fixture_map(SIZE);
	EXPECT(!monitor_is_available());
	EXPECT(!strcmp(monitor_describe(), "CLIMPORT_KEEP_HOST is not 1"));
	EXPECT_EQ(monitor_watch((uintptr_t)p, SIZE, &watch), -EOPNOTSUPP);
	EXPECT_EQ(process_count_threads(), threads);
}

TEST(turned_off, "CLIMPORT_KEEP_HOST=0 turns the monitor off, and no thread starts.")
{
	test_in_child(watch_when_turned_off);
}

static void is_asked_only(void)
{
	int descriptors = process_count_descriptors(), threads = process_count_threads();

	EXPECT(monitor_is_available());
	EXPECT_EQ(process_count_threads(), threads);
	EXPECT_EQ(process_count_descriptors(), descriptors);
}

TEST(asked, "A question for the monitor starts no thread and keeps no descriptor.")
{
	process_in_child(is_asked_only);
}

static int program_userfaultfd(char *p)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register range = { .range = { (uintptr_t)p, SIZE },
					 .mode = UFFDIO_REGISTER_MODE_MISSING };
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);

	EXPECT(fd >= 0 && !ioctl(fd, UFFDIO_API, &api));
	EXPECT(!ioctl(fd, UFFDIO_REGISTER, &range));
	return fd;
}

static void program_first(void)
{
	program_userfaultfd(monitor_fixture_map(SIZE));
	EXPECT(!monitor_is_available());
	EXPECT(!strcmp(monitor_describe(), "the program uses userfaultfd(2)"));
}

TEST(program_first, "In a program that has a userfaultfd no memory is watched.")
{
	process_in_child(program_first);
}

/* "um": registered for missing pages. */
static bool is_registered_for_missing(const char *p)
{
	FILE *maps = fopen("/proc/self/smaps", "re");
	unsigned long from, to;
	bool is_here = false, found = false;
	char line[4352];

	EXPECT(maps);
	while (fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
			is_here = from <= (uintptr_t)p && (uintptr_t)p < to;
		else if (is_here && !strncmp(line, "VmFlags:", 8))
			found |= strstr(line, " um") != NULL;
	}
	fclose(maps);
	return found;
}

static void program_later(void)
{
	struct watch watch, refused;
	char *p, *q;

	p = monitor_fixture_map(SIZE);
	q = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	watch = monitor_fixture_watch(p, SIZE);
	program_userfaultfd(q);
	EXPECT_EQ(monitor_watch((uintptr_t)q, SIZE, &refused), -EBUSY);
	EXPECT(is_registered_for_missing(q));
	EXPECT(watch_is_current(&watch));
}

TEST(program_later, "Memory that the program's userfaultfd has is not watched, and stays so.")
{
	process_in_child(program_later);
}

/* The program unmaps watched memory, and its userfaultfd has the address. */
static void program_takes_over(void)
{
	struct watch watch;
	char *p;

	p = monitor_fixture_map(SIZE);
	watch = monitor_fixture_watch(p, SIZE);
	EXPECT(mmap(p, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
		    0) == p);
	program_userfaultfd(p);
	EXPECT(!watch_is_current(&watch));
	watch_put(&watch);
	EXPECT(is_registered_for_missing(p));
}

TEST(program_takes_over, "The end of a stale watch leaves the userfaultfd of the program alone.")
{
	process_in_child(program_takes_over);
}

/* Ends the process for the system call. */
static void filter_enter(int number)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned int)number, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = { sizeof(code) / sizeof(*code), code };

	EXPECT(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter))
		test_skip("no filters of system calls");
}

static void watch_when_filtered(void)
{
	filter_enter(SYS_userfaultfd);
	EXPECT(!monitor_is_available());
	EXPECT(!strcmp(monitor_describe(), "the process has restricted its system calls"));
}

TEST(filtered, "In a process with restricted system calls userfaultfd(2) is not called.")
{
	test_in_child(watch_when_filtered);
}

struct ending {
	const char *name;
	long call;
};

static const struct ending endings[] = {
	{ "poll", SYS_poll },
	{ "read", SYS_read },
	{ "futex", SYS_futex },
};

static const struct ending *ending_row;

/* For all threads: a thread that makes the system call ends, or the process does. */
static void ending_enter(long number, unsigned int end)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned int)number, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, end),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = { sizeof(code) / sizeof(*code), code };

	EXPECT(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &filter))
		_exit(77);
}

/* The guard waits for the reader from a moment after the first watch on. */
static bool ending_is_guarded(void *unused)
{
	pid_t guard = process_find_thread("climport-guard");
	char state[64] = "";

	(void)unused;
	if (guard)
		process_status(guard, "State:", state, sizeof(state));
	return strstr(state, "sleeping") != NULL;
}

static void ending_main(void)
{
	char *p = monitor_fixture_map(4 * SIZE), *q = monitor_fixture_map(SIZE);
	struct watch watch, other, more;

	alarm(PATIENCE_S);
	watch = monitor_fixture_watch(p, SIZE);
	other = monitor_fixture_watch(q, SIZE);
	EXPECT(process_settles(ending_is_guarded, NULL));
	ending_enter(ending_row->call, SECCOMP_RET_KILL_THREAD);
	for (int i = 0; i < 8; i++)
		munmap(p + (ptrdiff_t)i * PAGE, PAGE);
	munmap(q, SIZE);
	if (ending_row->call != SYS_poll)
		_exit(0); /* the program's own threads may not call climport any more */
	if (watch_is_current(&watch) || watch_is_current(&other))
		_exit(1);
	if (!monitor_watch((uintptr_t)p + 2 * SIZE, SIZE, &more))
		munmap(p + 2 * SIZE, SIZE);
	_exit(0);
}

TEST_EACH(reader_ended, struct ending, endings,
	  "No thread waits for ever where a filter of system calls has ended the reader of events.")
{
	int status = -1;
	pid_t child;

	monitor_fixture_needed();
	if (!strcmp(SANITIZER, "thread"))
		test_skip("the thread sanitizer waits for the thread");
	ending_row = row;
	fflush(stdout);
	child = fork();
	if (!child)
		ending_main();
	EXPECT_EQ(waitpid(child, &status, 0), child);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		test_skip("no filters of system calls");
	EXPECT_EQ(status, 0);
}

static atomic_bool quiet_is_over;

static void *quiet_thread(void *p)
{
	monitor_fixture_watch(p, SIZE);
	while (!atomic_load(&quiet_is_over))
		sched_yield();
	return NULL;
}

/* The monitor looks at other times than at events: each second, for some seconds. */
static void quiet_when_filtered(void)
{
	const struct timespec moment = { 1, 500000000 };
	char *p = monitor_fixture_map(SIZE), *q = monitor_fixture_map(SIZE);
	struct watch watch;
	pthread_t thread;

	alarm(PATIENCE_S);
	watch = monitor_fixture_watch(p, SIZE);
	EXPECT(watch_is_current(&watch));
	EXPECT(!pthread_create(&thread, NULL, quiet_thread, q));
	ending_enter(SYS_openat, SECCOMP_RET_KILL_PROCESS);
	nanosleep(&moment, NULL);
	atomic_store(&quiet_is_over, true);
	pthread_join(thread, NULL);
	nanosleep(&moment, NULL);
	munmap(p, SIZE);
	_exit(0);
}

TEST(quiet, "In a process with restricted system calls the monitor opens no file by itself.")
{
	process_in_child(quiet_when_filtered);
}

static bool left_is_ended(void *child)
{
	return waitpid(*(pid_t *)child, NULL, WNOHANG) == *(pid_t *)child;
}

/* The threads of the monitor block all signals. */
TEST(left, "A process whose last thread of its own has ended ends.")
{
	pid_t child;
	bool is_ended;

	monitor_fixture_needed();
	if (!strcmp(SANITIZER, "thread"))
		test_skip("the thread sanitizer has a thread of its own");
	fflush(stdout);
	child = fork();
	if (!child) {
		char *p = monitor_fixture_map(SIZE);

		monitor_fixture_watch(p, SIZE);
		pthread_exit(NULL);
	}
	is_ended = process_settles(left_is_ended, &child);
	if (!is_ended) {
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
	}
	EXPECT(is_ended);
}

static void *left_thread(void *arg)
{
	const struct timespec moment = { 2, 500000000 };

	nanosleep(&moment, NULL);
	_exit(*(int *)arg);
}

/* The monitor looks each second. */
TEST(left_behind, "A process lives while a thread of its own runs, though the first has ended.")
{
	static int code = 7;
	int status = -1;
	pid_t child;

	monitor_fixture_needed();
	fflush(stdout);
	child = fork();
	if (!child) {
		char *p = monitor_fixture_map(SIZE);
		pthread_t thread;

		monitor_fixture_watch(p, SIZE);
		EXPECT(!pthread_create(&thread, NULL, left_thread, &code));
		pthread_exit(NULL);
	}
	EXPECT_EQ(waitpid(child, &status, 0), child);
	EXPECT_EQ(WEXITSTATUS(status), code);
}

static void *cancelled_watch(void *arg)
{
	struct watch watch;

	pthread_cancel(pthread_self());
	if (monitor_watch((uintptr_t)arg, SIZE, &watch) || !watch_is_current(&watch))
		return NULL;
	watch_put(&watch);
	monitor_describe();
	return arg;
}

TEST(cancelled, "A thread that is cancelled is not cancelled in the monitor.")
{
	pthread_t thread;
	void *done;
	char *p;

	monitor_fixture_needed();
	p = monitor_fixture_map(SIZE);
	EXPECT(!pthread_create(&thread, NULL, cancelled_watch, p));
	pthread_join(thread, &done);
	EXPECT(done == p);
	monitor_fixture_unmap(p, SIZE);
}

static void *busy_unmapper(void *arg)
{
	(void)arg;
	for (;;) {
		struct watch watch;
		char *p = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			       0);

		if (p == MAP_FAILED)
			continue;
		monitor_watch((uintptr_t)p, SIZE, &watch);
		munmap(p, SIZE);
		watch_put(&watch);
	}
	return NULL;
}

/* Each child ends while threads unmap; the sanitizers' exit handlers take their time. */
TEST(exit_while_busy, "A process ends while threads unmap watched memory.")
{
	monitor_fixture_needed();
	for (int i = 0; i < 10; i++) {
		int status = -1;
		pid_t child = fork();

		if (!child) {
			const struct timespec ms = { 0, 1000000 * (i + 1) };
			pthread_t thread;

			alarm(PATIENCE_S);
			for (int t = 0; t < 3; t++)
				pthread_create(&thread, NULL, busy_unmapper, NULL);
			nanosleep(&ms, NULL);
			_exit(0);
		}
		EXPECT_EQ(waitpid(child, &status, 0), child);
		EXPECT_EQ(status, 0);
	}
}

static void *forked_unmapper(void *arg)
{
	atomic_bool *is_over = arg;

	while (!atomic_load(is_over)) {
		struct watch watch = { 0 };
		char *p = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			       0);

		monitor_watch((uintptr_t)p, SIZE, &watch);
		munmap(p, SIZE);
		watch_put(&watch);
	}
	return NULL;
}

static void forked_while_busy(void)
{
	static atomic_bool is_over;
	pthread_t threads[2];

	alarm(PATIENCE_S);
	for (int t = 0; t < 2; t++)
		EXPECT(!pthread_create(&threads[t], NULL, forked_unmapper, &is_over));
	for (int i = 0; i < 50; i++) {
		int status = -1;
		pid_t child = fork();

		if (!child) {
			char *p = monitor_fixture_map(SIZE);
			struct watch watch = monitor_fixture_watch(p, SIZE);

			munmap(p, SIZE);
			_exit(watch_is_current(&watch));
		}
		EXPECT_EQ(waitpid(child, &status, 0), child);
		EXPECT_EQ(status, 0);
	}
	atomic_store(&is_over, true);
	for (int t = 0; t < 2; t++)
		pthread_join(threads[t], NULL);
}

TEST(fork_while_busy, "Children that are forked while threads unmap have working watches.")
{
	process_in_child(forked_while_busy);
}

/* Exit handlers run in reverse order: this one as a driver's, which is older than the first watch. */
static char *ended_memory;
static atomic_bool ended_is_begun, ended_is_told, ended_wrongly;

/* An exit waits for so long at most, and begins after the owner is told. */
#define ENDED_WAIT_MS 1000

static bool ended_may_have_waited(const struct timespec *told)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (now.tv_sec - told->tv_sec) * 1000 + (now.tv_nsec - told->tv_nsec) / 1000000 >=
	       ENDED_WAIT_MS;
}

static void ended_note(uintptr_t at, size_t size)
{
	const struct timespec ms = { 0, 1000000 };
	struct timespec told;

	(void)at, (void)size;
	clock_gettime(CLOCK_MONOTONIC, &told);
	atomic_store(&ended_is_told, true);
	for (int i = 0; i < 100; i++) {
		if (atomic_load(&ended_is_begun) && !ended_may_have_waited(&told))
			atomic_store(&ended_wrongly, true);
		nanosleep(&ms, NULL);
	}
}

static bool ended_is_told_now(void *unused)
{
	(void)unused;
	return atomic_load(&ended_is_told);
}

static void ended_by_driver(void)
{
	const struct timespec moment = { 0, 100000000 };

	atomic_store(&ended_is_begun, true);
	munmap(ended_memory, PAGE);
	nanosleep(&moment, NULL);
	_exit(atomic_load(&ended_wrongly) ? 1 : 0);
}

static void exit_with_driver(bool is_telling)
{
	struct watch watch, other;
	char *p;

	alarm(PATIENCE_S);
	EXPECT(!atexit(ended_by_driver));
	monitor_on_stale(ended_note);
	p = monitor_fixture_map(SIZE);
	ended_memory = monitor_fixture_map(SIZE);
	watch = monitor_fixture_watch(p, SIZE);
	other = monitor_fixture_watch(ended_memory, SIZE);
	EXPECT(watch_is_current(&watch) && watch_is_current(&other));
	if (is_telling) {
		EXPECT(!munmap(p, PAGE));
		EXPECT(process_settles(ended_is_told_now, NULL));
	}
	exit(2);
}

static void exit_untold(void)
{
	exit_with_driver(false);
}

static void exit_while_telling(void)
{
	exit_with_driver(true);
}

TEST(exit_untold, "No owner is told of a watch that becomes stale when drivers end.")
{
	process_in_child(exit_untold);
}

TEST(exit_while_telling, "An exit waits for an owner that is being told, before drivers end.")
{
	process_in_child(exit_while_telling);
}
