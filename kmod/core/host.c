// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Pins of host memory: any range that the owner has mapped, anonymous or of a file, as long as the
 * kernel allows long-term pins of the pages (FOLL_LONGTERM).
 *
 * Pinned pages are not affected when the owner remaps the range (munmap, mremap, MADV_DONTNEED).
 * The address then means other pages, and the pin is stale: notifier.c.
 *
 * Pinned pages count against RLIMIT_MEMLOCK: memlock.c.
 */
#include <linux/cred.h>
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "compat.h"
#include "core.h"

enum {
	BATCH = 4096,		/* pages, between two checks for signals */
	ATTEMPTS = 4,
};

static u64 gdmabuf_host_page_size(void)
{
	return PAGE_SIZE;
}

/* Host memory is charged to the caller's present user, not to the user that opened the context. */
static struct gdmabuf_quota *gdmabuf_host_get_quota(struct gdmabuf_context *ctx)
{
	if (uid_eq(ctx->uid, current_uid()))
		return gdmabuf_quota_get(ctx->quota);
	return gdmabuf_quota_get_current();
}

/* The mapping at an address of the caller. */
struct mapping {
	u64 end;
	unsigned long vm_flags;
	bool tracks_writes;	/* the file system must be told before pages are written */
	bool copies_file;	/* the kernel copies a file's pages before a pin for reading */
};

static bool gdmabuf_host_tracks_writes(const struct vm_area_struct *vma)
{
	const struct vm_operations_struct *ops = vma->vm_ops;

	return vma->vm_flags & VM_SHARED && ops && (ops->page_mkwrite || ops->pfn_mkwrite);
}

/* A private mapping of a file, which may not be written now, but after an mprotect(). */
static bool gdmabuf_host_copies_file(struct vm_area_struct *vma)
{
	const unsigned long flags = VM_SHARED | VM_MAYWRITE | VM_WRITE | VM_HUGETLB;

	return GDMABUF_GUP_UNSHARES_FILES && !vma_is_anonymous(vma) &&
	       (vma->vm_flags & flags) == VM_MAYWRITE;
}

static int gdmabuf_host_look_up(u64 address, struct mapping *mapping)
{
	struct mm_struct *mm = current->mm;
	struct vm_area_struct *vma;

	if (mmap_read_lock_killable(mm))
		return -EINTR;
	vma = find_vma(mm, address);
	if (!vma || vma->vm_start > address) {
		mmap_read_unlock(mm);
		return -EFAULT;
	}
	mapping->end = vma->vm_end;
	mapping->vm_flags = vma->vm_flags;
	mapping->tracks_writes = gdmabuf_host_tracks_writes(vma);
	mapping->copies_file = gdmabuf_host_copies_file(vma);
	mmap_read_unlock(mm);
	return 0;
}

/*
 * As gdmabuf_host_look_up().  -EACCES if the mapping is read-only and @flags do not include
 * GDMABUF_READ_ONLY.  A writable mapping may be read as well, because mmap() requires files to be
 * open for reading.
 *
 * -EFAULT if the file system tracks writes: a device's writes go unnoticed, and are lost, or worse.
 * Since 6.5 Linux refuses such pins itself.
 */
static int gdmabuf_host_check_mapping(u64 address, u32 flags, struct mapping *mapping)
{
	int err = gdmabuf_host_look_up(address, mapping);

	if (err)
		return err;
	if (!(mapping->vm_flags & (VM_READ | VM_WRITE)))
		return -EFAULT;
	if (flags & GDMABUF_READ_ONLY)
		return 0;
	if (!(mapping->vm_flags & VM_WRITE))
		return -EACCES;
	return mapping->tracks_writes ? -EFAULT : 0;
}

static int gdmabuf_host_check_access(struct gdmabuf_pin *pin, u64 address, u64 length, u32 flags)
{
	u64 end = address + length;
	struct mapping mapping;
	int err = 0;

	for (; !err && address < end; address = mapping.end)
		err = gdmabuf_host_check_mapping(address, flags, &mapping);
	return err;
}

