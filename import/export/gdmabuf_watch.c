/* SPDX-License-Identifier: Apache-2.0 */
/* Watches of host memory by the kernel module, for pins of other drivers. */
#include <errno.h>
#include <fcntl.h>
#include <linux/gdmabuf.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "import/export/gdmabuf.h"
#include "import/export/gdmabuf_context.h"
#include "util/fork.h"
#include "util/thread.h"

/* Opens the device and closes the device: an open device cannot be unloaded. */
static int gdmabuf_watch_try(void)
{
	struct gdmabuf_caps caps = { .size = sizeof(caps) };
	int fd = open("/dev/gdmabuf", O_RDWR | O_CLOEXEC), ret = 0;

	if (fd < 0)
		return -errno;
	if (ioctl(fd, GDMABUF_CAPS, &caps))
		ret = -errno;
	else if (!(caps.out_caps & GDMABUF_CAP_WATCH_HOST))
		ret = -EOPNOTSUPP;
	close(fd);
	return ret;
}

/* Without a module that watches nothing is logged: the device is opened for good after a try. */
static int gdmabuf_watch_context(struct gdmabuf_context **ctx)
{
	int ret = gdmabuf_context_usable() ? 0 : gdmabuf_watch_try();

	if (ret == -EOPNOTSUPP)
		return ret;
	if (!ret)
		ret = gdmabuf_context_get(ctx);
	if (!ret && (*ctx)->can_watch)
		return 0;
	if (!ret) {
		gdmabuf_context_end_use(*ctx);
		return -EOPNOTSUPP;
	}
	if (ret == -EPERM)
		return -EACCES;
	return ret == -EMFILE || ret == -ENFILE || ret == -ENOMEM || ret == -EACCES ? ret : -ENXIO;
}

int gdmabuf_watch_probe(void)
{
	struct gdmabuf_context *ctx;
	int ret = gdmabuf_watch_context(&ctx);

	if (!ret)
		gdmabuf_context_end_use(ctx);
	return ret;
}

const char *gdmabuf_watch_describe(void)
{
	THREAD_NO_CANCEL();

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
		return "/dev/gdmabuf cannot be opened: memory or descriptors are short";
	}
}

static int gdmabuf_watch_call(struct gdmabuf_context *ctx, uintptr_t address, size_t size,
			      struct gdmabuf_watch *watch)
{
	struct gdmabuf_watch_host w = { .size = sizeof(w) };
	uintptr_t first;
	size_t length;

	if (!gdmabuf_whole_pages(address, size, ctx->page_size[GDMABUF_MEMORY_HOST], &first,
				 &length))
		return -EINVAL;
	w.address = first;
	w.length = length;
	if (ioctl(ctx->device.fd, GDMABUF_WATCH_HOST, &w))
		return -errno;
	*watch = (struct gdmabuf_watch){
		.context = ctx,
		.slot = w.out_slot,
		.generation = w.out_generation,
		.status = &ctx->status[w.out_slot],
	};
	return 0;
}

int gdmabuf_watch_begin(uintptr_t address, size_t size, struct gdmabuf_watch *watch)
{
	struct gdmabuf_context *ctx;
	int ret = gdmabuf_watch_context(&ctx);

	if (ret)
		return ret;
	ret = gdmabuf_watch_call(ctx, address, size, watch);
	if (ret)
		gdmabuf_context_end_use(ctx);
	return ret;
}

void gdmabuf_watch_drop(const struct gdmabuf_watch *watch)
{
	struct gdmabuf_context *ctx = watch->context;
	struct gdmabuf_pin_id id = {
		.size = sizeof(id),
		.slot = watch->slot,
		.generation = watch->generation,
	};

	if (ctx->device.process != fork_generation())
		return;
	if (ctx == gdmabuf_context_usable())
		ioctl(ctx->device.fd, GDMABUF_DROP, &id);
	gdmabuf_context_end_use(ctx);
}
