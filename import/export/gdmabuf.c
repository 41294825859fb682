/* SPDX-License-Identifier: Apache-2.0 */
#include "import/export/gdmabuf.h"
#include "import/export/gdmabuf_context.h"
#include "import/kinds/ranges.h"
#include "util/lock.h"
#include "util/log.h"
#include "util/fork.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/gdmabuf.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

LOCK_DEFINE(gdmabuf_context_lock, LOCK_LAST); /* creation, and uses */
static struct gdmabuf_context *_Atomic gdmabuf_current;

static int gdmabuf_open_failed(void)
{
	int error = errno;

	if (error == EACCES || error == EPERM)
		return log_errno(EACCES, "/dev/gdmabuf: %s", log_strerror(error));
	if (error == EMFILE || error == ENFILE || error == ENOMEM)
		return log_errno(error, "/dev/gdmabuf: %s", log_strerror(error));
	return log_errno(ENXIO, "/dev/gdmabuf: %s: is the kernel module gdmabuf loaded?",
			 log_strerror(error));
}

/* Opens the device and closes the device: 0 or a negative errno, not logged. */
static int gdmabuf_try_open(void)
{
	int fd = open("/dev/gdmabuf", O_RDWR | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	close(fd);
	return 0;
}

bool gdmabuf_is_available(void)
{
	int ret = gdmabuf_context_usable() ? 0 : gdmabuf_try_open();

	return !ret || ret == -EMFILE || ret == -ENFILE || ret == -ENOMEM;
}

static int gdmabuf_fill(struct gdmabuf_context *ctx)
{
	struct gdmabuf_caps caps = { .size = sizeof(caps) };
	void *status;

	if (ioctl(ctx->device.fd, GDMABUF_CAPS, &caps))
		return log_errno(errno, "capabilities of /dev/gdmabuf: %s", log_strerror(errno));
	if (descriptor_own(&ctx->device, ctx->device.fd))
		return -EBADF;
	ctx->kept = gdmabuf_kept_create(caps.out_slots);
	if (!ctx->kept)
		return log_errno(ENOMEM, "no memory for %u slots", caps.out_slots);
	status = mmap(NULL, caps.out_slots * sizeof(*ctx->status), PROT_READ, MAP_SHARED,
		      ctx->device.fd, 0);
	if (status == MAP_FAILED)
		return log_errno(errno, "status page of /dev/gdmabuf: %s", log_strerror(errno));
	ctx->slots = caps.out_slots;
	ctx->status = status;
	ctx->can_watch = caps.out_caps & GDMABUF_CAP_WATCH_HOST;
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
	err = ctx->device.fd < 0 ? gdmabuf_open_failed() : gdmabuf_fill(ctx);
	if (!err) {
		*out = ctx;
		return 0;
	}
	if (ctx->device.fd >= 0)
		close(ctx->device.fd);
	free(ctx->kept);
	free(ctx);
	return err;
}

/* The process's context, even if the program has closed the descriptor. */
static struct gdmabuf_context *gdmabuf_context_own(void)
{
	struct gdmabuf_context *ctx = atomic_load_explicit(&gdmabuf_current, memory_order_acquire);

	return ctx && ctx->device.process == fork_generation() ? ctx : NULL;
}

struct gdmabuf_context *gdmabuf_context_usable(void)
{
	struct gdmabuf_context *ctx = gdmabuf_context_own();

	return ctx && descriptor_is_own(&ctx->device) ? ctx : NULL;
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

/* @kept: without an export, no thread reads or writes the table. */
static void gdmabuf_context_unmap(struct gdmabuf_context *ctx)
{
	munmap((void *)(uintptr_t)ctx->status, ctx->slots * sizeof(*ctx->status));
	free(ctx->kept);
	ctx->status = NULL;
	ctx->kept = NULL;
}

/* A context of the process that is replaced, and has no use.  A parent's page is not mapped here. */
static void gdmabuf_context_unmap_unused(struct gdmabuf_context *ctx) REQUIRES(gdmabuf_context_lock)
{
	if (ctx->status && !ctx->uses && ctx->device.process == fork_generation() &&
	    ctx != atomic_load_explicit(&gdmabuf_current, memory_order_relaxed))
		gdmabuf_context_unmap(ctx);
}

/* A parent's context keeps its pins as long as the child has the descriptor. */
static void gdmabuf_replace(struct gdmabuf_context *ctx) REQUIRES(gdmabuf_context_lock)
{
	struct gdmabuf_context *old = atomic_load_explicit(&gdmabuf_current, memory_order_relaxed);

	ctx->replaced = old;
	ctx->number = old ? old->number + 1 : 1;
	atomic_store_explicit(&gdmabuf_current, ctx, memory_order_release);
	if (old && gdmabuf_is_inherited(old))
		close(old->device.fd);
	if (old)
		gdmabuf_context_unmap_unused(old);
}

int gdmabuf_context_get(struct gdmabuf_context **out)
{
	struct gdmabuf_context *ctx;
	bool is_new;
	int err = 0;

	lock_acquire(&gdmabuf_context_lock);
	ctx = gdmabuf_context_usable();
	is_new = !ctx;
	if (is_new)
		err = gdmabuf_open_context(&ctx);
	if (is_new && !err)
		gdmabuf_replace(ctx);
	if (!err)
		ctx->uses++;
	lock_release(&gdmabuf_context_lock);
	if (err)
		return err;
	if (is_new)
		gdmabuf_kept_limit(ctx);
	*out = ctx;
	return 0;
}

void gdmabuf_context_end_use(struct gdmabuf_context *ctx)
{
	lock_acquire(&gdmabuf_context_lock);
	ctx->uses--;
	gdmabuf_context_unmap_unused(ctx);
	lock_release(&gdmabuf_context_lock);
}

static int gdmabuf_export_failed(enum gdmabuf_memory memory, uintptr_t address, size_t size)
{
	int error = errno;

	return log_errno(error, "export of %zu bytes of %s memory at %#zx: %s", size,
			 memory == GDMABUF_MEMORY_GPU ? "GPU" : "host", (size_t)address,
			 log_strerror(error));
}

bool gdmabuf_whole_pages(uintptr_t address, size_t size, size_t page, uintptr_t *first,
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

static uint32_t gdmabuf_flags_of(unsigned int options)
{
	return (options & GDMABUF_OPTION_READ_ONLY ? GDMABUF_READ_ONLY : 0) |
	       (options & GDMABUF_OPTION_KEEP ? GDMABUF_KEEP : 0) |
	       (options & GDMABUF_OPTION_REVOCABLE ? GDMABUF_REVOCABLE : 0) |
	       (options & GDMABUF_OPTION_UNWATCHED ? GDMABUF_UNWATCHED : 0);
}

static int gdmabuf_export_by(struct gdmabuf_context *ctx, enum gdmabuf_memory memory,
			     uintptr_t address, size_t size, unsigned int options,
			     struct gdmabuf_range *range)
{
	struct gdmabuf_export e = { .size = sizeof(e), .flags = gdmabuf_flags_of(options) };
	bool gpu = memory == GDMABUF_MEMORY_GPU;
	uintptr_t first;
	size_t length;

	if (!ctx->page_size[memory])
		return log_errno(EOPNOTSUPP,
				 "no provider of GPU memory: is gdmabuf_nvidia loaded?");
	if (!gdmabuf_whole_pages(address, size, ctx->page_size[memory], &first, &length))
		return range_refuse(address, size);
	e.address = first;
	e.length = length;
	if (ioctl(ctx->device.fd, gpu ? GDMABUF_EXPORT_GPU : GDMABUF_EXPORT_HOST, &e))
		return gdmabuf_export_failed(memory, address, size);
	if (options & GDMABUF_OPTION_KEEP)
		gdmabuf_kept_add(ctx, &e);
	*range = (struct gdmabuf_range){
		.fd = e.out_fd,
		.offset = address - e.address,
		.context = ctx->number,
		.slot = e.out_slot,
		.generation = e.out_generation,
		.status = &ctx->status[e.out_slot],
	};
	return 0;
}

/* An export's use of the context never ends, as the status word is never unmapped. */
int gdmabuf_export(enum gdmabuf_memory memory, uintptr_t address, size_t size, unsigned int options,
		   struct gdmabuf_range *range)
{
	struct gdmabuf_context *ctx;
	int err = gdmabuf_context_get(&ctx);

	if (err)
		return err;
	err = gdmabuf_export_by(ctx, memory, address, size, options, range);
	if (err)
		gdmabuf_context_end_use(ctx);
	return err;
}

int gdmabuf_is_current(const struct gdmabuf_range *range)
{
	const struct gdmabuf_context *ctx = gdmabuf_context_own();

	return ctx && range->context == ctx->number && range->slot < ctx->slots &&
	       atomic_load_explicit(&ctx->status[range->slot], memory_order_acquire) ==
		       range->generation;
}