/* Counts the contiguous pages at the start of @pages. */
static long gdmabuf_host_count_in_row(struct page **pages, long nr)
{
	unsigned long first = page_to_pfn(pages[0]);
	long n = 1;

	while (n < nr && page_to_pfn(pages[n]) == first + n)
		n++;
	return n;
}

/* Makes room for more than @room runs of @pin. */
static int gdmabuf_host_grow_runs(struct gdmabuf_pin *pin, unsigned int *room)
{
	unsigned int more = max(2 * *room, 16U);
	/* __GFP_NOWARN: the size may exceed the limit of kvmalloc(), which warns. */
	struct gdmabuf_run *runs =
		kvmalloc_array(more, sizeof(*runs), GFP_KERNEL_ACCOUNT | __GFP_NOWARN);

	if (!runs)
		return -ENOMEM;
	if (pin->runs) {
		memcpy(runs, pin->runs, pin->nr_runs * sizeof(*runs));
		kvfree(pin->runs);
	}
	pin->runs = runs;
	*room = more;
	return 0;
}

/* Appends @nr pages to @pin's runs, which have room for @room. */
static int gdmabuf_host_append(struct gdmabuf_pin *pin, unsigned int *room, struct page **pages,
			       long nr)
{
	struct gdmabuf_run *last = pin->nr_runs ? &pin->runs[pin->nr_runs - 1] : NULL;
	long i, n;

	for (i = 0; i < nr; i += n) {
		phys_addr_t start = page_to_phys(pages[i]);

		n = gdmabuf_host_count_in_row(&pages[i], nr - i);
		if (last && run_extend(last, start, (u64)n << PAGE_SHIFT))
			continue;
		if (pin->nr_runs == *room && gdmabuf_host_grow_runs(pin, room)) {
			unpin_user_pages(&pages[i], nr - i);
			return -ENOMEM;
		}
		last = &pin->runs[pin->nr_runs++];
		*last = (struct gdmabuf_run){ start, (u64)n << PAGE_SHIFT };
	}
	return 0;
}

static void gdmabuf_host_unpin_runs(struct gdmabuf_pin *pin, bool dirty)
{
	unsigned int i;

	for (i = 0; i < pin->nr_runs; i++) {
		unpin_user_page_range_dirty_lock(pfn_to_page(PHYS_PFN(pin->runs[i].start)),
						 pin->runs[i].length >> PAGE_SHIFT, dirty);
		cond_resched();
	}
	kvfree(pin->runs);
	pin->runs = NULL;
	pin->nr_runs = 0;
}

/*
 * How to pin the pages of @mapping.  A read-only export is pinned for writing in three cases:
 * - The mapping is private and writable: the owner's first write would replace the pages.
 * - The mapping is not readable: the kernel has no other way.
 * - The kernel would copy a file's pages.  The fault by which a pin for reading asks for the copy
 *   (FAULT_FLAG_UNSHARE) is handled as a read fault.  If the file's page is huge, the read fault
 *   maps the huge page again, the pin asks again, and so on until a fatal signal.  The fault of a
 *   pin for writing copies, and FOLL_FORCE permits that fault in a private mapping.  Neither the
 *   owner nor the dma-buf may write the copies.
 */
static unsigned int gdmabuf_host_gup_flags(const struct gdmabuf_pin *pin,
					   const struct mapping *mapping)
{
	const unsigned long shared = VM_SHARED | VM_READ;

	if (!(pin->flags & GDMABUF_READ_ONLY))
		return FOLL_LONGTERM | FOLL_WRITE;
	if (mapping->copies_file)
		return FOLL_LONGTERM | FOLL_WRITE | FOLL_FORCE;
	if (mapping->vm_flags & VM_WRITE && (mapping->vm_flags & shared) != shared)
		return FOLL_LONGTERM | FOLL_WRITE;
	return FOLL_LONGTERM;
}

/*
 * As gdmabuf_host_pin_some(), up to the end of the mapping at @address.  -EACCES and -EFAULT as
 * gdmabuf_host_check_mapping().
 */
