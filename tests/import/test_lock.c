/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fork() and locks.  A handler of fork() may be older than the handlers of the locks, and a signal
 * handler may fork while the thread holds a lock.  Each test runs in a process with a time limit.
 */
#include "harness.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "util/lock.h"

LOCK_DEFINE(data_lock, LOCK_LAST);
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

/* The work of the handlers of fork(); a handler sets its variable to NULL first. */
static void (*in_prepare)(void), (*in_parent)(void), (*in_child)(void);

static void call_once(void (**function)(void))
{
	void (*called)(void) = *function;

	*function = NULL;
	if (called)
		called();
}

static void atfork_prepare(void)
{
	call_once(&in_prepare);
}

static void atfork_parent(void)
{
	call_once(&in_parent);
}

static void atfork_child(void)
{
	call_once(&in_child);
}

/* Older than the locks' handlers: prepare runs after the locks', parent and child run before. */
__attribute__((constructor(101))) static void register_handlers(void)
{
	pthread_atfork(atfork_prepare, atfork_parent, atfork_child);
}

static void *take_lock(void *unused)
{
	lock_acquire(&data_lock);
	lock_release(&data_lock);
	return unused;
}

static void take_lock_in_thread(void)
{
	pthread_t thread;

	EXPECT_EQ(pthread_create(&thread, NULL, take_lock, NULL), 0);
	EXPECT_EQ(pthread_join(thread, NULL), 0);
}

/* Threads can take locks in a child, and afterwards in the parent. */
static void fork_with_thread(void)
{
	int status = -1;
	pid_t pid = fork();

	if (!pid) {
		alarm(TEST_HANG_S);
		take_lock_in_thread();
		_exit(0);
	}
	EXPECT(pid > 0);
	EXPECT_EQ(waitpid(pid, &status, 0), pid);
	EXPECT_EQ(status, 0);
}

static void fork_with_handlers(void)
{
	alarm(TEST_HANG_S);
	fork_with_thread();
	take_lock_in_thread();
	EXPECT(!lock_is_fork());
	fork_with_thread();
}

static void fork_in_prepare(void)
{
	in_prepare = fork_with_thread;
	fork_with_handlers();
}

TEST(prepare_forks, "A handler that runs before fork() may fork.")
{
	test_in_child(fork_in_prepare);
}

static void fork_in_parent_handler(void)
{
	in_parent = fork_with_thread;
	fork_with_handlers();
}

TEST(parent_forks, "A handler that runs in the parent after fork() may fork.")
{
	test_in_child(fork_in_parent_handler);
}

static void fork_in_child_handler(void)
{
	in_child = fork_with_thread;
	fork_with_handlers();
}

TEST(child_forks, "A handler that runs in the child after fork() may fork.")
{
	test_in_child(fork_in_child_handler);
}

#define WORKERS 300

static volatile sig_atomic_t workers;

/* A handler that replaces exited workers, as in a server. */
static void replace_worker(int signal)
{
	int saved = errno;

	(void)signal;
	while (waitpid(-1, NULL, WNOHANG) > 0)
		if (workers < WORKERS && (workers++, !fork()))
			_exit(0);
	errno = saved;
}

static void workers_serve(void)
{
	const struct sigaction action = { .sa_handler = replace_worker, .sa_flags = SA_RESTART };

	sigaction(SIGCHLD, &action, NULL);
	alarm(TEST_HANG_S);
	while (workers < WORKERS)
		if (!fork())
			_exit(0);
}

TEST(sigchld_forks, "A handler of SIGCHLD may fork, even if the thread is in fork().")
{
	test_in_child(workers_serve);
}

static void fork_on_signal(int signal)
{
	int status;
	pid_t pid;

	(void)signal;
	pid = fork();
	if (!pid)
		_exit(0);
	waitpid(pid, &status, 0);
}

static void fork_with_lock(void)
{
	alarm(TEST_HANG_S);
	signal(SIGUSR1, fork_on_signal);
	lock_acquire(&data_lock);
	raise(SIGUSR1);
	lock_release(&data_lock);
	take_lock_in_thread();
}

