/* SPDX-License-Identifier: Apache-2.0 */
#include "import/opaque_fd/watcher.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/fork.h"
#include "util/lock.h"
#include "util/setting.h"
#include "util/thread.h"

/* The first row that watches a range watches the range alone. */
static const struct watcher *const watchers[] = {
	&watcher_gdmabuf,
	&watcher_monitor,
};

#define WATCHERS (sizeof(watchers) / sizeof(*watchers))

/* The process in which a row has refused for good: fork_generation(). */
static _Atomic uint32_t watcher_refused_in[WATCHERS];

bool watcher_is_forbidden(void)
{
	return setting_is("CLIMPORT_KEEP_HOST", "0") || setting_is("CLIMPORT_KEEP_HOST", "off");
}

static bool watcher_is_refused(size_t row)
{
	return atomic_load_explicit(&watcher_refused_in[row], memory_order_acquire) ==
	       fork_generation();
}

/* The process for which the rows have been probed. */
static void watcher_probe_once(void)
{
	static _Atomic uint32_t probed_in;
	uint32_t process = fork_generation();
	THREAD_NO_CANCEL();

	if (atomic_load(&probed_in) == process)
		return;
	for (size_t i = 0; i < WATCHERS; i++)
		if (watcher_is_forbidden() || watchers[i]->probe() == -EOPNOTSUPP)
			atomic_store(&watcher_refused_in[i], process);
	atomic_store(&probed_in, process);
}

/* Whether a row may watch such a range. */
static bool watcher_takes(size_t row, size_t size)
{
	return size >= watchers[row]->min_size && !watcher_is_refused(row);
}

static bool watcher_any_takes(size_t size)
{
	for (size_t i = 0; i < WATCHERS; i++)
		if (watcher_takes(i, size))
			return true;
	return false;
}

bool watcher_is_possible(size_t size)
{
	if (!watcher_any_takes(size))
		return false;
	watcher_probe_once();
	return watcher_any_takes(size);
}

static int watcher_begin(const struct watcher *row, uintptr_t address, size_t size,
			 watcher_told_fn told, struct watcher_watch *watch)
{
	struct watcher_watch new = { .by = row, .process = fork_generation() };
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
		if (watcher_takes(i, size))
			ret = watcher_begin(watchers[i], address, size, told, watch);
	return ret;
}

bool watcher_is_current(const struct watcher_watch *watch)
{
	if (!watch->by || watch->process != fork_generation())
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
static uint32_t watcher_text_of GUARDED_BY(watcher_text_lock); /* fork_generation() */

static void watcher_append(const char *text) REQUIRES(watcher_text_lock)
{
	size_t used = strlen(watcher_text);

	snprintf(watcher_text + used, sizeof(watcher_text) - used, "%s%s", used ? "; " : "", text);
}

/* Rows that probe() answers with @works. */
static void watcher_describe_rows(bool works) REQUIRES(watcher_text_lock)
{
	for (size_t i = 0; i < WATCHERS; i++)
		if (!watchers[i]->probe() == works)
			watcher_append(watchers[i]->describe());
}

/* Written once for a process, so that readers need no lock. */
const char *watcher_describe(void)
{
	THREAD_NO_CANCEL();

	lock_acquire(&watcher_text_lock);
	if (watcher_text_of != fork_generation())
		*watcher_text = '\0';
	watcher_text_of = fork_generation();
	if (!*watcher_text && watcher_is_forbidden())
		watcher_append("CLIMPORT_KEEP_HOST is 0");
	if (!*watcher_text)
		watcher_describe_rows(true);
	if (!*watcher_text)
		watcher_describe_rows(false);
	lock_release(&watcher_text_lock);
	return watcher_text;
}
