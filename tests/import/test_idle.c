/* SPDX-License-Identifier: Apache-2.0 */
/* How the idle thread starts. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
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
