/* SPDX-License-Identifier: Apache-2.0 */
/* How the idle thread starts and ends. */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness.h"
#include "process.h"
#include "thread_fixture.h"
#include "util/idle.h"

#define NAME "climport-idle"
#define PATIENCE_S 60
#define NEVER_MS (1000 * PATIENCE_S)

static atomic_int idle_ticks;

static bool idle_count(void)
{
	idle_ticks++;
	return true;
}

static bool idle_has_ticked(void *unused)
{
	(void)unused;
	return idle_ticks > 0;
}

static struct idle_watcher counter = { .tick = idle_count, .period_ms = 1 };

static void idle_start_counter(void *unused)
{
	(void)unused;
	EXPECT(idle_watch(&counter));
}

static const struct thread_creator *idle_creator;

static void idle_started_by_creator(void)
{
	thread_fixture_check(idle_creator, idle_start_counter, NULL, NAME);
}

TEST_EACH(idle_free, struct thread_creator, thread_creators,
	  "The idle thread has the processors and the nice value of the process and an ordinary "
	  "policy, whatever the thread that starts the idle thread has.")
{
	idle_creator = row;
	test_in_child(idle_started_by_creator);
}

TEST(idle_confined, "In a program that was started on one processor and with a nice value, the "
		    "idle thread has both.")
{
	if (!thread_fixture_is_confined("idle_confined"))
		return;
	idle_start_counter(NULL);
	thread_fixture_expect_free(NAME);
}

/* The signals that a thread blocks: SigBlk of its status. */
static unsigned long long idle_read_blocked(pid_t thread)
{
	unsigned long long blocked = 0;
	char path[64], line[256];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/status", thread);
	file = fopen(path, "re");
	EXPECT(file);
	while (fgets(line, sizeof(line), file))
		if (!strncmp(line, "SigBlk:", 7))
			blocked = strtoull(line + 7, NULL, 16);
	fclose(file);
	return blocked;
}

static void idle_started_with_blocked(void)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, NULL);
	idle_start_counter(NULL);
	EXPECT(process_settles(idle_has_ticked, NULL));
	EXPECT_EQ(idle_read_blocked(process_find_thread(NAME)), idle_read_blocked(getpid()));
}

TEST(idle_blocked, "The idle thread takes no signal that the thread which starts the idle thread "
		   "blocks: the program may read the signal by signalfd().")
{
	test_in_child(idle_started_with_blocked);
}

/* The parent's thread is in a tick, or waits for the next. */
static bool idle_block(void)
{
	idle_ticks++;
	pause();
	return true;
}

static bool idle_sleeps(void *unused)
{
	char path[64], line[256] = "";
	const char *end;
	FILE *file;

	(void)unused;
	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)process_find_thread(NAME));
	file = fopen(path, "re");
	if (!file)
		return false;
	end = fgets(line, sizeof(line), file) ? strrchr(line, ')') : NULL;
	fclose(file);
	return end && !strncmp(end, ") S", 3);
}

static struct idle_watcher idle_blocker = { .tick = idle_block, .period_ms = 1 },
			   idle_late = { .tick = idle_count, .period_ms = NEVER_MS };

static const struct idle_state {
	const char *name;
	struct idle_watcher *watcher;
	bool (*is_reached)(void *unused);
} idle_states[] = {
	{ "in_tick", &idle_blocker, idle_has_ticked },
	{ "waiting", &idle_late, idle_sleeps },
};

static void idle_child(void)
{
	alarm(PATIENCE_S);
	idle_ticks = 0;
	idle_start_counter(NULL);
	_exit(!process_settles(idle_has_ticked, NULL));
}

static const struct idle_state *idle_state;

static void idle_clone(void)
{
	int status = -1;
	pid_t child;

	EXPECT(idle_watch(idle_state->watcher));
	EXPECT(process_settles(idle_state->is_reached, NULL));
	child = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
	if (!child)
		idle_child();
	EXPECT_EQ(waitpid(child, &status, 0), child);
	EXPECT_EQ(status, 0);
	_exit(0);
}

