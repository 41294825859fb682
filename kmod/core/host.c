// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Host memory: any range that the caller has mapped, anonymous or of a file, as long as the kernel
 * allows long-term pins of the pages (FOLL_LONGTERM).
 *
 * Pinned pages are not affected when the process remaps the range (munmap, mremap, MADV_DONTNEED).
 * The address then means other pages: a watch tells (notifier.c).
 *
 * The pages are charged to the user (RLIMIT_MEMLOCK) in one sum with those of io_uring and iommufd,
 * and not to the mm_struct (pinned_vm): a dma-buf outlives the process.  The charge comes first: a
 * page fault of the pin may wait for a user's file system as long as the user likes.
 */
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/mm.h>
#include <linux/sched/signal.h>
#include <linux/sched/user.h>
#include <linux/slab.h>

#include "compat.h"
#include "core.h"

#define BATCH 4096 /* pages, between two checks for signals */

static u64 gdmabuf_host_page_size(void)
{
	return PAGE_SIZE;
}

/* -EDQUOT: the limit is reached. */
static int gdmabuf_host_charge_user(unsigned long nr)
{
	unsigned long limit = rlimit(RLIMIT_MEMLOCK) >> PAGE_SHIFT, locked;
	atomic_long_t *sum = &current_user()->locked_vm;

	locked = atomic_long_read(sum);
	do {
		if (locked > limit || nr > limit - locked)
			return -EDQUOT;
	} while (!atomic_long_try_cmpxchg(sum, &locked, locked + nr));
	return 0;
}

static int gdmabuf_host_charge(struct gdmabuf_buffer *buffer)
{
	int err;

	/* noaudit: to lack the capability is no fault. */
	buffer->host.is_limited = !ns_capable_noaudit(&init_user_ns, CAP_IPC_LOCK);
	if (buffer->host.is_limited) {
		err = gdmabuf_host_charge_user(buffer->length >> PAGE_SHIFT);
		if (err)
			return err;
	}
	/* The credentials hold the user: some kernels do not export free_uid(). */
	buffer->host.cred = get_current_cred();
	atomic64_add(buffer->length, &gdmabuf_host_bytes);
	return 0;
}

static void gdmabuf_host_uncharge(struct gdmabuf_buffer *buffer)
{
	const struct cred *cred = buffer->host.cred;

	if (!cred)
		return;
	atomic64_sub(buffer->length, &gdmabuf_host_bytes);
	if (buffer->host.is_limited)
		atomic_long_sub(buffer->length >> PAGE_SHIFT, &cred->user->locked_vm);
	put_cred(cred);
}

