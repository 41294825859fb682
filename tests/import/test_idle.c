/* SPDX-License-Identifier: Apache-2.0 */
/* How the idle thread starts and ends. */
#include <errno.h>
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
#define NEVER_MS (1000 * TEST_HANG_S)

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

static struct idle_task counter = { .tick = idle_count, .period_ms = 1 };

static void idle_start_counter(void *unused)
{
	(void)unused;
	EXPECT(idle_request(&counter));
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

TEST_EACH(
	idle_confined, struct thread_creator, thread_creators,
	"In a program that was started with a scheduling of its own, the idle thread has the same.")
{
	if (!thread_fixture_is_started("idle_confined", row->name, row->become))
		return;
	idle_start_counter(NULL);
	thread_fixture_expect_free(NAME);
}

static void idle_started_moved(void)
{
	if (idle_creator->become())
		test_skip("the system has no such threads");
	idle_start_counter(NULL);
	thread_fixture_expect_free(NAME);
}

TEST_EACH(idle_moved, struct thread_creator, thread_creators,
	  "In a program whose scheduling has changed as a whole, the idle thread has the same.")
{
	idle_creator = row;
	test_in_child(idle_started_moved);
}

/* Filters @calls up to 0 in the calling thread, and with SECCOMP_FILTER_FLAG_TSYNC in all threads. */
static int idle_filter(const unsigned int *calls, unsigned int action, unsigned int flags)
{
	struct sock_filter code[20] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	};
	struct sock_fprog filter = { 1, code };

	for (; *calls; calls++) {
		code[filter.len++] =
			(struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, *calls, 0, 1);
		code[filter.len++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, action);
	}
	code[filter.len++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	       syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &filter);
}

/* As in a container. */
static int idle_refuse_kexec(void)
{
	static const unsigned int calls[] = { SYS_kexec_load, 0 };

	return idle_filter(calls, SECCOMP_RET_ERRNO | EPERM, 0);
}

TEST_EACH(
	idle_contained, struct thread_creator, thread_creators,
	"In a process that began with a filter of system calls, the idle thread has the scheduling "
	"of the process as well.")
{
	if (!thread_fixture_is_started("idle_contained", row->name, idle_refuse_kexec))
		return;
	idle_creator = row;
	idle_started_by_creator();
}

/* As a service that has no business with scheduling. */
static int idle_forbid_scheduling(void)
{
	static const unsigned int calls[] = { SYS_setpriority,	      SYS_getpriority,
					      SYS_sched_setaffinity,  SYS_sched_setattr,
					      SYS_sched_setscheduler, SYS_sched_getscheduler,
					      SYS_sched_setparam,     0 };

	return idle_filter(calls, SECCOMP_RET_KILL_PROCESS, 0);
}

static const struct thread_creator idle_services[] = { { "service", idle_forbid_scheduling } };