TEST_EACH(idle_clone, struct idle_state, idle_states,
	  "A child without handlers of fork() has an idle thread of its own.")
{
	if (!strcmp(SANITIZER, "thread"))
		test_skip("the thread sanitizer does not know such a child");
	idle_state = row;
	test_in_child(idle_clone);
}

/* The first tick ends its thread, as a callback of the application's may. */
static bool idle_leave(void)
{
	if (!idle_ticks++)
		pthread_exit(NULL);
	return false;
}

static struct idle_watcher leaver = { .tick = idle_leave, .period_ms = 1 };

static bool idle_has_ticked_twice(void *unused)
{
	(void)unused;
	return idle_ticks > 1;
}

static void idle_left(void)
{
	EXPECT(idle_watch(&leaver));
	EXPECT(process_settles(idle_has_ticked_twice, NULL));
}

TEST(idle_left, "If a tick ends the idle thread, another idle thread has the next ticks.")
{
	test_in_child(idle_left);
}

/* Ends the process for a new thread. */
static void idle_forbid_threads(unsigned int flags)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = { sizeof(code) / sizeof(*code), code };

	EXPECT(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &filter))
		test_skip("no filters of system calls");
}

static bool idle_once(void)
{
	idle_ticks++;
	return false;
}

static struct idle_watcher single = { .tick = idle_once, .period_ms = 1 };

static void idle_tick_once(void)
{
	idle_ticks = 0;
	EXPECT(idle_watch(&single));
	EXPECT(process_settles(idle_has_ticked, NULL));
}

/* The thread ends a second after a tick, if the thread may. */
static void idle_pause(void)
{
	const struct timespec two_seconds = { 2, 0 };

	nanosleep(&two_seconds, NULL);
}

static const struct idle_restriction {
	const char *name;
	unsigned int flags;
} idle_restrictions[] = {
	{ "caller", 0 },
	{ "all_threads", SECCOMP_FILTER_FLAG_TSYNC },
};

static const struct idle_restriction *idle_restriction;

static void idle_restricted(void)
{
	idle_tick_once();
	idle_forbid_threads(idle_restriction->flags);
	for (int i = 0; i < 2; i++) {
		idle_pause();
		idle_tick_once();
	}
}

TEST_EACH(idle_restricted, struct idle_restriction, idle_restrictions,
	  "In a program that has forbidden new threads, the idle thread stays for later ticks.")
{
	idle_restriction = row;
	test_in_child(idle_restricted);
}

/* The C library ends a process with the process's last thread. */
static void idle_restricted_end(void)
{
	pid_t child;
	int status = -1;

	fflush(stdout);
	child = fork();
	if (!child) {
		alarm(PATIENCE_S);
		idle_tick_once();
		idle_forbid_threads(idle_restriction->flags);
		idle_pause();
		idle_tick_once();
		pthread_exit(NULL);
	}
	EXPECT_EQ(waitpid(child, &status, 0), child);
	EXPECT_EQ(status, 0);
}

TEST_EACH(idle_restricted_end, struct idle_restriction, idle_restrictions,
	  "A program that has forbidden new threads ends with the last thread of its own.")
{
	if (strcmp(SANITIZER, ""))
		test_skip("a sanitizer has threads of its own, and makes more at the end");
	idle_restriction = row;
	test_in_child(idle_restricted_end);
}

/* No address space has room for the stack of a thread. */
static void idle_set_stack(size_t size)
{
	pthread_attr_t attr;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, size);
	EXPECT_EQ(pthread_setattr_default_np(&attr), 0);
	pthread_attr_destroy(&attr);
}

static void idle_refused(void)
{
	const size_t usual = (size_t)1 << 20, huge = (size_t)1 << 47;

	idle_set_stack(huge);
	EXPECT(!idle_watch(&single));
	idle_set_stack(usual);
	idle_tick_once();
	idle_pause();
	idle_set_stack(huge);
	idle_tick_once();
}

TEST(idle_refused, "After a start that failed for want of threads, the idle thread stays.")
{
	test_in_child(idle_refused);
}
