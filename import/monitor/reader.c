/* SPDX-License-Identifier: Apache-2.0 */
#include "import/monitor/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/close_range.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "import/monitor/futex.h"
#include "import/monitor/teller.h"
#include "import/monitor/uffd.h"
#include "import/monitor/watches.h"
#include "util/log.h"
#include "util/thread.h"

#define READER_BATCH 16
#define READER_STACK ((size_t)256 << 10) /* mlockall() takes all of a stack */
#define READER_START_S 10

enum { READER_STARTING = 1, READER_RUNS = 0 }; /* or a negative errno */

static _Atomic int reader_state;
static _Atomic uint32_t reader_turns;

uint32_t reader_turn(void)
{
	return atomic_load(&reader_turns);
}

/* False: no more changes for now.  The turn is odd before the threads of the changes go on. */
static bool reader_read(int fd)
{
	struct uffd_change changes[READER_BATCH];
	bool any = false;
	int count;

	atomic_fetch_add(&reader_turns, 1);
	count = uffd_read(fd, changes, READER_BATCH);
	for (int i = 0; i < count; i++)
		any |= watches_mark(&changes[i]);
	atomic_fetch_add(&reader_turns, 1);
	if (any)
		teller_wake();
	return count == READER_BATCH;
}

/*
 * The program may have made the file block, which shares its flags with the program's descriptor;
 * a filter of system calls may refuse poll(2).  The reader then looks each millisecond.
 */
static void reader_wait(int fd)
{
	const struct timespec ms = { 0, 1000000 };
	struct pollfd events = { .fd = fd, .events = POLLIN };

	if (poll(&events, 1, -1) == 1 && events.revents == POLLIN)
		return;
	fcntl(fd, F_SETFL, O_NONBLOCK);
	nanosleep(&ms, NULL);
}

/*
 * The duplicate of @fd in a table of descriptors that is the thread's own, or a negative errno.
 * The thread leaves the program's table and holds no file of the program open.
 */
static int reader_take(int fd)
{
	int process, own;

	if (syscall(SYS_close_range, 0, UINT_MAX, CLOSE_RANGE_UNSHARE))
		return -errno;
	process = (int)syscall(SYS_pidfd_open, getpid(), 0);
	if (process < 0)
		return -errno;
	own = (int)syscall(SYS_pidfd_getfd, process, fd, 0);
	if (own < 0)
		own = -errno;
	close(process);
	return own;
}

static void *reader_main(void *arg)
{
	int fd = reader_take((int)(intptr_t)arg);

	pthread_setname_np(pthread_self(), "climport-watch");
	atomic_store(&reader_state, fd < 0 ? fd : READER_RUNS);
	futex_wake(&reader_state);
	if (fd < 0)
		return NULL;
	for (;;) {
		reader_wait(fd);
		while (reader_read(fd))
			;
	}
}

/* The caller may run in real time, and the program's other threads wait for the reader. */
static int reader_create_small(pthread_t *thread, void *arg)
{
	const struct sched_param none = { 0 };
	pthread_attr_t attr;
	int ret;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, READER_STACK);
	pthread_attr_setinheritsched(&attr, PTHREAD_EXPLICIT_SCHED);
	pthread_attr_setschedpolicy(&attr, SCHED_OTHER);
	pthread_attr_setschedparam(&attr, &none);
	ret = pthread_create(thread, &attr, reader_main, arg);
	pthread_attr_destroy(&attr);
	return ret;
}

/* With much thread-local data, or where the policy is not to be chosen, as threads are. */
static int reader_create(void *arg)
{
	sigset_t all, before;
	pthread_t thread;
	int ret;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	ret = reader_create_small(&thread, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (ret)
		return thread_start(reader_main, arg);
	pthread_detach(thread);
	return 0;
}

/* The reader has its descriptor before the first memory is registered. */
static int reader_wait_for_start(void)
{
	const struct timespec second = { 1, 0 };
	int state = atomic_load(&reader_state);

	for (int i = 0; i < READER_START_S && state == READER_STARTING; i++) {
		futex_wait(&reader_state, READER_STARTING, &second);
		state = atomic_load(&reader_state);
	}
	return state == READER_STARTING ? -ETIMEDOUT : state;
}

int reader_start(int fd)
{
	int ret;

	atomic_store(&reader_state, READER_STARTING);
	atomic_store(&reader_turns, 0);
	ret = reader_create((void *)(intptr_t)fd);
	return ret ? -ret : reader_wait_for_start();
}
