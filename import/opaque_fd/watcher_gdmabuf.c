/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel module gdmabuf as a watcher: an mmu notifier tells of every change, of all kinds of
 * memory, and delays no thread that changes memory.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "import/export/gdmabuf.h"
#include "import/opaque_fd/watcher.h"

static_assert(sizeof(struct gdmabuf_watch) <= sizeof(((struct watcher_watch *)0)->own),
	      "the module's watch fits");

static bool watcher_gdmabuf_is_shortage(int error)
{
	return error == -EMFILE || error == -ENFILE || error == -ENOMEM;
}

static int watcher_gdmabuf_probe(void)
{
	int ret = gdmabuf_watch_probe();

	return !ret || watcher_gdmabuf_is_shortage(ret) ? ret : -EOPNOTSUPP;
}

static const char *watcher_gdmabuf_describe(void)
{
	switch (gdmabuf_watch_probe()) {
	case 0:
		return "the kernel module gdmabuf tells of changes";
	case -EACCES:
		return "/dev/gdmabuf may not be opened";
	case -EOPNOTSUPP:
		return "the kernel module gdmabuf is too old to watch host memory";
	case -ENXIO:
		return "the kernel module gdmabuf is not loaded";
	default:
		return "/dev/gdmabuf cannot be opened for want of memory or descriptors";
	}
}

/* The module takes any memory; the caller's pin says which memory a driver takes. */
static int watcher_gdmabuf_watch(uintptr_t address, size_t size, struct watcher_watch *watch)
{
	struct gdmabuf_watch own;
	int ret = gdmabuf_watch_begin(address, size, &own);

	if (ret)
		return ret;
	memcpy(watch->own, &own, sizeof(own));
	watch->status = own.status;
	watch->valid = own.generation;
	return 0;
}

static void watcher_gdmabuf_put(struct watcher_watch *watch)
{
	struct gdmabuf_watch own;

	memcpy(&own, watch->own, sizeof(own));
	gdmabuf_watch_drop(&own);
}

const struct watcher watcher_gdmabuf = {
	.name = "gdmabuf",
	.min_size = 1,
	.probe = watcher_gdmabuf_probe,
	.describe = watcher_gdmabuf_describe,
	.watch = watcher_gdmabuf_watch,
	.put = watcher_gdmabuf_put,
};