TEST_EACH(
	idle_started_in, struct thread_creator, idle_services,
	"A process that began with a filter which ends the process for calls about scheduling has "
	"an idle thread.")
{
	if (!thread_fixture_is_started("idle_started_in", row->name, row->become))
		return;
	idle_start_counter(NULL);
	EXPECT(process_settles(idle_has_ticked, NULL));
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

static bool idle_thread_sleeps(int id)
{
	char path[64], line[256] = "";
	const char *end;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", id);
	file = fopen(path, "re");
	if (!file)
		return false;
	end = fgets(line, sizeof(line), file) ? strrchr(line, ')') : NULL;
	fclose(file);
	return end && !strncmp(end, ") S", 3);
}

static bool idle_sleeps(void *unused)
{
	(void)unused;
	return idle_thread_sleeps((int)process_find_thread(NAME));
}

static struct idle_task idle_blocker = { .tick = idle_block, .period_ms = 1 },
			idle_late = { .tick = idle_count, .period_ms = NEVER_MS };

static const struct idle_state {
	const char *name;
	struct idle_task *task;
	bool (*is_reached)(void *unused);
} idle_states[] = {
	{ "in_tick", &idle_blocker, idle_has_ticked },
	{ "waiting", &idle_late, idle_sleeps },
};

static void idle_child(void)
{
	alarm(TEST_HANG_S);
	idle_ticks = 0;
	idle_start_counter(NULL);
	_exit(!process_settles(idle_has_ticked, NULL));
}

static const struct idle_state *idle_state;

static void idle_clone(void)
{
	int status = -1;
	pid_t child;

	EXPECT(idle_request(idle_state->task));
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

static struct idle_task leaver = { .tick = idle_leave, .period_ms = 1 };

static bool idle_has_ticked_twice(void *unused)
{
	(void)unused;
	return idle_ticks > 1;
}

static void idle_left(void)
{
	EXPECT(idle_request(&leaver));
	EXPECT(process_settles(idle_has_ticked_twice, NULL));
}

TEST(idle_left, "If a tick ends the idle thread, another idle thread has the next ticks.")
{
	test_in_child(idle_left);
}

/*
 * Linked with --wrap=pthread_cond_clockwait.  For the thread of the last tick of idle_once(), time flies:
 * what it waits for until a time has come at once.
 */
int __real_pthread_cond_clockwait(pthread_cond_t *cond, pthread_mutex_t *mutex, clockid_t clock,
				  const struct timespec *until);
int __wrap_pthread_cond_clockwait(pthread_cond_t *cond, pthread_mutex_t *mutex, clockid_t clock,
				  const struct timespec *until);

static atomic_int idle_flying;

int __wrap_pthread_cond_clockwait(pthread_cond_t *cond, pthread_mutex_t *mutex, clockid_t clock,
				  const struct timespec *until)
{
	if (gettid() == atomic_load(&idle_flying))
		return ETIMEDOUT;
	return __real_pthread_cond_clockwait(cond, mutex, clock, until);
}

static bool idle_once(void)
{
	atomic_store(&idle_flying, gettid());
	idle_ticks++;
	return false;
}

static struct idle_task single = { .tick = idle_once, .period_ms = 1 };

static void idle_tick_once(void)
{
	idle_ticks = 0;
	EXPECT(idle_request(&single));
	EXPECT(process_settles(idle_has_ticked, NULL));
}

static bool idle_has_ended_or_sleeps(void *unused)
{
	const int id = atomic_load(&idle_flying);
	char path[64];

	(void)unused;
	snprintf(path, sizeof(path), "/proc/self/task/%d", id);
	return access(path, F_OK) || idle_thread_sleeps(id);
}

/* Where the idle thread may end, it has: for it no sleep ends with a time. */
static void idle_pause(void)
{
	EXPECT(process_settles(idle_has_ended_or_sleeps, NULL));
}

static const struct idle_restriction {
	const char *name;
	unsigned int calls[3], flags;
} idle_restrictions[] = {
	{ "caller", { SYS_clone, SYS_clone3 }, 0 },
	{ "all_threads", { SYS_clone, SYS_clone3 }, SECCOMP_FILTER_FLAG_TSYNC },
	{ "all_threads_look", { SYS_prctl, SYS_getdents64 }, SECCOMP_FILTER_FLAG_TSYNC },
};

static const struct idle_restriction *idle_restriction;

static void idle_restrict(void)
{
	if (idle_filter(idle_restriction->calls, SECCOMP_RET_KILL_PROCESS, idle_restriction->flags))
		test_skip("no filters of system calls");
}

static void idle_restricted(void)
{
	idle_tick_once();
	idle_restrict();
	idle_pause();
	idle_tick_once();
}

TEST_EACH(idle_restricted, struct idle_restriction, idle_restrictions,
	  "A program that forbids system calls for itself later does so for no call of the idle "
	  "thread's, which stays for later ticks.")
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
		alarm(TEST_HANG_S);
		idle_tick_once();
		idle_restrict();
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

#define IDLE_USUAL_STACK ((size_t)1 << 20)
#define IDLE_HUGE_STACK (SIZE_MAX / 2 + 1) /* no address space has room */

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
	idle_tick_once();
	idle_set_stack(IDLE_HUGE_STACK);
	idle_pause();
	idle_tick_once();
}

TEST(idle_refused, "The idle thread needs no new thread for later ticks.")
{
	test_in_child(idle_refused);
}

static void idle_called_late(void)
{
	idle_set_stack(IDLE_HUGE_STACK);
	EXPECT(!idle_request(&single));
	EXPECT(!idle_is_running());
	idle_call(&single, NEVER_MS);
	EXPECT_EQ(idle_ticks, 0);
	idle_set_stack(IDLE_USUAL_STACK);
	idle_call(&single, NEVER_MS);
	EXPECT_EQ(idle_ticks, 1);
}

TEST(idle_called_late,
     "If the idle thread could not be started, the next call for a tick starts the "
     "thread.")
{
	test_in_child(idle_called_late);
}

static void *idle_call_and_end(void *unused)
{
	idle_tick_once();
	return unused;
}

static void idle_callers_end(void)
{
	static char name[] = NAME;

	for (int i = 0; i < 2; i++) {
		process_run_threads(1, idle_call_and_end);
		EXPECT(process_settles(process_has_no_thread, name));
	}
}

TEST(idle_callers_end,
     "The idle thread ends after the threads that have called, and starts again for a "
     "new caller.")
{
	test_in_child_of_thread(idle_callers_end);
}

static pthread_key_t idle_program_key;

/* A destructor function that has the key's value set again, as often as the C library bears. */
static void idle_call_again(void *value)
{
	idle_tick_once();
	pthread_setspecific(idle_program_key, value);
}

static void *idle_call_to_the_end(void *value)
{
	EXPECT(!pthread_setspecific(idle_program_key, value ? value : &idle_program_key));
	return NULL;
}

static void idle_callers_last_calls(void)
{
	static char name[] = NAME;

	EXPECT(!pthread_key_create(&idle_program_key, idle_call_again));
	process_run_threads(1, idle_call_to_the_end);
	EXPECT(process_settles(process_has_no_thread, name));
}

TEST(idle_callers_last_calls,
     "The idle thread does not stay for what destructor functions of a thread "
     "have called at the thread's end.")
{
	if (strcmp(SANITIZER, ""))
		test_skip("a sanitizer ends before the thread's last destructor functions");
	test_in_child_of_thread(idle_callers_last_calls);
}

static void idle_warmed_up(void)
{
	process_run_threads(1, idle_call_and_end);
	idle_restrict();
	idle_pause();
	idle_tick_once();
}

TEST_EACH(idle_warmed_up, struct idle_restriction, idle_restrictions,
	  "The idle thread stays for the thread that has loaded climport, after the threads that "
	  "have "
	  "called.")
{
	idle_restriction = row;
	test_in_child(idle_warmed_up);
}
