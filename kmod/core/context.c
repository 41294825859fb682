// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Contexts: the watches of an open file, and their words.
 *
 * A watch has a slot from before its word is written until after its word is over.  Whoever has the
 * slot writes the word, and the notifier does between add and remove.
 */
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "compat.h"
#include "core.h"
#include "slot.h"

#define STATUS_SIZE PAGE_ALIGN(GDMABUF_WATCHES * sizeof(u32))

struct gdmabuf_context *gdmabuf_context_create(void)
{
	struct gdmabuf_context *ctx = kzalloc(sizeof(*ctx), GFP_KERNEL_ACCOUNT);

	if (!ctx)
		return ERR_PTR(-ENOMEM);
	xa_init_flags(&ctx->watches, XA_FLAGS_ALLOC | XA_FLAGS_ACCOUNT);
	ctx->mm = current->mm;
	mmgrab(ctx->mm);
	return ctx;
}

int gdmabuf_context_check(const struct gdmabuf_context *ctx)
{
	return current->mm == ctx->mm ? 0 : -EACCES;
}

/* -ENOMEM.  Two threads may come at once. */
static int gdmabuf_context_get_status(struct gdmabuf_context *ctx)
{
	u32 *status;

	/* Pairs with the cmpxchg() of another thread: the page is zero. */
	if (smp_load_acquire(&ctx->status))
		return 0;
	status = alloc_pages_exact(STATUS_SIZE, GFP_KERNEL_ACCOUNT | __GFP_ZERO | __GFP_NOWARN);
	if (!status)
		return -ENOMEM;
	if (cmpxchg(&ctx->status, NULL, status))
		free_pages_exact(status, STATUS_SIZE);
	return 0;
}

/*
 * vm_iomap_memory() is for device memory, and would map without encryption where RAM is encrypted.
 */
int gdmabuf_context_mmap(struct gdmabuf_context *ctx, struct vm_area_struct *vma)
{
	unsigned long pages = STATUS_SIZE >> PAGE_SHIFT, first = vma->vm_pgoff;
	int err;

	if (vma->vm_flags & VM_WRITE)
		return -EACCES;
	if (!(vma->vm_flags & VM_SHARED) || first >= pages || vma_pages(vma) > pages - first)
		return -EINVAL;
	err = gdmabuf_context_get_status(ctx);
	if (err)
		return err;
	vm_flags_clear(vma, VM_MAYWRITE);
	vm_flags_set(vma, VM_DONTCOPY);
	return remap_pfn_range(vma, vma->vm_start, PHYS_PFN(virt_to_phys(ctx->status)) + first,
			       vma->vm_end - vma->vm_start, vma->vm_page_prot);
}

static int gdmabuf_context_get_notifier(struct gdmabuf_context *ctx)
{
	struct gdmabuf_notifier *notifier;

	/* Pairs with the cmpxchg() of another thread. */
	if (smp_load_acquire(&ctx->notifier))
		return 0;
	notifier = gdmabuf_notifier_get();
	if (IS_ERR(notifier))
		return PTR_ERR(notifier);
	if (cmpxchg(&ctx->notifier, NULL, notifier))
		gdmabuf_notifier_put(notifier);
	return 0;
}

/* Reserves a slot, in which no other thread sees a watch. */
static int gdmabuf_context_get_slot(struct gdmabuf_context *ctx, u32 *slot)
{
	int err = xa_alloc(&ctx->watches, slot, NULL, XA_LIMIT(0, GDMABUF_WATCHES - 1),
			   GFP_KERNEL_ACCOUNT);

	return err == -EBUSY ? -EDQUOT : err;
}

/* @watch is in no slot any more, or not yet; its slot is reserved. */
static void gdmabuf_context_free_watch(struct gdmabuf_context *ctx, struct gdmabuf_watch *watch)
{
	gdmabuf_notifier_remove(ctx->notifier, watch);
	WRITE_ONCE(*watch->word, slot_word_over(watch->generation));
	if (slot_word_next(watch->generation))
		xa_erase(&ctx->watches, watch->slot);
	atomic64_dec(&gdmabuf_watches);
	kfree(watch);
}

static struct gdmabuf_watch *gdmabuf_context_create_watch(struct gdmabuf_context *ctx, u64 address,
							  u64 length)
{
	struct gdmabuf_watch *watch = kzalloc(sizeof(*watch), GFP_KERNEL_ACCOUNT);
	int err;

	if (!watch)
		return ERR_PTR(-ENOMEM);
	err = gdmabuf_context_get_slot(ctx, &watch->slot);
	if (err) {
		kfree(watch);
		return ERR_PTR(err);
	}
	watch->word = &ctx->status[watch->slot];
	watch->generation = slot_word_next(*watch->word);
	watch->node.start = address;
	watch->node.last = address + length - 1;
	WRITE_ONCE(*watch->word, watch->generation);
	atomic64_inc(&gdmabuf_watches);
	err = gdmabuf_notifier_add(ctx->notifier, watch);
	if (!err)
		return watch;
	gdmabuf_context_free_watch(ctx, watch);
	return ERR_PTR(err);
}

int gdmabuf_context_watch(struct gdmabuf_context *ctx, u64 address, u64 length, u32 *slot,
			  u32 *generation)
{
	struct gdmabuf_watch *watch;
	int err;

	/* An address with a tag, as of arm64, would never be reported. */
	if (address >= TASK_SIZE || length > TASK_SIZE - address)
		return -EFAULT;
	err = gdmabuf_context_get_notifier(ctx) ?: gdmabuf_context_get_status(ctx);
	if (err)
		return err;
	watch = gdmabuf_context_create_watch(ctx, address, length);
	if (IS_ERR(watch))
		return PTR_ERR(watch);
	*slot = watch->slot;
	*generation = watch->generation;
	/* Comes last: from here on any thread may end the watch. */
	err = xa_err(xa_store(&ctx->watches, watch->slot, watch, GFP_KERNEL_ACCOUNT));
	if (err)
		gdmabuf_context_free_watch(ctx, watch);
	return err;
}

int gdmabuf_context_unwatch(struct gdmabuf_context *ctx, u32 slot, u32 generation)
{
	struct gdmabuf_watch *watch;

	if (slot >= GDMABUF_WATCHES)
		return -ENOENT;
	xa_lock(&ctx->watches);
	watch = xa_load(&ctx->watches, slot);
	if (watch && watch->generation == generation)
		__xa_store(&ctx->watches, slot, NULL, GFP_NOWAIT); /* reserves the slot */
	else
		watch = NULL;
	xa_unlock(&ctx->watches);
	if (!watch)
		return -ENOENT;
	gdmabuf_context_free_watch(ctx, watch);
	return 0;
}

unsigned long gdmabuf_context_count_watches(struct gdmabuf_context *ctx)
{
	struct gdmabuf_watch *watch;
	unsigned long slot, nr = 0;

	xa_for_each(&ctx->watches, slot, watch)
		nr++;
	return nr;
}

void gdmabuf_context_close(struct gdmabuf_context *ctx)
{
	struct gdmabuf_watch *watch;
	unsigned long slot;

	xa_for_each(&ctx->watches, slot, watch)
		gdmabuf_context_free_watch(ctx, watch);
	xa_destroy(&ctx->watches);
	if (ctx->notifier)
		gdmabuf_notifier_put(ctx->notifier);
	if (ctx->status)
		free_pages_exact(ctx->status, STATUS_SIZE);
	mmdrop(ctx->mm);
	kfree(ctx);
}
