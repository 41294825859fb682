/* SPDX-License-Identifier: Apache-2.0 */
#include "import/export/gdmabuf.h"
#include "import/export/gdmabuf_context.h"
#include "util/lock.h"
#include "util/log.h"
#include "util/process.h"

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

LOCK_DEFINE(context_lock, LOCK_LAST); /* the making of it */
static struct gdmabuf_context *_Atomic current;

static int open_failed(void)
{
	int error = errno;

	if (error == EACCES || error == EPERM)
		return log_errno(EACCES, "/dev/gdmabuf: %s", log_strerror(error));
	if (error == EMFILE || error == ENFILE || error == ENOMEM)
		return log_errno(error, "/dev/gdmabuf: %s", log_strerror(error));
	return log_errno(ENXIO, "/dev/gdmabuf: %s: is the kernel module gdmabuf loaded?",
			 log_strerror(error));
}

static int gdmabuf_fill(struct gdmabuf_context *ctx)
{
	struct gdmabuf_caps caps = { .size = sizeof(caps) };
	void *status;

	if (ioctl(ctx->fd, GDMABUF_CAPS, &caps))
		return log_errno(errno, "capabilities of /dev/gdmabuf: %s", log_strerror(errno));
	if (descriptor_identify(ctx->fd, &ctx->id))
		return -EBADF;
	ctx->kept = gdmabuf_kept_create(caps.out_slots);
	if (!ctx->kept)
		return log_errno(ENOMEM, "no memory for %u slots", caps.out_slots);
	status = mmap(NULL, caps.out_slots * sizeof(*ctx->status), PROT_READ, MAP_SHARED, ctx->fd,
		      0);
	if (status == MAP_FAILED)
		return log_errno(errno, "status page of /dev/gdmabuf: %s", log_strerror(errno));
	ctx->process = process_generation();
	ctx->slots = caps.out_slots;
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
		return -ENOMEM;
	ctx->fd = open("/dev/gdmabuf", O_RDWR | O_CLOEXEC);
	err = ctx->fd < 0 ? open_failed() : gdmabuf_fill(ctx);
	if (!err) {
		*out = ctx;
		return 0;
	}
	if (ctx->fd >= 0)
		close(ctx->fd);
	free(ctx->kept);
	free(ctx);
	return err;
}

static struct gdmabuf_context *gdmabuf_own(void)
{
	struct gdmabuf_context *ctx = atomic_load_explicit(&current, memory_order_acquire);

	return ctx && ctx->process == process_generation() ? ctx : NULL;
}

/* Its own, with a descriptor that the program has not closed. */
struct gdmabuf_context *gdmabuf_context_usable(void)
{
	struct gdmabuf_context *ctx = gdmabuf_own();

	return ctx && descriptor_is(ctx->fd, &ctx->id) ? ctx : NULL;
}

/*
 * Whether the descriptor is still the parent's context.  The program may have opened the same node
 * since, but that answers.
 */
static bool is_inherited(const struct gdmabuf_context *ctx)
{
	struct gdmabuf_caps caps = { .size = sizeof(caps) };

	return ctx->process != process_generation() && descriptor_is(ctx->fd, &ctx->id) &&
	       ioctl(ctx->fd, GDMABUF_CAPS, &caps) && errno == EACCES;
}

/* A parent's context keeps what it has pinned as long as the child has its descriptor. */
static void gdmabuf_replace(struct gdmabuf_context *ctx) REQUIRES(context_lock)
{
	struct gdmabuf_context *old = atomic_load_explicit(&current, memory_order_relaxed);

	ctx->replaced = old;
	ctx->number = old ? old->number + 1 : 1;
	atomic_store_explicit(&current, ctx, memory_order_release);
	if (old && is_inherited(old))
		close(old->fd);
}

static int gdmabuf_context_get(struct gdmabuf_context **out)
{
	struct gdmabuf_context *ctx = gdmabuf_context_usable();
	int err = 0;

	if (!ctx) {
		lock_acquire(&context_lock);
		ctx = gdmabuf_context_usable();
		if (!ctx) {
			err = gdmabuf_open_context(&ctx);
			if (!err)
				gdmabuf_replace(ctx);
		}
		lock_release(&context_lock);
		if (!err)
			gdmabuf_kept_limit(ctx);
	}
	*out = ctx;
	return err;
}

static int export_failed(enum gdmabuf_memory memory, uintptr_t address, size_t size)
{
	int error = errno;

	return log_errno(error, "export of %zu bytes of %s memory at %#zx: %s", size,
			 memory == GDMABUF_MEMORY_GPU ? "GPU" : "host", (size_t)address,
			 log_strerror(error));
}

/* Whole pages that have the range.  False: there are none. */
static bool gdmabuf_whole_pages(uintptr_t address, size_t size, size_t page,
				struct gdmabuf_export *e)
{
	uintptr_t last;

	if (!size || __builtin_add_overflow(address, size - 1, &last) ||
	    (last | (page - 1)) == UINTPTR_MAX)
		return false;
	e->address = address & ~(page - 1);
	e->length = (last | (page - 1)) + 1 - e->address;
	return true;
}

static uint32_t export_flags(unsigned int options)
{
	return (options & GDMABUF_OPTION_READ_ONLY ? GDMABUF_READ_ONLY : 0) |
	       (options & GDMABUF_OPTION_KEEP ? GDMABUF_KEEP : 0) |
	       (options & GDMABUF_OPTION_REVOCABLE ? GDMABUF_REVOCABLE : 0) |
	       (options & GDMABUF_OPTION_UNWATCHED ? GDMABUF_UNWATCHED : 0);
}

int gdmabuf_export(enum gdmabuf_memory memory, uintptr_t address, size_t size, unsigned int options,
		   struct gdmabuf_range *range)
{
	struct gdmabuf_export e = { .size = sizeof(e), .flags = export_flags(options) };
	bool gpu = memory == GDMABUF_MEMORY_GPU;
	struct gdmabuf_context *ctx;
	int err = gdmabuf_context_get(&ctx);

	if (err)
		return err;
	if (!ctx->page_size[memory])
		return log_errno(EOPNOTSUPP,
				 "no provider of GPU memory: is gdmabuf_nvidia loaded?");
	if (!gdmabuf_whole_pages(address, size, ctx->page_size[memory], &e))
		return log_errno(EINVAL, "%zu bytes at %#zx are no range", size, (size_t)address);
	if (ioctl(ctx->fd, gpu ? GDMABUF_EXPORT_GPU : GDMABUF_EXPORT_HOST, &e))
		return export_failed(memory, address, size);
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

int gdmabuf_is_current(const struct gdmabuf_range *range)
{
	const struct gdmabuf_context *ctx = gdmabuf_own();

	return ctx && range->context == ctx->number && range->slot < ctx->slots &&
	       atomic_load_explicit(&ctx->status[range->slot], memory_order_acquire) ==
		       range->generation;
}
