/* SPDX-License-Identifier: Apache-2.0 */
#include "import/monitor/monitor.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "import/kinds/maps.h"
#include "import/monitor/mappings.h"
#include "import/monitor/reader.h"
#include "import/monitor/settle.h"
#include "import/monitor/teller.h"
#include "import/monitor/uffd.h"
#include "import/monitor/watches.h"
#include "util/descriptor.h"
#include "util/fork.h"
#include "util/lock.h"
#include "util/log.h"
#include "util/restricted.h"
#include "util/setting.h"
#include "util/thread.h"

#define MONITOR_TRIES 3

enum monitor_state { MONITOR_UNTRIED, MONITOR_POSSIBLE, MONITOR_RUNS, MONITOR_REFUSED };

static void monitor_forget(struct lock *lock) TSA(no_thread_safety_analysis);

/* The state, and who adds and removes watches. */
LOCK_DEFINE_IN_CHILD(monitor_lock, LOCK_LAST, monitor_forget);
static enum monitor_state monitor_state GUARDED_BY(monitor_lock);
static const char *monitor_why GUARDED_BY(monitor_lock);
static uint32_t monitor_process GUARDED_BY(monitor_lock); /* of the state */

/* Written before the process's first watch. */
static struct descriptor_own monitor_uffd = { .fd = -1 };

static atomic_bool monitor_has_no_reader;

/*
 * In a child.  The parent's reader does not need the child's copy of the descriptor, and in the
 * child the descriptor is good for nothing.
 */
static void monitor_forget(struct lock *lock)
{
	(void)lock;
	if (monitor_uffd.fd >= 0)
		descriptor_own_close(&monitor_uffd);
	monitor_uffd.fd = -1;
	atomic_store(&monitor_has_no_reader, false);
	monitor_state = MONITOR_UNTRIED;
	monitor_process = fork_generation();
	watches_forget();
}

static bool monitor_is_asked_for(void)
{
	return setting_is("CLIMPORT_KEEP_HOST", "1") || setting_is("CLIMPORT_KEEP_HOST", "on");
}

static void monitor_refuse(const char *why) REQUIRES(monitor_lock)
{
	monitor_state = MONITOR_REFUSED;
	monitor_why = why;
	log_debug("host registrations are not kept: %s", why);
}

static const char *monitor_refusal(int error)
{
	switch (error) {
	case EPERM:
		return "the system refuses userfaultfd(2) (EPERM)";
	case EACCES:
		return "the system refuses userfaultfd(2) (EACCES)";
	case ENOSYS:
		return "there is no userfaultfd(2) (ENOSYS)";
	case EINVAL:
		return "userfaultfd(2) is older than Linux 5.19, or has no write protection";
	default:
		return "userfaultfd(2) or its thread does not start";
	}
}

/* A lack of descriptors or memory passes. */
static bool monitor_is_final(int error)
{
	return error != EMFILE && error != ENFILE && error != ENOMEM && error != EAGAIN;
}

/* The reader reads on, if there is a reader, so that no thread of the program waits for ever. */
static void monitor_lose(void)
{
	watches_mark_all();
	teller_wake();
}

/*
 * The reader's table was the other holder of the userfaultfd.  The kernel ends all registrations
 * with the last, and lets all waiting threads go.  Takes no lock: a waiting thread may hold any.
 */
static void monitor_orphaned(void)
{
	atomic_store(&monitor_has_no_reader, true);
	descriptor_own_close(&monitor_uffd);
	monitor_lose();
}

/* What fails passes, or is found for the life of the process. */
static int monitor_fail(int ret) REQUIRES(monitor_lock)
{
	if (!monitor_is_final(-ret))
		return ret;
	monitor_refuse(monitor_refusal(-ret));
	return -EOPNOTSUPP;
}

/* NULL: nothing speaks against the system call. */
static const char *monitor_obstacle(void)
{
	if (!monitor_is_asked_for())
		return "CLIMPORT_KEEP_HOST is not 1";
	if (restricted_is_entered())
		return "the process has restricted its system calls";
	return uffd_is_open() ? "the program uses userfaultfd(2)" : NULL;
}

