/* SPDX-License-Identifier: Apache-2.0 */
#include "import/export/gdmabuf.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/gdmabuf.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "import/export/exporter.h"
#include "import/kinds/range.h"
#include "import/import.h"
#include "util/descriptor.h"
#include "util/fork.h"
#include "util/lock.h"
#include "util/log.h"
#include "util/shortage.h"
#include "util/thread.h"

/* Published whole.  The structure stays, as other threads may still read it. */
struct gdmabuf_context {
	struct gdmabuf_context *replaced; /* so that leak checkers find it */
	struct descriptor_own device;
	size_t page_size[2]; /* by enum gdmabuf_memory; 0: no provider */
	uint32_t watches;    /* the most */
	const _Atomic uint32_t *status;
	uint64_t uses; /* watches and calls, under the lock */
	bool has_ended;
};

LOCK_DEFINE(gdmabuf_context_lock, LOCK_LAST); /* creation, uses and end */
static struct gdmabuf_context *_Atomic gdmabuf_current;

/* An error of open(), as a positive errno of gdmabuf_probe(). */
static int gdmabuf_open_errno(int error)
{
	if (error == EACCES || error == EPERM)
		return EACCES;
	return shortage_is(-error) ? error : ENXIO;
}

static int gdmabuf_open_failed(int error)
{
	const int ret = gdmabuf_open_errno(error);

	return log_errno(ret, "/dev/gdmabuf: %s%s", log_strerror(error),
			 ret == ENXIO ? ": is the kernel module gdmabuf loaded?" : "");
}

/* The process's context, or NULL: none, the parent's, or closed by the program.  Pairs with gdmabuf_replace(). */
static struct gdmabuf_context *gdmabuf_context_usable(void)
{
	struct gdmabuf_context *ctx = atomic_load_explicit(&gdmabuf_current, memory_order_acquire);

	return ctx && descriptor_is_own(&ctx->device) ? ctx : NULL;
}

