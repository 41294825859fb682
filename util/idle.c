/* SPDX-License-Identifier: Apache-2.0 */
#include "util/idle.h"

#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "util/fork.h"
#include "util/lock.h"
#include "util/log.h"
#include "util/thread.h"

#define IDLE_LINGER_MS 1000 /* without a task that is wanted, and without callers */
#define IDLE_EXIT_MS 1000

static void idle_in_child(struct lock *lock) TSA(no_thread_safety_analysis);

LOCK_DEFINE_IN_CHILD(idle_lock, LOCK_LAST, idle_in_child); /* all below */
static pthread_cond_t idle_changed = PTHREAD_COND_INITIALIZER;
static struct list tasks GUARDED_BY(idle_lock) = LIST_INIT(tasks);
static struct idle_task *ticking GUARDED_BY(idle_lock); /* whose tick runs; NULL: none */
static bool started GUARDED_BY(idle_lock);
static pthread_t idle_thread GUARDED_BY(idle_lock); /* if one is ticking */
static bool ending GUARDED_BY(idle_lock);  /* the process exits: the next pass is the last */
static bool stopped GUARDED_BY(idle_lock); /* ... and its drivers with it */
static uint32_t idle_process GUARDED_BY(idle_lock); /* fork_generation(): whose all this is */

/* A *caller* is a thread of the program that has called, or loaded climport, and has not ended. */
static unsigned int idle_callers GUARDED_BY(idle_lock);
static _Atomic uint32_t startable_in; /* the process in which the last start succeeded */
static bool idle_has_key;	      /* written before startable_in, as below */
static pthread_key_t idle_key;	      /* idle_tag() of the process in which the thread is counted */

/* Of a thread whose end was counted.  Not the key's: sanitizers end before a key's last value. */
static _Thread_local bool idle_has_ended;

/* The task behind @task, the first for NULL; NULL: no more. */
static struct idle_task *idle_next(const struct idle_task *task) REQUIRES(idle_lock)
{
	struct list *link = task ? task->link.next : tasks.next;

	return link == &tasks ? NULL : container_of(link, struct idle_task, link);
}

/* In a tick, that is: the application's callbacks may be called there, and fork or exit. */
static bool idle_is_self(void) REQUIRES(idle_lock)
{
	return ticking && pthread_equal(idle_thread, pthread_self());
}

/* Not NULL. */
static void *idle_tag(uint32_t process)
{
	return (void *)((uintptr_t)process + 1); /* NOLINT(performance-no-int-to-ptr) */
}

/* Or shall not be counted. */
static bool idle_is_counted(uint32_t process)
{
	return !idle_has_key || idle_has_ended ||
	       pthread_getspecific(idle_key) == idle_tag(process);
}

static void idle_count_caller(void) REQUIRES(idle_lock)
{
	if (idle_is_counted(idle_process) || idle_is_self())
		return;
	if (!pthread_setspecific(idle_key, idle_tag(idle_process)))
		idle_callers++;
}

/* The idle thread is the parent's, and so is the work of the tasks.  A caller stays a caller. */
static void idle_in_child(struct lock *lock)
{
	(void)lock;
	pthread_cond_init(&idle_changed, NULL);
	for (struct idle_task *task = idle_next(NULL); task; task = idle_next(task))
		task->is_wanted = false;
	started = false;
	ticking = NULL;
	idle_callers = 0;
	idle_process = fork_generation();
	if (idle_has_key && pthread_getspecific(idle_key))
		idle_count_caller();
}

/* A child whose handlers of fork() did not run has the parent's data still. */
static void idle_look(void) REQUIRES(idle_lock)
{
	if (idle_process != fork_generation())
		idle_in_child(&idle_lock);
}

static bool idle_any(void) REQUIRES(idle_lock)
{
	for (struct idle_task *task = idle_next(NULL); task; task = idle_next(task))
		if (task->is_wanted)
			return !stopped;
	return false;
}

static long long idle_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}

static void idle_end_tick(struct idle_task *task, bool again) REQUIRES(idle_lock)
{
	ticking = NULL;
	task->ticks++;
	task->is_wanted |= again;
	pthread_cond_broadcast(&idle_changed);
}

static int idle_start(void) REQUIRES(idle_lock);

/* A callback of the application's has ended the thread.  A new thread does what the tick has left. */
static void idle_leave_tick(void *task)
{
	lock_acquire(&idle_lock);
	idle_end_tick(task, true);
	started = false;
	idle_start();
	lock_release(&idle_lock);
}

static void idle_tick(struct idle_task *task) REQUIRES(idle_lock)
{
	bool again;

	task->is_wanted = false;
	task->due = idle_now() + task->period_ms;
	ticking = task;
	lock_release(&idle_lock);
	pthread_cleanup_push(idle_leave_tick, task);
	again = task->tick();
	pthread_cleanup_pop(0);
	lock_acquire(&idle_lock);
	idle_end_tick(task, again);
}

static long long idle_next_due(void) REQUIRES(idle_lock)
{
	long long due = LLONG_MAX;

	for (struct idle_task *task = idle_next(NULL); task; task = idle_next(task))
		if (task->is_wanted && task->due < due)
			due = task->due;
	return due;
}

/*
 * Sleeps for a millisecond, or until a task is due or a new task may be due earlier.  The sleep
 * ends for idle_call().
 */
static void idle_sleep(void) REQUIRES(idle_lock)
{
	const struct timespec millisecond = thread_time_in(1);
	long long due = idle_next_due();
	struct timespec until = { due / 1000, due % 1000 * 1000000 };

	if (due > idle_now() + 1) {
		lock_wait(&idle_lock, &idle_changed, &until);
		return;
	}
	while (idle_next_due() && !lock_wait(&idle_lock, &idle_changed, &millisecond))
		;
}