/* 0 and a descriptor, or a negative errno. */
static int monitor_open(int *fd) REQUIRES(monitor_lock)
{
	const char *why = monitor_obstacle();

	*fd = why ? -EOPNOTSUPP : uffd_open();
	if (*fd >= 0)
		return 0;
	if (!why)
		return monitor_fail(*fd);
	monitor_refuse(why);
	return -EOPNOTSUPP;
}

/* No state is the process's own in a child whose handlers of fork() did not run. */
static void monitor_look(void) REQUIRES(monitor_lock)
{
	if (monitor_process != fork_generation())
		monitor_forget(&monitor_lock);
	if (monitor_state != MONITOR_RUNS)
		return;
	if (atomic_load(&monitor_has_no_reader))
		monitor_refuse("a filter of system calls has ended the monitor's thread");
	else if (!descriptor_is_own(&monitor_uffd))
		monitor_refuse("the program has closed the descriptor");
}

/* The reader waits until all threads are there: no thread is left if one fails. */
static int monitor_create_threads(const struct descriptor_own *own)
{
	int ret = reader_create(own, monitor_orphaned);

	if (ret)
		return ret;
	ret = teller_start();
	if (ret)
		reader_abandon();
	else
		reader_run();
	return ret;
}

/* 0, or the errno of the first watch. */
static int monitor_run(int fd) REQUIRES(monitor_lock)
{
	struct descriptor_own own;
	int ret = descriptor_own_sole(&own, fd);

	if (!ret)
		ret = monitor_create_threads(&own);
	if (ret) {
		descriptor_own_close(&own);
		return monitor_fail(ret);
	}
	monitor_uffd = own;
	monitor_state = MONITOR_RUNS;
	return 0;
}

static int monitor_start(void) REQUIRES(monitor_lock)
{
	int fd, ret;

	monitor_look();
	if (monitor_state == MONITOR_RUNS)
		return 0;
	if (monitor_state == MONITOR_REFUSED)
		return -EOPNOTSUPP;
	ret = monitor_open(&fd);
	return ret ? ret : monitor_run(fd);
}

static void monitor_try(void) REQUIRES(monitor_lock)
{
	int fd;

	monitor_look();
	if (monitor_state != MONITOR_UNTRIED || monitor_open(&fd))
		return;
	close(fd);
	monitor_state = MONITOR_POSSIBLE;
}

bool monitor_is_available(void)
{
	bool is_available;
	THREAD_NO_CANCEL();

	lock_acquire(&monitor_lock);
	monitor_try();
	is_available = monitor_state == MONITOR_POSSIBLE || monitor_state == MONITOR_RUNS;
	lock_release(&monitor_lock);
	return is_available;
}

const char *monitor_describe(void)
{
	const char *why;

	if (monitor_is_available())
		return "userfaultfd(2) tells of changes";
	lock_acquire(&monitor_lock);
	why = monitor_state == MONITOR_REFUSED ? monitor_why : "no descriptor, or no memory";
	lock_release(&monitor_lock);
	return why;
}

/* As settle_changes(). */
static int monitor_settle(struct watches_pages pages)
{
	int ret = -EBADF;

	if (descriptor_is_own(&monitor_uffd))
		ret = settle_changes(monitor_uffd.fd, pages.start, pages.end);
	if (ret == -EBADF)
		monitor_lose();
	return ret;
}

/* @arg: the pages that the program asks for. */
static int monitor_look_at(const struct maps_mapping *m, void *arg)
{
	const struct watches_pages *pages = arg;
	uintptr_t start = m->start > pages->start ? m->start : pages->start,
		  end = m->end < pages->end ? m->end : pages->end;

	int ret = uffd_look(monitor_uffd.fd, start, end);

	return ret > 0 ? -EBUSY : ret;
}

/*
 * Whether each mapping of the pages is registered.  No event told of the change if not: the kernel
 * sends no event for shmat(), and drops the event of a thread that is killed.
 */
static bool monitor_is_registered(const struct watch *watch, struct watches_pages pages)
{
	int ret = maps_for_each((const void *)pages.start, pages.end - pages.start, monitor_look_at,
				&pages);

	if (ret == -ENOENT || ret == -EFAULT) {
		watches_lose(watch);
		teller_wake();
	}
	return !ret;
}

