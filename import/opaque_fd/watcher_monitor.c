/* SPDX-License-Identifier: Apache-2.0 */
/* The memory monitor as a watcher: CLIMPORT_KEEP_HOST=1, anonymous private memory. */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "import/monitor/monitor.h"
#include "import/opaque_fd/watcher.h"
#include "util/descriptor.h"

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

const struct watcher watcher_monitor = {
	.name = "userfaultfd",
	.min_size = MONITOR_MIN_SIZE,
	.probe = watcher_monitor_probe,
	.describe = monitor_describe,
	.watch = watcher_monitor_watch,
	.is_current = watcher_monitor_is_current,
	.put = watcher_monitor_put,
	.on_stale = monitor_on_stale,
};
