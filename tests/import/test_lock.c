/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fork() where locks are: in handlers of fork() that are older than those of the locks, and in
 * handlers of signals that come while a lock is held.  Each test is a process, with a time limit.
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

#include "import/lock.h"

LOCK_DEFINE(data_lock, LOCK_LAST);
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

/* What the handlers of fork() do; each sets its own to NULL first. */
static void (*in_prepare)(void), (*in_parent)(void), (*in_child)(void);

static void call_once(void (**function)(void))
{
	void (*called)(void) = *function;

	*function = NULL;
	if (called)
		called();
}

static void prepare(void)
{
	call_once(&in_prepare);
}

static void parent(void)
{
	call_once(&in_parent);
}

static void child(void)
{
	call_once(&in_child);
}

/* Before the locks' constructors: the prepare handler runs after theirs, the others before. */
__attribute__((constructor(101))) static void register_handlers(void)
{
	pthread_atfork(prepare, parent, child);
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

/* A process can be forked, in which threads take locks, and in this one they do afterwards. */
static void fork_once(void)
{
	int status = -1;
	pid_t pid = fork();

	if (!pid) {
		alarm(20);
		take_lock_in_thread();
		_exit(0);
	}
	EXPECT(pid > 0);
	EXPECT_EQ(waitpid(pid, &status, 0), pid);
	EXPECT_EQ(status, 0);
}

static void fork_with_handlers(void)
{
	alarm(20);
	fork_once();
	take_lock_in_thread();
	EXPECT(!lock_is_fork());
	fork_once();
}

static void fork_in_prepare(void)
{
	in_prepare = fork_once;
	fork_with_handlers();
}

TEST(prepare_forks, "A handler that runs before fork() may fork.")
{
	test_in_child(fork_in_prepare);
}

static void fork_in_parent_handler(void)
{
	in_parent = fork_once;
	fork_with_handlers();
}

TEST(parent_forks, "A handler that runs in the parent after fork() may fork.")
{
	test_in_child(fork_in_parent_handler);
}

static void fork_in_child_handler(void)
{
	in_child = fork_once;
	fork_with_handlers();
}

TEST(child_forks, "A handler that runs in the child after fork() may fork.")
{
	test_in_child(fork_in_child_handler);
}

#define WORKERS 300

static volatile sig_atomic_t workers;

/* A server that has its workers replaced. */
static void replace_worker(int signal)
{
	int saved = errno;

	(void)signal;
	while (waitpid(-1, NULL, WNOHANG) > 0)
		if (workers < WORKERS && (workers++, !fork()))
			_exit(0);
	errno = saved;
}

static void serve(void)
{
	const struct sigaction action = { .sa_handler = replace_worker, .sa_flags = SA_RESTART };

	sigaction(SIGCHLD, &action, NULL);
	alarm(30);
	while (workers < WORKERS)
		if (!fork())
			_exit(0);
}

TEST(sigchld_forks, "A handler of SIGCHLD may fork, also while this thread is in fork().")
{
	test_in_child(serve);
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
	alarm(20);
	signal(SIGUSR1, fork_on_signal);
	lock_acquire(&data_lock);
	raise(SIGUSR1);
	lock_release(&data_lock);
	take_lock_in_thread();
}

TEST(signal_forks, "A handler of a signal may fork, also where this thread has a lock.")
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

TEST(fork_waits, "A handler of fork() waits for no other thread, and the lock is free afterwards.")
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

/* This thread does not sleep, or others would not wait for the end of the fork. */
static void set_in_handler(void)
{
	time_t end = time(NULL) + 2;

	lock_acquire(&data_lock);
	atomic_store(&is_set, true);
	pthread_cond_broadcast(&changed);
	lock_release(&data_lock);
	while (time(NULL) < end)
		EXPECT(!atomic_load(&is_awake));
}

static void wake_before_fork(void)
{
	pthread_t thread;

	EXPECT_EQ(pthread_create(&thread, NULL, wait_for_change, NULL), 0);
	while (!atomic_load(&waits))
		usleep(1000);
	in_prepare = set_in_handler;
	fork_with_handlers();
	EXPECT_EQ(pthread_join(thread, NULL), 0);
}

TEST(wait_ends, "A thread whose wait ends while another forks gets the lock after the fork.")
{
	test_in_child(wake_before_fork);
}