/* See settle.c for the order of these questions. */
bool watch_is_current(const struct watch *watch)
{
	struct watches_pages pages;
	int ret;

	if (watch->process != fork_generation() || !watches_is_live(watch))
		return false;
	teller_note_thread();
	pages = watches_pages_of(watch);
	ret = monitor_settle(pages);
	if (!watches_is_live(watch))
		return false;
	return ret == -ENOENT ? monitor_is_registered(watch, pages) : !ret;
}

/* The program may have let a mapping grow since: mremap() registers what is added. */
static void monitor_unregister(int fd, uintptr_t start, uintptr_t end)
{
	uintptr_t grown = fd < 0 ? end : mappings_end_of(end);

	uffd_unregister(fd, start, watches_has_live(end, grown) ? end : grown);
}

/* Parts of the range may be the program's userfaultfd's, unless the kernel was out of memory. */
static void monitor_undo(const struct watch *watch, int error)
{
	watches_remove(watch, uffd_unregister, error == -ENOMEM ? monitor_uffd.fd : -1);
}

/* The watch is live before the kernel tells of changes. */
static int monitor_add(struct watches_pages watched, struct watches_pages registered,
		       struct watch *watch) REQUIRES(monitor_lock)
{
	int ret = monitor_start();

	if (!ret)
		ret = watches_add(watched, registered, watch);
	if (ret)
		return ret;
	ret = uffd_register(monitor_uffd.fd, registered.start, registered.end);
	if (ret)
		monitor_undo(watch, ret);
	return ret == -EINVAL ? -EOPNOTSUPP : ret;
}

static int monitor_begin(struct watches_pages watched, struct watches_pages registered,
			 struct watch *watch)
{
	int ret;

	lock_acquire(&monitor_lock);
	ret = monitor_add(watched, registered, watch);
	lock_release(&monitor_lock);
	return ret;
}

/* What was found out before the watch began may have changed. */
static int monitor_confirm(const struct watch *watch, struct watches_pages pages)
{
	struct watches_pages mappings;
	int ret = mappings_check(pages, &mappings);

	if (ret)
		return ret;
	if (!watch_is_current(watch) || watches_removed_lately(pages.start, pages.end))
		return -EAGAIN;
	return 0;
}

static int monitor_watch_once(struct watches_pages pages, struct watch *watch)
{
	struct watches_pages mappings;
	struct watch new;
	int ret = mappings_check(pages, &mappings);

	if (!ret)
		ret = monitor_begin(pages, mappings_to_register(pages, mappings), &new);
	if (ret)
		return ret;
	ret = monitor_confirm(&new, pages);
	if (ret)
		watch_put(&new);
	else
		*watch = new;
	return ret;
}

/* The reader may come late to an event of an older watch, and mark the new watch as well. */
static int monitor_watch_pages(struct watches_pages pages, struct watch *watch)
{
	int ret = -EAGAIN;

	for (int i = 0; i < MONITOR_TRIES && ret == -EAGAIN; i++) {
		ret = monitor_watch_once(pages, watch);
		if (watches_removed_lately(pages.start, pages.end))
			break;
	}
	return ret;
}

int monitor_watch(uintptr_t address, size_t size, struct watch *watch)
{
	uintptr_t mask = (uintptr_t)sysconf(_SC_PAGESIZE) - 1;
	struct watches_pages pages = { address & ~mask, (address + size + mask) & ~mask };
	THREAD_NO_CANCEL();

	if (!size)
		return -EINVAL;
	if (pages.end <= pages.start || pages.end - pages.start < size)
		return -ERANGE;
	return size < MONITOR_MIN_SIZE ? -EOPNOTSUPP : monitor_watch_pages(pages, watch);
}

void watch_put(struct watch *watch)
{
	THREAD_NO_CANCEL();

	if (watch->number && watch->process == fork_generation()) {
		lock_acquire(&monitor_lock);
		watches_remove(watch, monitor_unregister,
			       descriptor_is_own(&monitor_uffd) ? monitor_uffd.fd : -1);
		lock_release(&monitor_lock);
	}
	*watch = (struct watch){ 0 };
}

void monitor_on_stale(monitor_told_fn told)
{
	teller_on_stale(told);
}
