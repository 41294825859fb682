/* SPDX-License-Identifier: Apache-2.0 */
#include "import/opaque_fd/watcher.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "import/monitor/monitor.h"
#include "util/descriptor.h"
#include "util/fork.h"
#include "util/lock.h"
#include "util/thread.h"

static_assert(sizeof(struct watch) <= sizeof(((struct watcher_watch *)0)->own),
	      "the monitor's watch fits");

/* A lack of descriptors passes, any other reason of the monitor's stays. */
static int watcher_monitor_probe(void)
{
	if (monitor_is_available())
		return 0;
	return descriptor_errno() ? -EMFILE : -EOPNOTSUPP;
}

static int watcher_monitor_watch(uintptr_t address, size_t size, struct watcher_watch *watch)
{
	struct watch own;
	int ret = monitor_watch(address, size, &own);

	if (!ret)
		memcpy(watch->own, &own, sizeof(own));
	return ret;
}

static bool watcher_monitor_is_current(const struct watcher_watch *watch)
{
	struct watch own;

	memcpy(&own, watch->own, sizeof(own));
	return watch_is_current(&own);
}

static void watcher_monitor_put(struct watcher_watch *watch)
{
	struct watch own;

	memcpy(&own, watch->own, sizeof(own));
	watch_put(&own);
}

/* The first row that watches a range watches the range alone. */
static const struct watcher watchers[] = {
	{
		.name = "userfaultfd",
		.min_size = MONITOR_MIN_SIZE,
		.probe = watcher_monitor_probe,
		.describe = monitor_describe,
		.watch = watcher_monitor_watch,
		.is_current = watcher_monitor_is_current,
		.put = watcher_monitor_put,
		.on_stale = monitor_on_stale,
	},
};

#define WATCHERS (sizeof(watchers) / sizeof(*watchers))

/* The process in which every row has refused for good: fork_generation(). */
static _Atomic uint32_t watcher_refused_in;

/* Whether a row works, or may work later. */
static bool watcher_probe_all(void)
{
	bool is_possible = false;

	for (size_t i = 0; i < WATCHERS; i++)
		is_possible |= watchers[i].probe() != -EOPNOTSUPP;
	return is_possible;
}

/* The process for which the rows have been probed. */
static void watcher_probe_once(void)
{
	static _Atomic uint32_t probed_in;
	uint32_t process = fork_generation();
	THREAD_NO_CANCEL();

	if (atomic_load(&probed_in) == process)
		return;
	if (monitor_is_forbidden() || !watcher_probe_all())
		atomic_store(&watcher_refused_in, process);
	atomic_store(&probed_in, process);
}

static bool watcher_is_small(size_t size)
{
	for (size_t i = 0; i < WATCHERS; i++)
		if (size >= watchers[i].min_size)
			return false;
	return true;
}

static bool watcher_is_refused(void)
{
	return atomic_load_explicit(&watcher_refused_in, memory_order_acquire) == fork_generation();
}

bool watcher_is_possible(size_t size)
{
	if (watcher_is_refused() || watcher_is_small(size))
		return false;
	watcher_probe_once();
	return !watcher_is_refused();
}

static int watcher_begin(const struct watcher *row, uintptr_t address, size_t size,
			 watcher_told_fn told, struct watcher_watch *watch)
{
	struct watcher_watch new = { .by = row };
	int ret;

	if (row->on_stale)
		row->on_stale(told);
	ret = row->watch(address, size, &new);
	if (!ret)
		*watch = new;
	return ret;
}

int watcher_watch(uintptr_t address, size_t size, watcher_told_fn told, struct watcher_watch *watch)
{
	int ret = -EOPNOTSUPP;

	for (size_t i = 0; i < WATCHERS && ret; i++)
		if (size >= watchers[i].min_size)
			ret = watcher_begin(&watchers[i], address, size, told, watch);
	return ret;
}

bool watcher_is_current(const struct watcher_watch *watch)
{
	if (!watch->by)
		return false;
	if (!watch->status)
		return watch->by->is_current(watch);
	return atomic_load_explicit(watch->status, memory_order_acquire) == watch->valid;
}

void watcher_put(struct watcher_watch *watch)
{
	if (watch->by)
		watch->by->put(watch);
	*watch = (struct watcher_watch){ 0 };
}

LOCK_DEFINE(watcher_text_lock, LOCK_OUTER);
static char watcher_text[256] GUARDED_BY(watcher_text_lock);

static void watcher_append(const char *text) REQUIRES(watcher_text_lock)
{
	size_t used = strlen(watcher_text);

	snprintf(watcher_text + used, sizeof(watcher_text) - used, "%s%s", used ? "; " : "", text);
}

/* Rows that probe() answers with @works. */
static void watcher_describe_rows(bool works) REQUIRES(watcher_text_lock)
{
	for (size_t i = 0; i < WATCHERS; i++)
		if (!watchers[i].probe() == works)
			watcher_append(watchers[i].describe());
}

/* Written once, so that readers need no lock. */
const char *watcher_describe(void)
{
	THREAD_NO_CANCEL();

	lock_acquire(&watcher_text_lock);
	if (!*watcher_text && monitor_is_forbidden())
		watcher_append("CLIMPORT_KEEP_HOST is 0");
	if (!*watcher_text)
		watcher_describe_rows(true);
	if (!*watcher_text)
		watcher_describe_rows(false);
	lock_release(&watcher_text_lock);
	return watcher_text;
}