/* Opens the device and closes it: the module cannot be unloaded while it is open. */
int gdmabuf_probe(void)
{
	int fd;

	if (gdmabuf_context_usable())
		return 0;
	fd = open("/dev/gdmabuf", O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return -gdmabuf_open_errno(errno);
	close(fd);
	return 0;
}

bool gdmabuf_is_available(void)
{
	const int ret = gdmabuf_probe();

	return !ret || shortage_is(ret);
}

static int gdmabuf_fill(struct gdmabuf_context *ctx)
{
	struct gdmabuf_caps caps = { .size = sizeof(caps) };
	void *status;

	if (ioctl(ctx->device.fd, GDMABUF_CAPS, &caps))
		return log_errno(errno, "capabilities of /dev/gdmabuf: %s", log_strerror(errno));
	if (descriptor_own(&ctx->device, ctx->device.fd))
		return -EBADF;
	status = mmap(NULL, caps.out_watches * sizeof(*ctx->status), PROT_READ, MAP_SHARED,
		      ctx->device.fd, 0);
	if (status == MAP_FAILED)
		return log_errno(errno, "status page of /dev/gdmabuf: %s", log_strerror(errno));
	ctx->watches = caps.out_watches;
	ctx->status = status;
	ctx->page_size[GDMABUF_MEMORY_HOST] = caps.out_host_page_size;
	ctx->page_size[GDMABUF_MEMORY_GPU] = caps.out_gpu_page_size;
	return 0;
}

static int gdmabuf_open_context(struct gdmabuf_context **out)
{
	struct gdmabuf_context *ctx = calloc(1, sizeof(*ctx));
	int err;

	if (!ctx)
		return log_errno(ENOMEM, "no memory for a context of /dev/gdmabuf");
	ctx->device.fd = open("/dev/gdmabuf", O_RDWR | O_CLOEXEC);
	err = ctx->device.fd < 0 ? gdmabuf_open_failed(errno) : gdmabuf_fill(ctx);
	if (!err) {
		*out = ctx;
		return 0;
	}
	if (ctx->device.fd >= 0)
		close(ctx->device.fd);
	free(ctx);
	return err;
}

/*
 * Whether the descriptor is still the parent's context.  The program may have opened the same node
 * since, but a context of the program's own answers.
 */
static bool gdmabuf_is_inherited(const struct gdmabuf_context *ctx)
{
	struct gdmabuf_caps caps = { .size = sizeof(caps) };

	return ctx->device.process != fork_generation() &&
	       descriptor_is(ctx->device.fd, &ctx->device.id) &&
	       ioctl(ctx->device.fd, GDMABUF_CAPS, &caps) && errno == EACCES;
}

/*
 * Ends a context of the process that is replaced and has no use: its status page kept the module's
 * context.  Copies of its watches may still be asked, and read 0, which is no generation.  A
 * parent's page is not mapped here.
 */
static void gdmabuf_context_end(struct gdmabuf_context *ctx) REQUIRES(gdmabuf_context_lock)
{
	if (ctx->has_ended || ctx->uses || ctx->device.process != fork_generation() ||
	    ctx == atomic_load_explicit(&gdmabuf_current, memory_order_relaxed))
		return;
	ctx->has_ended = true;
	if (mmap((void *)(uintptr_t)ctx->status, ctx->watches * sizeof(*ctx->status), PROT_READ,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
		log_error("cannot replace the mapping of an earlier opening of /dev/gdmabuf: %m");
}

/* A parent's context keeps its watches as long as the child has its descriptor.  Pairs with gdmabuf_context_usable(). */
static void gdmabuf_replace(struct gdmabuf_context *ctx) REQUIRES(gdmabuf_context_lock)
{
	struct gdmabuf_context *old = atomic_load_explicit(&gdmabuf_current, memory_order_relaxed);

	ctx->replaced = old;
	atomic_store_explicit(&gdmabuf_current, ctx, memory_order_release);
	if (!old)
		return;
	if (gdmabuf_is_inherited(old))
		close(old->device.fd);
	gdmabuf_context_end(old);
}

/* The context, opened if there is none, until gdmabuf_context_put(). */
static int gdmabuf_context_get(struct gdmabuf_context **out)
{
	struct gdmabuf_context *ctx;
	int err = 0;

	lock_acquire(&gdmabuf_context_lock);
	ctx = gdmabuf_context_usable();
	if (!ctx) {
		err = gdmabuf_open_context(&ctx);
		if (!err)
			gdmabuf_replace(ctx);
	}
	if (!err) {
		ctx->uses++;
		*out = ctx;
	}
	lock_release(&gdmabuf_context_lock);
	return err;
}

static void gdmabuf_context_put(struct gdmabuf_context *ctx)
{
	lock_acquire(&gdmabuf_context_lock);
	ctx->uses--;
	gdmabuf_context_end(ctx);
	lock_release(&gdmabuf_context_lock);
}

/* The whole pages around the range.  False: no such pages. */
static bool gdmabuf_whole_pages(uintptr_t address, size_t size, size_t page, uintptr_t *first,
				size_t *length)
{
	uintptr_t last;

	if (!size || __builtin_add_overflow(address, size - 1, &last) ||
	    (last | (page - 1)) == UINTPTR_MAX)
		return false;
	*first = address & ~(page - 1);
	*length = (last | (page - 1)) + 1 - *first;
	return true;
}

static int gdmabuf_memlock_failed(uintptr_t address, size_t size)
{
	struct rlimit limit = { 0 };
	unsigned long long kib;
	bool is_mib;

	getrlimit(RLIMIT_MEMLOCK, &limit);
	kib = limit.rlim_cur >> 10;
	is_mib = kib && !(kib % 1024);
	return log_errno(EDQUOT,
			 "export of %zu bytes of host memory at %#zx: the limit of locked memory, "
			 "RLIMIT_MEMLOCK (ulimit -l), is reached: it is %llu %s for all processes "
			 "of the user together",
			 size, (size_t)address, is_mib ? kib >> 10 : kib, is_mib ? "MiB" : "KiB");
}

static int gdmabuf_export_failed(enum gdmabuf_memory memory, uintptr_t address, size_t size,
				 int error)
{
	const bool is_gpu = memory == GDMABUF_MEMORY_GPU;

	if (error == EDQUOT && !is_gpu)
		return gdmabuf_memlock_failed(address, size);
	return log_errno(error, "export of %zu bytes of %s memory at %#zx: %s", size,
			 is_gpu ? "GPU" : "host", (size_t)address,
			 error == EDQUOT   ? "the user's quota of GPU memory, the parameter "
					     "gpu_quota_mb of gdmabuf, is used up"
			 : error == ENOSPC ? "no room is left in the GPU's BAR"
					   : log_strerror(error));
}

static int gdmabuf_export_by(const struct gdmabuf_context *ctx, enum gdmabuf_memory memory,
			     uintptr_t address, size_t size, bool is_read_only,
			     struct export_range *range)
{
	struct gdmabuf_export e = { .size = sizeof(e),
				    .flags = is_read_only ? GDMABUF_READ_ONLY : 0 };
	uintptr_t first;
	size_t length;

	if (!ctx->page_size[memory])
		return log_errno(EOPNOTSUPP,
				 "no provider of GPU memory: is gdmabuf_nvidia loaded?");
	if (!gdmabuf_whole_pages(address, size, ctx->page_size[memory], &first, &length))
		return range_refuse(address, size);
	e.address = first;
	e.length = length;
	if (ioctl(ctx->device.fd,
		  memory == GDMABUF_MEMORY_GPU ? GDMABUF_EXPORT_GPU : GDMABUF_EXPORT_HOST, &e))
		return gdmabuf_export_failed(memory, address, size, errno);
	*range = (struct export_range){ e.out_fd, address - first, length };
	return 0;
}

int gdmabuf_export(enum gdmabuf_memory memory, uintptr_t address, size_t size, bool is_read_only,
		   struct export_range *range)
{
	struct gdmabuf_context *ctx;
	int err = gdmabuf_context_get(&ctx);

	if (err)
		return err;
	err = gdmabuf_export_by(ctx, memory, address, size, is_read_only, range);
	gdmabuf_context_put(ctx);
	return err;
}

static int gdmabuf_watch_failed(const struct gdmabuf_context *ctx, uintptr_t address, size_t size,
				int error)
{
	if (error == EDQUOT)
		return log_errno(error,
				 "watch of %zu bytes at %#zx: the process has %u watches, the most "
				 "that there may be",
				 size, (size_t)address, ctx->watches);
	return log_errno(error, "watch of %zu bytes at %#zx: %s", size, (size_t)address,
			 log_strerror(error));
}

static int gdmabuf_watch_by(struct gdmabuf_context *ctx, uintptr_t address, size_t size,
			    struct gdmabuf_watch *watch)
{
	struct gdmabuf_watch_host w = { .size = sizeof(w) };
	uintptr_t first;
	size_t length;

	if (!gdmabuf_whole_pages(address, size, ctx->page_size[GDMABUF_MEMORY_HOST], &first,
				 &length))
		return range_refuse(address, size);
	w.address = first;
	w.length = length;
	if (ioctl(ctx->device.fd, GDMABUF_WATCH_HOST, &w))
		return gdmabuf_watch_failed(ctx, address, size, errno);
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
	int ret = gdmabuf_context_get(&ctx);

	if (ret)
		return ret;
	ret = gdmabuf_watch_by(ctx, address, size, watch);
	if (ret)
		gdmabuf_context_put(ctx);
	return ret;
}

/* Pairs with gdmabuf_notifier_set_stale(). */
bool gdmabuf_watch_is_current(const struct gdmabuf_watch *watch)
{
	return atomic_load_explicit(watch->status, memory_order_acquire) == watch->generation;
}

void gdmabuf_watch_end(const struct gdmabuf_watch *watch)
{
	struct gdmabuf_context *ctx = watch->context;
	struct gdmabuf_watch_id id = {
		.size = sizeof(id),
		.slot = watch->slot,
		.generation = watch->generation,
	};

	if (ctx == gdmabuf_context_usable())
		ioctl(ctx->device.fd, GDMABUF_UNWATCH_HOST, &id);
	gdmabuf_context_put(ctx);
}

const char *import_describe_kept(void)
{
	THREAD_NO_CANCEL();

	switch (gdmabuf_probe()) {
	case 0:
		return "the kernel module gdmabuf tells of changes";
	case -EACCES:
		return "/dev/gdmabuf may not be opened";
	case -ENXIO:
		return "the kernel module gdmabuf is not loaded";
	default:
		return "/dev/gdmabuf cannot be opened: memory or descriptors are short";
	}
}