/*
 * False: the thread may end.  A thread that a caller may need stays: a program that has restricted itself
 * may allow no new thread, and even a look whether it does is a system call.
 */
static bool idle_wait(void) REQUIRES(idle_lock)
{
	const struct timespec until = thread_time_in(IDLE_LINGER_MS);

	while (!idle_any())
		if (lock_wait(&idle_lock, &idle_changed, idle_callers ? NULL : &until) &&
		    !idle_callers)
			return idle_any();
	return true;
}

static void idle_pass(void) REQUIRES(idle_lock)
{
	bool is_last = ending;

	for (struct idle_task *task = idle_next(NULL); task; task = idle_next(task))
		if (task->is_wanted && !stopped && task->due <= idle_now())
			idle_tick(task);
	stopped |= is_last;
	if (is_last)
		pthread_cond_broadcast(&idle_changed);
}

/* Ends by itself: a process whose callers have ended is to end, too. */
static void *idle_run(void *unused)
{
	thread_begin("climport-idle");
	lock_acquire(&idle_lock);
	idle_thread = pthread_self();
	while (idle_wait()) {
		idle_sleep();
		idle_pass();
	}
	started = false;
	lock_release(&idle_lock);
	return unused;
}

/*
 * Drivers end in exit handlers that are older than idle_stop(): what tasks have left is done
 * before.  A driver that blocks the idle thread delays the exit by a second at most.
 */
static void idle_stop(void)
{
	const struct timespec limit = thread_time_in(IDLE_EXIT_MS);

	lock_acquire(&idle_lock);
	idle_look();
	ending = true;
	for (struct idle_task *task = idle_next(NULL); task; task = idle_next(task))
		task->due = 0;
	pthread_cond_broadcast(&idle_changed);
	while (started && (ticking || idle_any()) && !idle_is_self())
		if (lock_wait(&idle_lock, &idle_changed, &limit))
			break;
	stopped = true;
	lock_release(&idle_lock);
}

bool idle_is_running(void)
{
	bool is_running;

	lock_acquire(&idle_lock);
	is_running = started && !stopped;
	lock_release(&idle_lock);
	return is_running;
}

/*
 * At the end of a thread that was counted.  The thread is not counted anew, whatever destructor
 * functions of other keys call.
 */
static void idle_caller_ends(void *tag)
{
	idle_has_ended = true;
	lock_acquire(&idle_lock);
	idle_look();
	if (tag == idle_tag(idle_process)) {
		idle_callers--;
		pthread_cond_broadcast(&idle_changed);
	}
	lock_release(&idle_lock);
}

/* The thread that loads climport is counted, without a call: often the one that lives longest. */
__attribute__((constructor)) static void idle_load(void) TSA(no_thread_safety_analysis)
{
	idle_process = fork_generation();
	idle_has_key = !pthread_key_create(&idle_key, idle_caller_ends);
	idle_count_caller();
}

static int idle_register(void) REQUIRES(idle_lock)
{
	static bool registered;

	if (!registered && atexit(idle_stop))
		return -ENOMEM;
	registered = true;
	return 0;
}

/* 0 or a negative errno. */
static int idle_start(void)
{
	int error;

	if (started || stopped)
		return 0;
	error = idle_register();
	if (error)
		return error;
	error = thread_start(idle_run, NULL);
	started = !error;
	atomic_store(&startable_in, started ? idle_process : 0);
	return error;
}

/* A filter of system calls may refuse threads with any error. */
static int idle_log(int error)
{
	return log_errno(EAGAIN,
			 "cannot start climport's thread climport-idle: %s; a limit of "
			 "threads or a seccomp filter may forbid it",
			 log_strerror(-error));
}

/* Pairs with idle_start(). */
int idle_prepare(void)
{
	const uint32_t process = fork_generation();
	int error;

	if (atomic_load_explicit(&startable_in, memory_order_acquire) == process &&
	    idle_is_counted(process))
		return 0;
	lock_acquire(&idle_lock);
	idle_look();
	error = idle_start();
	idle_count_caller();
	lock_release(&idle_lock);
	return error ? idle_log(error) : 0;
}

static void idle_add(struct idle_task *task) REQUIRES(idle_lock)
{
	if (!task->link.next)
		list_add(&tasks, &task->link);
	if (task->is_wanted)
		return;
	task->is_wanted = true;
	task->due = task->period_ms ? idle_now() + task->period_ms : 0;
	pthread_cond_broadcast(&idle_changed);
}

bool idle_request(struct idle_task *task)
{
	static atomic_bool is_logged;
	int error;

	lock_acquire(&idle_lock);
	idle_look();
	idle_add(task);
	error = idle_start();
	idle_count_caller();
	lock_release(&idle_lock);
	if (error && !atomic_exchange(&is_logged, true))
		idle_log(error);
	return !error;
}

static bool idle_will_tick(const struct idle_task *task) REQUIRES(idle_lock)
{
	return started && !stopped && (task->is_wanted || ticking == task);
}

/*
 * A tick in progress began too early, perhaps: the next tick is the one to wait for.  The idle
 * thread, in a callback of a driver's, cannot wait for itself.
 */
void idle_call(struct idle_task *task, unsigned int ms)
{
	const struct timespec limit = thread_time_in(ms);
	unsigned long ticks;

	lock_acquire(&idle_lock);
	idle_look();
	if (task->is_wanted)
		idle_start();
	ticks = task->ticks + (ticking == task ? 2 : 1);
	while (task->ticks < ticks && idle_will_tick(task)) {
		task->due = 0;
		pthread_cond_broadcast(&idle_changed);
		if (idle_is_self() || lock_wait(&idle_lock, &idle_changed, &limit))
			break;
	}
	lock_release(&idle_lock);
}