static long gdmabuf_host_pin_checked(struct gdmabuf_pin *pin, u64 address, u64 left,
				     struct page **batch)
{
	struct mapping mapping;
	int err;

	/*
	 * A later change of the mapping makes the pin stale, and gdmabuf_host_pin_consistently()
	 * starts again.
	 */
	err = gdmabuf_host_check_mapping(address, pin->flags, &mapping);
	if (err)
		return err;
	left = min(left, mapping.end - address);
	return pin_user_pages_fast(address, left >> PAGE_SHIFT,
				   gdmabuf_host_gup_flags(pin, &mapping), batch);
}

/*
 * Pins pages from @address on: at most @left bytes, and at most a batch.
 *
 * Where Linux checks the files of long-term pins, all pages that can be pinned for writing pass
 * gdmabuf_host_check_mapping(), too.  So the mapping is looked up only after a failure, for the
 * error.
 */
static long gdmabuf_host_pin_some(struct gdmabuf_pin *pin, u64 address, u64 left,
				  struct page **batch)
{
	long n = 0;

	if (fatal_signal_pending(current))
		return -EINTR;
	cond_resched();
	left = min(left, (u64)BATCH << PAGE_SHIFT);
	if (GDMABUF_GUP_KEEPS_FILES && !(pin->flags & GDMABUF_READ_ONLY))
		n = pin_user_pages_fast(address, left >> PAGE_SHIFT, FOLL_LONGTERM | FOLL_WRITE,
					batch);
	if (n <= 0)
		n = gdmabuf_host_pin_checked(pin, address, left, batch);
	return n ? n : -EFAULT;
}

static int gdmabuf_host_pin_range(struct gdmabuf_pin *pin, struct page **batch)
{
	u64 done = 0;
	unsigned int room = 0;
	int err;

	while (done < pin->length) {
		long n = gdmabuf_host_pin_some(pin, pin->address + done, pin->length - done, batch);

		err = n < 0 ? n : gdmabuf_host_append(pin, &room, batch, n);
		if (err) {
			gdmabuf_host_unpin_runs(pin, false);
			/* Errors of some kernels for ranges that cannot be pinned for long. */
			return err == -EOPNOTSUPP || err == -EBUSY ? -EFAULT : err;
		}
		done += n << PAGE_SHIFT;
	}
	return 0;
}

static void gdmabuf_host_stale_locked(struct gdmabuf_notice *notice)
{
	struct gdmabuf_pin *pin = container_of(notice, struct gdmabuf_pin, host.notice);

	if (gdmabuf_pin_set_stale(pin) && !READ_ONCE(pin->creating))
		gdmabuf_notifier_forget_locked(pin);
}

/*
 * The invalidation that made the pin stale may still be running, but not after the removal.
 */
static void gdmabuf_host_end_attempt(struct gdmabuf_pin *pin)
{
	gdmabuf_notifier_remove(&pin->host.notice);
	gdmabuf_host_unpin_runs(pin, false);
	if (test_and_clear_bit(PIN_STALE, &pin->state))
		gdmabuf_slots_live(&pin->ctx->slots, pin->slot, pin->generation);
}

/*
 * Pins until no remap has happened meanwhile.  The first attempt may itself cause a remap, by
 * giving the owner private copies of shared pages.
 */
static int gdmabuf_host_pin_consistently(struct gdmabuf_pin *pin, struct page **batch)
{
	struct gdmabuf_notice *notice = &pin->host.notice;
	int attempt, err = 0;

	notice->ctx = pin->ctx;
	notice->stale_locked = gdmabuf_host_stale_locked;
	for (attempt = 0; !err && attempt < ATTEMPTS; attempt++) {
		err = gdmabuf_notifier_add(notice, pin->address, pin->length);
		if (err)
			return err;
		err = gdmabuf_host_pin_range(pin, batch);
		if (!err && !test_bit(PIN_STALE, &pin->state))
			return 0;
		gdmabuf_host_end_attempt(pin);
	}
	return err ? err : -EAGAIN;
}

/*
 * The capability is checked once for each file, as in io_uring, and again for callers with other
 * credentials.
 */
