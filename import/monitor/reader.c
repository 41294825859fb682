/* SPDX-License-Identifier: Apache-2.0 */
#include "import/monitor/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/close_range.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "import/monitor/futex.h"
#include "import/monitor/teller.h"
#include "import/monitor/threads.h"
#include "import/monitor/uffd.h"
#include "import/monitor/watches.h"
#include "util/thread.h"

#define READER_BATCH 16
#define READER_START_S 10

/*
 * Each change is one comparison, so that either the reader is READY or the starter has given up.  A
 * negative errno: the reader has no descriptor, and ends.
 */
enum { READER_STARTS = 1, READER_READY, READER_RUNS, READER_ABANDONED };

static _Atomic int reader_state;
static _Atomic uint32_t reader_turns;
static pthread_t reader_thread, reader_guard;
static reader_ended_fn reader_ended;

/* A duplicate of the starter's descriptor; the reader's table has the file at the same number. */
static struct descriptor_own reader_given;

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
 * Leaves the program's table of descriptors for a table with one file.  From Linux 6.12 on the
 * kernel copies only descriptors from the number on; before, the kernel copies all.
 */
static int reader_leave_table(void)
{
	unsigned int number = (unsigned int)reader_given.fd;

	if (syscall(SYS_close_range, 0, number - 1, CLOSE_RANGE_UNSHARE) ||
	    syscall(SYS_close_range, number + 1, UINT_MAX, 0))
		return -errno;
	return 0;
}

/* The program may have closed the number meanwhile, and opened a file of its own. */
static int reader_take(void)
{
	int ret = reader_leave_table();

	if (!ret && !descriptor_is_own(&reader_given))
		ret = -EBADF;
	return ret;
}

/* False: the state was another. */
static bool reader_change(int before, int after)
{
	bool is_changed = atomic_compare_exchange_strong(&reader_state, &before, after);

	if (is_changed)
		futex_wake(&reader_state);
	return is_changed;
}

/* The state, which is not @state any more, or still is after the time. */
static int reader_wait_while(int state, int seconds)
{
	const struct timespec second = { 1, 0 };

	for (int i = 0; i < seconds && atomic_load(&reader_state) == state; i++)
		futex_wait(&reader_state, (uint32_t)state, &second);
	return atomic_load(&reader_state);
}

/* Whether the reader is to read. */
static bool reader_begin(void)
{
	int ret;

	thread_begin("climport-watch");
	ret = reader_take();
	return reader_change(READER_STARTS, ret ? ret : READER_READY) && !ret &&
	       reader_wait_while(READER_READY, INT_MAX) == READER_RUNS;
}

static void *reader_main(void *arg)
{
	(void)arg;
	if (!reader_begin())
		return NULL;
	for (;;) {
		reader_wait(reader_given.fd);
		while (reader_read(reader_given.fd))
			;
	}
}

/* The size of the process's table of descriptors; 0: unknown. */
static int reader_table_size(void)
{
	FILE *file = fopen("/proc/self/status", "re");
	char line[256];
	int size = 0;

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "FDSize: %d", &size) == 1)
			break;
	if (file)
		fclose(file);
	return size;
}

/* A number above all descriptors: the reader's table has a copy of no other file. */
static int reader_duplicate(int fd)
{
	int size = reader_table_size(),
	    number = fcntl(fd, F_DUPFD_CLOEXEC, size > fd ? size - 1 : fd);

	if (number < 0)
		number = fcntl(fd, F_DUPFD_CLOEXEC, fd);
	return number < 0 ? -errno : number;
}

/* A reader that is late ends by itself. */
static int reader_wait_for_start(void)
{
	int state = reader_wait_while(READER_STARTS, READER_START_S);

	if (state == READER_STARTS && reader_change(READER_STARTS, READER_ABANDONED)) {
		pthread_detach(reader_thread);
		return -ETIMEDOUT;
	}
	state = atomic_load(&reader_state);
	if (state < 0)
		pthread_join(reader_thread, NULL);
	return state < 0 ? state : 0;
}

static int reader_create_thread(void)
{
	int ret;

	atomic_store(&reader_state, READER_STARTS);
	atomic_store(&reader_turns, 0);
	ret = threads_create(&reader_thread, reader_main, NULL);
	return ret ? ret : reader_wait_for_start();
}

/* Waits in a system call that was made before any filter. */
static void *reader_guard_main(void *unused)
{
	(void)unused;
	thread_begin("climport-guard");
	pthread_join(reader_thread, NULL);
	if (atomic_load(&reader_state) == READER_RUNS)
		reader_ended();
	return NULL;
}

static int reader_create_guard(void)
{
	int ret = threads_create(&reader_guard, reader_guard_main, NULL);

	if (!ret)
		return 0;
	reader_change(READER_READY, READER_ABANDONED);
	pthread_join(reader_thread, NULL);
	return ret;
}

int reader_create(const struct descriptor_own *uffd, reader_ended_fn ended)
{
	int ret;

	reader_ended = ended;
	reader_given = *uffd;
	reader_given.fd = reader_duplicate(uffd->fd);
	if (reader_given.fd < 0)
		return reader_given.fd;
	ret = reader_create_thread();
	descriptor_own_close(&reader_given);
	return ret ? ret : reader_create_guard();
}

void reader_run(void)
{
	reader_change(READER_READY, READER_RUNS);
	pthread_detach(reader_guard);
}

void reader_abandon(void)
{
	reader_change(READER_READY, READER_ABANDONED);
	pthread_join(reader_guard, NULL);
}