/* The mapping at an address of the caller. */
struct mapping {
	u64 end;
	unsigned long vm_flags;
	bool is_memory;		/* anonymous or of a file, and no device */
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

/* The kernel's own mappings, such as [vvar], have operations and no file. */
static bool gdmabuf_host_is_memory(struct vm_area_struct *vma)
{
	return !(vma->vm_flags & (VM_IO | VM_PFNMAP)) && (vma->vm_file || vma_is_anonymous(vma));
}

static int gdmabuf_host_look_up_locked(u64 address, struct mapping *mapping)
{
	struct vm_area_struct *vma = find_vma(current->mm, address);

	if (!vma || vma->vm_start > address)
		return -EFAULT;
	mapping->end = vma->vm_end;
	mapping->vm_flags = vma->vm_flags;
	mapping->is_memory = gdmabuf_host_is_memory(vma);
	mapping->tracks_writes = gdmabuf_host_tracks_writes(vma);
	mapping->copies_file = gdmabuf_host_copies_file(vma);
	return 0;
}

/*
 * -EACCES if the mapping is read-only and @flags do not include GDMABUF_READ_ONLY.  A writable
 * mapping may be read as well, because mmap() requires files to be open for reading.
 *
 * -EFAULT if the file system tracks writes: a device's writes go unnoticed, and are lost, or worse.
 * Since 6.5 Linux refuses such pins itself.
 */
static int gdmabuf_host_check(const struct mapping *mapping, u32 flags)
{
	if (!mapping->is_memory || !(mapping->vm_flags & (VM_READ | VM_WRITE)))
		return -EFAULT;
	if (flags & GDMABUF_READ_ONLY)
		return 0;
	if (!(mapping->vm_flags & VM_WRITE))
		return -EACCES;
	return mapping->tracks_writes ? -EFAULT : 0;
}

/*
 * How to pin the pages of @mapping.  A read-only export is pinned for writing in three cases:
 * - The mapping is private and writable: the process's first write would replace the pages.
 * - The mapping is not readable: the kernel has no other way.
 * - The kernel would copy a file's pages.  The fault by which a pin for reading asks for the copy
 *   (FAULT_FLAG_UNSHARE) is handled as a read fault.  If the file's page is huge, the read fault
 *   maps the huge page again, the pin asks again, and so on until a fatal signal.  The fault of a
 *   pin for writing copies, and FOLL_FORCE permits that fault in a private mapping.  Neither the
 *   process nor the dma-buf may write the copies.
 */
static unsigned int gdmabuf_host_gup_flags(u32 flags, const struct mapping *mapping)
{
	const unsigned long shared = VM_SHARED | VM_READ;

	if (!(flags & GDMABUF_READ_ONLY))
		return FOLL_LONGTERM | FOLL_WRITE;
	if (mapping->copies_file)
		return FOLL_LONGTERM | FOLL_WRITE | FOLL_FORCE;
	if (mapping->vm_flags & VM_WRITE && (mapping->vm_flags & shared) != shared)
		return FOLL_LONGTERM | FOLL_WRITE;
	return FOLL_LONGTERM;
}

/*
 * Pins up to @nr pages at @address, of one mapping.  If the mapping changes after the check, the
 * kernel itself still pins for writing only what may be written, and nothing of devices.
 */
static long gdmabuf_host_pin_mapping(u32 flags, u64 address, u64 nr, struct page **batch)
{
	struct mm_struct *mm = current->mm;
	struct mapping mapping;
	unsigned int gup;
	long n;

	if (mmap_read_lock_killable(mm))
		return -EINTR;
	n = gdmabuf_host_look_up_locked(address, &mapping) ?: gdmabuf_host_check(&mapping, flags);
	if (!n) {
		nr = min(nr, (mapping.end - address) >> PAGE_SHIFT);
		gup = gdmabuf_host_gup_flags(flags, &mapping);
		n = gdmabuf_pin_user_pages_locked(address, nr, gup, batch);
	}
	mmap_read_unlock(mm);
	return n ? n : pin_user_pages_fast(address, nr, gup, batch);
}

/* Pins at least a page at @address, at most @left bytes, and at most a batch. */
static long gdmabuf_host_pin_some(u32 flags, u64 address, u64 left, struct page **batch)
{
	long n;

	if (fatal_signal_pending(current))
		return -EINTR;
	cond_resched();
	n = gdmabuf_host_pin_mapping(flags, address, min_t(u64, left >> PAGE_SHIFT, BATCH), batch);
	if (n > 0 || n == -ENOMEM || n == -EINTR || n == -EACCES)
		return n;
	return -EFAULT;
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

/* Makes room for more than @room runs. */
static int gdmabuf_host_grow_runs(struct gdmabuf_buffer *buffer, unsigned int *room)
{
	unsigned int more = max(2 * *room, 16U);
	/* __GFP_NOWARN: the size may exceed the limit of kvmalloc(), which warns. */
	struct gdmabuf_run *runs =
		kvmalloc_array(more, sizeof(*runs), GFP_KERNEL_ACCOUNT | __GFP_NOWARN);

	if (!runs)
		return -ENOMEM;
	if (buffer->runs) {
		memcpy(runs, buffer->runs, buffer->nr_runs * sizeof(*runs));
		kvfree(buffer->runs);
	}
	buffer->runs = runs;
	*room = more;
	return 0;
}

/* Appends @nr pages to the runs, which have room for @room.  On error the rest is unpinned. */
static int gdmabuf_host_append(struct gdmabuf_buffer *buffer, unsigned int *room,
			       struct page **pages, long nr)
{
	struct gdmabuf_run *last = buffer->nr_runs ? &buffer->runs[buffer->nr_runs - 1] : NULL;
	long i, n;

	for (i = 0; i < nr; i += n) {
		phys_addr_t start = page_to_phys(pages[i]);

		n = gdmabuf_host_count_in_row(&pages[i], nr - i);
		if (last && run_extend(last, start, (u64)n << PAGE_SHIFT))
			continue;
		if (buffer->nr_runs == *room && gdmabuf_host_grow_runs(buffer, room)) {
			unpin_user_pages(&pages[i], nr - i);
			return -ENOMEM;
		}
		last = &buffer->runs[buffer->nr_runs++];
		*last = (struct gdmabuf_run){ start, (u64)n << PAGE_SHIFT };
	}
	return 0;
}

static int gdmabuf_host_pin_pages(struct gdmabuf_buffer *buffer, u64 address, struct page **batch)
{
	unsigned int room = 0;
	u64 done = 0;
	long n;
	int err;

	while (done < buffer->length) {
		n = gdmabuf_host_pin_some(buffer->flags, address + done, buffer->length - done,
					  batch);
		err = n < 0 ? n : gdmabuf_host_append(buffer, &room, batch, n);
		if (err)
			return err;
		done += n << PAGE_SHIFT;
	}
	return 0;
}

static int gdmabuf_host_pin(struct gdmabuf_buffer *buffer, u64 address)
{
	struct page *few[16], **batch = few;
	u64 nr = buffer->length >> PAGE_SHIFT;
	int err = gdmabuf_host_charge(buffer);

	if (err)
		return err;
	buffer->cacheable = true;
	if (nr > ARRAY_SIZE(few))
		batch = kvmalloc_array(min_t(u64, BATCH, nr), sizeof(*batch), GFP_KERNEL_ACCOUNT);
	if (!batch)
		return -ENOMEM;
	err = gdmabuf_host_pin_pages(buffer, address, batch);
	if (batch != few)
		kvfree(batch);
	buffer->host.dirty = !err && !(buffer->flags & GDMABUF_READ_ONLY);
	return err;
}

static void gdmabuf_host_destroy(struct gdmabuf_buffer *buffer)
{
	unsigned int i;

	for (i = 0; i < buffer->nr_runs; i++) {
		unpin_user_page_range_dirty_lock(pfn_to_page(PHYS_PFN(buffer->runs[i].start)),
						 buffer->runs[i].length >> PAGE_SHIFT,
						 buffer->host.dirty);
		cond_resched();
	}
	kvfree(buffer->runs);
	gdmabuf_host_uncharge(buffer);
	kfree(buffer);
}

#define HOST_OPS                                                                       \
	.map_dma_buf = gdmabuf_sg_map_host, .unmap_dma_buf = gdmabuf_sg_unmap_host,    \
	.begin_cpu_access = gdmabuf_sg_begin_cpu_access_host,                          \
	.end_cpu_access = gdmabuf_sg_end_cpu_access_host, .mmap = gdmabuf_mmap_buffer, \
	.release = gdmabuf_buffer_release

/* The dma-buf core warns if an operation fails, so an impossible operation is left out. */
static const struct dma_buf_ops host_ops = { HOST_OPS };
static const struct dma_buf_ops host_vmap_ops = {
	HOST_OPS,
	.vmap = gdmabuf_vmap_host,
	.vunmap = gdmabuf_vunmap_host,
};

/* Kernel mappings by vmap() cannot be read-only. */
static const struct dma_buf_ops *gdmabuf_host_dma_buf_ops(const struct gdmabuf_buffer *buffer)
{
	if (buffer->flags & GDMABUF_READ_ONLY || buffer->length > GDMABUF_VMAP_MAX)
		return &host_ops;
	return &host_vmap_ops;
}

const struct gdmabuf_kind gdmabuf_host_kind = {
	.name = "gdmabuf-host",
	.flags = GDMABUF_READ_ONLY,
	.page_size = gdmabuf_host_page_size,
	.pin = gdmabuf_host_pin,
	.destroy = gdmabuf_host_destroy,
	.ops = gdmabuf_host_dma_buf_ops,
};