TEST(signal_forks, "A signal handler may fork, even if the thread holds a lock.")
{
	test_in_child(fork_with_lock);
}

static int waited = -1;

static void wait_in_handler(void)
{
	lock_acquire(&data_lock);
	waited = lock_wait(&data_lock, &changed, NULL);
	lock_release(&data_lock);
}

static void wait_before_fork(void)
{
	in_prepare = wait_in_handler;
	fork_with_handlers();
	EXPECT_EQ(waited, EDEADLK);
}

TEST(fork_waits, "A handler of fork() waits for no thread, and the lock is free afterwards.")
{
	test_in_child(wait_before_fork);
}

static atomic_bool is_set, waits, is_awake;

static void *wait_for_change(void *unused)
{
	lock_acquire(&data_lock);
	atomic_store(&waits, true);
	while (!atomic_load(&is_set))
		lock_wait(&data_lock, &changed, NULL);
	atomic_store(&is_awake, true);
	lock_release(&data_lock);
	return unused;
}

/* While the gate is closed, the waiting thread must not wake; two seconds are the limit. */
static void set_in_handler(void)
{
	time_t end = time(NULL) + 2;

	lock_acquire(&data_lock);
	atomic_store(&is_set, true);
	pthread_cond_broadcast(&changed);
	lock_release(&data_lock);
	while (time(NULL) < end && atomic_load(&lock_gate)) {
		bool awake = atomic_load(&is_awake);

		EXPECT(!awake || !atomic_load(&lock_gate));
	}
}

static void wake_before_fork(void)
{
	pthread_t thread;

	EXPECT_EQ(pthread_create(&thread, NULL, wait_for_change, NULL), 0);
	while (!atomic_load(&waits))
		usleep(1000); /* time: between two looks */
	in_prepare = set_in_handler;
	fork_with_handlers();
	EXPECT_EQ(pthread_join(thread, NULL), 0);
}

TEST(wait_ends, "A thread whose wait ends during a fork gets the lock when the gate opens.")
{
	test_in_child(wake_before_fork);
}

static atomic_bool forked;

static void *hold_until_forked(void *acquired) TSA(no_thread_safety_analysis)
{
	lock_acquire(&data_lock);
	atomic_store((atomic_bool *)acquired, true);
	while (!atomic_load(&forked))
		sched_yield();
	lock_release(&data_lock);
	return NULL;
}

static void fork_before_owner(void)
{
	atomic_bool acquired = false;
	pthread_t thread;

	alarm(TEST_HANG_S);
	EXPECT_EQ(pthread_create(&thread, NULL, hold_until_forked, &acquired), 0);
	while (!atomic_load(&acquired))
		sched_yield();
	if (!fork())
		_exit(0);
	atomic_store(&forked, true);
	EXPECT_EQ(pthread_join(thread, NULL), 0);
	fork_with_thread();
}

TEST(owner_waits, "A fork ends although the owner of a lock waits for the forking thread.")
{
	test_in_child(fork_before_owner);
}

static atomic_bool has_passed;

static void *pass_cancelled(void *unused)
{
	pthread_cancel(pthread_self());
	take_lock(NULL);
	atomic_store(&has_passed, true);
	return unused;
}

/* Like a handler that spins for a lock while the lock's owner waits at the gate. */
static void spin_before_fork(void)
{
	pthread_t thread;

	EXPECT_EQ(pthread_create(&thread, NULL, pass_cancelled, NULL), 0);
	pthread_detach(thread);
	while (!atomic_load(&has_passed))
		sched_yield();
}

static void wait_for_gate(void)
{
	alarm(TEST_HANG_S);
	in_prepare = spin_before_fork;
	fork_with_handlers();
}

TEST(spinning, "A handler of fork() may sleep or spin until a thread takes a lock.")
{
	test_in_child(wait_for_gate);
}

static void cancel_at_gate(void)
{
	pthread_t thread;

	EXPECT_EQ(pthread_create(&thread, NULL, pass_cancelled, NULL), 0);
	EXPECT_EQ(pthread_join(thread, NULL), 0);
}