static bool gdmabuf_host_is_limited(const struct gdmabuf_context *ctx)
{
	return current_cred() == ctx->cred ? ctx->limited : gdmabuf_memlock_limits_current();
}

static int gdmabuf_host_pin(struct gdmabuf_pin *pin)
{
	struct page *few[16], **batch = few;
	bool limited = gdmabuf_host_is_limited(pin->ctx);
	int err;

	/* The caller is the owner, so @current's mm is the pin's: gdmabuf_context_check(). */
	if (limited && pin->length > rlimit(RLIMIT_MEMLOCK))
		return -ENOMEM;
	if (pin->length >> PAGE_SHIFT > ARRAY_SIZE(few))
		batch = kvmalloc_array(min_t(u64, BATCH, pin->length >> PAGE_SHIFT), sizeof(*batch),
				       GFP_KERNEL_ACCOUNT);
	if (!batch)
		return -ENOMEM;
	err = gdmabuf_notifier_get(pin->ctx);
	if (err)
		goto free_batch;
	err = gdmabuf_host_pin_consistently(pin, batch);
	if (err)
		goto free_batch;
	/* The charge is known only after pinning, because folios count whole. */
	err = limited ? gdmabuf_memlock_charge(&pin->quota->memlock, pin) : 0;
	if (err)
		goto unpin_runs;
	pin->cacheable = true;
	pin->host.dirty = !(pin->flags & GDMABUF_READ_ONLY);
	if (batch != few)
		kvfree(batch);
	return 0;

unpin_runs:
	gdmabuf_notifier_remove(&pin->host.notice);
	gdmabuf_host_unpin_runs(pin, false);
free_batch:
	if (batch != few)
		kvfree(batch);
	return err;
}

static void gdmabuf_host_unpin(struct gdmabuf_pin *pin)
{
	struct gdmabuf_memlock *memlock = &pin->quota->memlock;
	unsigned long nr = pin->charged ? gdmabuf_memlock_forget(memlock, pin) : 0;

	gdmabuf_notifier_remove(&pin->host.notice);
	gdmabuf_host_unpin_runs(pin, pin->host.dirty);
	if (nr)
		gdmabuf_memlock_uncharge(memlock, nr);
}

#define HOST_BUFFER_OPS                                                                \
	.map_dma_buf = gdmabuf_sg_map_host, .unmap_dma_buf = gdmabuf_sg_unmap_host,    \
	.begin_cpu_access = gdmabuf_sg_begin_cpu_access_host,                          \
	.end_cpu_access = gdmabuf_sg_end_cpu_access_host, .mmap = gdmabuf_buffer_mmap, \
	.release = gdmabuf_buffer_release

/* The dma-buf core warns if an operation fails, so an impossible operation is left out. */
static const struct dma_buf_ops host_ops = { HOST_BUFFER_OPS };
static const struct dma_buf_ops host_vmap_ops = {
	HOST_BUFFER_OPS,
	.vmap = gdmabuf_vmap_host,
	.vunmap = gdmabuf_vunmap_host,
};

/* Kernel mappings by vmap() cannot be read-only. */
static const struct dma_buf_ops *gdmabuf_host_buffer_ops(const struct gdmabuf_pin *pin, u64 offset,
							 u64 length, u32 flags)
{
	if (flags & GDMABUF_READ_ONLY || length > GDMABUF_VMAP_MAX)
		return &host_ops;
	return &host_vmap_ops;
}

const struct gdmabuf_pin_ops gdmabuf_host_pin_ops = {
	.kind = GDMABUF_KIND_HOST,
	.flags = GDMABUF_KEEP | GDMABUF_READ_ONLY,
	.page_size = gdmabuf_host_page_size,
	.get_quota = gdmabuf_host_get_quota,
	.pin = gdmabuf_host_pin,
	.unpin = gdmabuf_host_unpin,
	.count_gain = gdmabuf_memlock_count_gain,
	.take_gain = gdmabuf_memlock_take_gain,
	.check = gdmabuf_host_check_access,
	.buffer_ops = gdmabuf_host_buffer_ops,
};
