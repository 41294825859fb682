/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pins that the kernel module keeps for later exports: memory, limit and end.
 *
 * The module knows pins by slots, the program by addresses.  An export may share a pin of more
 * memory, so the module is asked for the memory of the pin.
 */
#include <errno.h>
#include <linux/gdmabuf.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "import/export/gdmabuf.h"
#include "import/export/gdmabuf_context.h"
#include "util/lock.h"
#include "util/log.h"

/* The pin of a slot, as far as known; generation 0: no pin. */
struct gdmabuf_kept {
	uint32_t generation;
	uintptr_t address;
	size_t size;
};

/* Over every context's table, and over the limit until the module has the limit. */
LOCK_DEFINE(gdmabuf_kept_lock, LOCK_LAST);
static uint64_t gdmabuf_limit[2] GUARDED_BY(gdmabuf_kept_lock) = { UINT64_MAX, UINT64_MAX };

struct gdmabuf_kept *gdmabuf_kept_create(uint32_t slots)
{
	return calloc(slots, sizeof(struct gdmabuf_kept));
}

static struct gdmabuf_kept gdmabuf_kept_pin(const struct gdmabuf_context *ctx,
					    const struct gdmabuf_export *export)
{
	struct gdmabuf_query query = { .size = sizeof(query), .fd = export->out_fd };

	if (ioctl(ctx->device.fd, GDMABUF_QUERY, &query))
		return (struct gdmabuf_kept){ export->out_generation, export->address,
					      export->length };
	return (struct gdmabuf_kept){ query.out_generation, query.out_address - query.out_offset,
				      query.out_pin_length };
}

void gdmabuf_kept_add(struct gdmabuf_context *ctx, const struct gdmabuf_export *export)
{
	struct gdmabuf_kept *kept = &ctx->kept[export->out_slot];

	if (export->out_slot >= ctx->slots)
		return;
	lock_acquire(&gdmabuf_kept_lock);
	if (kept->generation != export->out_generation)
		*kept = gdmabuf_kept_pin(ctx, export);
	if (ctx->kept_slots <= export->out_slot)
		ctx->kept_slots = export->out_slot + 1;
	lock_release(&gdmabuf_kept_lock);
}

static bool gdmabuf_kept_touches(const struct gdmabuf_kept *kept, uintptr_t address, size_t size)
{
	return kept->generation &&
	       (kept->address - address < size || address - kept->address < kept->size);
}

/* EBUSY: not kept any more, and in use.  ENOENT: given up for room. */
static void gdmabuf_kept_drop(const struct gdmabuf_context *ctx, uint32_t slot)
	REQUIRES(gdmabuf_kept_lock)
{
	struct gdmabuf_pin_id id = {
		.size = sizeof(id),
		.slot = slot,
		.generation = ctx->kept[slot].generation,
	};

	if (ioctl(ctx->device.fd, GDMABUF_DROP, &id) && errno != EBUSY && errno != ENOENT)
		log_error("memory at %#zx stays registered: %s", (size_t)ctx->kept[slot].address,
			  log_strerror(errno));
	ctx->kept[slot].generation = 0;
}

void gdmabuf_drop(uintptr_t address, size_t size)
{
	struct gdmabuf_context *ctx = gdmabuf_context_usable();

	if (!ctx)
		return;
	lock_acquire(&gdmabuf_kept_lock);
	for (uint32_t slot = 0; slot < ctx->kept_slots; slot++)
		if (gdmabuf_kept_touches(&ctx->kept[slot], address, size))
			gdmabuf_kept_drop(ctx, slot);
	lock_release(&gdmabuf_kept_lock);
}

static const uint32_t gdmabuf_kind_of[] = {
	[GDMABUF_MEMORY_HOST] = GDMABUF_KIND_HOST,
	[GDMABUF_MEMORY_GPU] = GDMABUF_KIND_GPU,
};

/* Returns the idle bytes afterwards. */
static uint64_t gdmabuf_kept_set_budget(const struct gdmabuf_context *ctx,
					enum gdmabuf_memory memory, uint64_t bytes)
	REQUIRES(gdmabuf_kept_lock)
{
	struct gdmabuf_budget budget = {
		.size = sizeof(budget),
		.kind = gdmabuf_kind_of[memory],
		.bytes = bytes,
	};

	return ioctl(ctx->device.fd, GDMABUF_BUDGET, &budget) ? 0 : budget.out_used;
}

void gdmabuf_kept_limit(struct gdmabuf_context *ctx)
{
	lock_acquire(&gdmabuf_kept_lock);
	for (int memory = GDMABUF_MEMORY_HOST; memory <= GDMABUF_MEMORY_GPU; memory++)
		if (gdmabuf_limit[memory] != UINT64_MAX)
			gdmabuf_kept_set_budget(ctx, memory, gdmabuf_limit[memory]);
	lock_release(&gdmabuf_kept_lock);
}

void gdmabuf_set_limit(enum gdmabuf_memory memory, uint64_t bytes)
{
	const struct gdmabuf_context *ctx;

	lock_acquire(&gdmabuf_kept_lock);
	gdmabuf_limit[memory] = bytes;
	/* A context that a thread opens meanwhile is not seen here, and is told the limit then. */
	ctx = gdmabuf_context_usable();
	if (ctx)
		gdmabuf_kept_set_budget(ctx, memory, bytes);
	lock_release(&gdmabuf_kept_lock);
}

/* A limit of nothing, for a moment. */
void gdmabuf_drop_idle(void)
{
	const struct gdmabuf_context *ctx = gdmabuf_context_usable();

	if (!ctx)
		return;
	lock_acquire(&gdmabuf_kept_lock);
	for (int memory = GDMABUF_MEMORY_HOST; memory <= GDMABUF_MEMORY_GPU; memory++) {
		gdmabuf_kept_set_budget(ctx, memory, 0);
		gdmabuf_kept_set_budget(ctx, memory, gdmabuf_limit[memory]);
	}
	lock_release(&gdmabuf_kept_lock);
}

/* The module tells the idle bytes when the budget is set: the budget is set to its old value. */
static uint64_t gdmabuf_kept_idle_bytes(const struct gdmabuf_context *ctx)
{
	uint64_t bytes;

	lock_acquire(&gdmabuf_kept_lock);
	bytes = gdmabuf_kept_set_budget(ctx, GDMABUF_MEMORY_HOST,
					gdmabuf_limit[GDMABUF_MEMORY_HOST]) +
		gdmabuf_kept_set_budget(ctx, GDMABUF_MEMORY_GPU, gdmabuf_limit[GDMABUF_MEMORY_GPU]);
	lock_release(&gdmabuf_kept_lock);
	return bytes;
}

void gdmabuf_counts(struct gdmabuf_counts *counts)
{
	const struct gdmabuf_context *ctx = gdmabuf_context_usable();
	struct gdmabuf_stats stats = { .size = sizeof(stats) };

	*counts = (struct gdmabuf_counts){ 0 };
	if (!ctx || ioctl(ctx->device.fd, GDMABUF_STATS, &stats))
		return;
	*counts = (struct gdmabuf_counts){
		.exports = stats.out_exports,
		.hits = stats.out_hits,
		.evictions = stats.out_evictions,
		.stale = stats.out_stale,
		.bytes_pinned = stats.out_host_bytes + stats.out_gpu_bytes,
		.bytes_idle = gdmabuf_kept_idle_bytes(ctx),
	};
}