static void fork_with_cancelled(void)
{
	alarm(TEST_HANG_S);
	in_prepare = cancel_at_gate;
	fork_with_handlers();
	EXPECT(has_passed);
}

TEST(cancelled, "A thread that is cancelled at the gate passes, and so do later threads.")
{
	test_in_child(fork_with_cancelled);
}

static void *wait_cancelled(void *unused)
{
	const struct timespec past = { 0, 0 };

	pthread_cancel(pthread_self());
	lock_acquire(&data_lock);
	lock_wait(&data_lock, &changed, &past);
	lock_release(&data_lock);
	atomic_store(&has_passed, true);
	return unused;
}

static void cancel_in_wait(void)
{
	pthread_t thread;

	alarm(TEST_HANG_S);
	EXPECT_EQ(pthread_create(&thread, NULL, wait_cancelled, NULL), 0);
	EXPECT_EQ(pthread_join(thread, NULL), 0);
	EXPECT(has_passed);
	fork_with_thread();
}

TEST(cancelled_wait,
     "A thread that is cancelled in a wait with a lock is not cancelled during the wait.")
{
	test_in_child(cancel_in_wait);
}

static void use_lock(void)
{
	take_lock(NULL);
}

static void fork_with_lock_and_handlers(void)
{
	alarm(TEST_HANG_S);
	signal(SIGUSR1, fork_on_signal);
	lock_acquire(&data_lock);
	in_prepare = in_parent = in_child = use_lock;
	raise(SIGUSR1);
	lock_release(&data_lock);
	fork_with_handlers();
}

TEST(signal_forks_with_handlers,
     "If a signal handler forks inside a lock operation, handlers of fork() may take the lock.")
{
	test_in_child(fork_with_lock_and_handlers);
}

/* Raises the signal inside a handler of fork(), with a lock held. */
static void raise_with_lock(void)
{
	lock_acquire(&data_lock);
	in_prepare = in_parent = in_child = use_lock;
	raise(SIGUSR1);
	lock_release(&data_lock);
}

static void fork_thrice(void)
{
	alarm(TEST_HANG_S);
	signal(SIGUSR1, fork_on_signal);
	in_prepare = raise_with_lock;
	fork_with_handlers();
	in_parent = raise_with_lock;
	fork_with_handlers();
	in_child = raise_with_lock;
	fork_with_handlers();
}

TEST(handler_interrupted, "A signal handler may fork inside a handler of fork() that holds a lock.")
{
	test_in_child(fork_thrice);
}

static void fork_and_go_on(void)
{
	int status = -1;
	pid_t pid;

	alarm(TEST_HANG_S);
	lock_acquire(&data_lock);
	pid = fork();
	lock_release(&data_lock);
	take_lock_in_thread();
	if (!pid)
		_exit(0);
	EXPECT_EQ(waitpid(pid, &status, 0), pid);
	EXPECT_EQ(status, 0);
}

TEST(child_goes_on, "If a process forks inside a lock, the child continues with the lock.")
{
	test_in_child(fork_and_go_on);
}

static atomic_int put_right;

static void note_child(struct lock *lock)
{
	(void)lock;
	put_right++;
}

LOCK_DEFINE_IN_CHILD(noted_lock, LOCK_LAST, note_child);

static void use_noted_lock(void)
{
	lock_acquire(&noted_lock);
	lock_release(&noted_lock);
}

static void expect_put_right(void)
{
	int status = -1, expected = put_right + 1;
	pid_t pid;

	alarm(TEST_HANG_S);
	in_child = use_noted_lock;
	pid = fork();
	if (!pid)
		_exit(put_right != expected);
	EXPECT_EQ(waitpid(pid, &status, 0), pid);
	EXPECT_EQ(status, 0);
}

TEST(put_right_once, "The locks of a child are repaired once, even if an older handler of fork() "
		     "takes a lock first.")
{
	test_in_child(expect_put_right);
}
