/* SPDX-License-Identifier: Apache-2.0 */
/* The scheduling with which threads of climport begin. */
#include <dlfcn.h>
#include <errno.h>
#include <linux/sched.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness.h"
#include "thread_fixture.h"
#include "util/thread.h"

#define NAME "climport-test"

static const struct thread_creator *thread_creator; /* for the child */

static void *thread_stay(void *unused)
{
	thread_begin(NAME);
	pause();
	return unused;
}

static void thread_start_stay(void *unused)
{
	EXPECT_EQ(thread_start(thread_stay, unused), 0);
}

static void thread_started_beside_reset(void)
{
	const struct sched_param none = { 0 };

	EXPECT(!sched_setscheduler(0, SCHED_OTHER | SCHED_RESET_ON_FORK, &none));
	thread_fixture_check(thread_creator, thread_start_stay, NULL, NAME);
}

TEST_EACH(reset, struct thread_creator, thread_creators,
	  "A thread of climport has the policy of the first thread, also if the first thread has "
	  "the flag SCHED_RESET_ON_FORK.")
{
	thread_creator = row;
	test_in_child(thread_started_beside_reset);
}

static sem_t thread_first_is_there, thread_second_is_there;

static void thread_await(sem_t *event)
{
	while (sem_wait(event))
		;
}

static void *thread_begin_late(void *unused)
{
	thread_await(&thread_second_is_there);
	return thread_stay(unused);
}

static void thread_start_late(void *unused)
{
	EXPECT_EQ(thread_start(thread_begin_late, unused), 0);
	sem_post(&thread_first_is_there);
}

static void *thread_end(void *unused)
{
	return unused;
}

/* On an ordinary thread. */
static void *thread_start_second(void *unused)
{
	thread_await(&thread_first_is_there);
	EXPECT_EQ(thread_start(thread_end, unused), 0);
	sem_post(&thread_second_is_there);
	return NULL;
}

static void thread_started_by_two(void)
{
	pthread_t thread;

	sem_init(&thread_first_is_there, 0, 0);
	sem_init(&thread_second_is_there, 0, 0);
	EXPECT(!pthread_create(&thread, NULL, thread_start_second, NULL));
	thread_fixture_check(thread_creator, thread_start_late, NULL, NAME);
	pthread_join(thread, NULL);
}

TEST_EACH(two, struct thread_creator, thread_creators,
	  "A thread of climport leaves the scheduling of its creator, whoever starts another "
	  "thread before the first thread runs.")
{
	thread_creator = row;
	test_in_child(thread_started_by_two);
}

/* The program's thread that has loaded climport, and has ended. */
static struct {
	pid_t id;
	int (*idle_prepare)(void);
} thread_loader;

static void *thread_load(void *unused)
{
	void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);

	EXPECT(library);
	thread_loader.idle_prepare = (int (*)(void))dlsym(library, "climport_private_idle_prepare");
	thread_loader.id = gettid();
	return unused;
}

static _Noreturn void thread_pause(void)
{
	for (;;)
		syscall(SYS_ppoll, NULL, 0, NULL, NULL, 0);
}

/* A process whose first thread has the number, as soon as the number is free. */
static pid_t thread_start_process(pid_t number)
{
	struct clone_args args = {
		.exit_signal = SIGCHLD,
		.set_tid = (uintptr_t)&number,
		.set_tid_size = 1,
	};
	pid_t child;

	do
		child = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
	while (child < 0 && errno == EEXIST);
	if (!child)
		thread_pause();
	return child;
}

static void thread_started_after_loader(void)
{
	pthread_t thread;
	pid_t process;

	alarm(TEST_HANG_S);
	EXPECT(!pthread_create(&thread, NULL, thread_load, NULL));
	EXPECT(!pthread_join(thread, NULL));
	EXPECT(thread_loader.idle_prepare);
	process = thread_start_process(thread_loader.id);
	if (process < 0)
		test_skip("the system gives out no numbers of threads: %s", strerror(errno));
	if (thread_creators[0].become())
		test_skip("a single processor");
	EXPECT_EQ(thread_loader.idle_prepare(), 0);
	thread_fixture_expect_free("climport-idle");
	kill(process, SIGKILL);
	waitpid(process, NULL, 0);
}

TEST(loader, "If the thread that has loaded climport has ended, a thread of climport runs on no "
	     "processor of another process whose thread has the number by then.")
{
	test_in_child(thread_started_after_loader);
}
