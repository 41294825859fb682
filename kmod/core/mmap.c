// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Buffers for CPUs: mappings of processes, and of the kernel.
 *
 * Memory that is not revocable is mapped at once, which costs a fraction of a fault per page.
 * Revocable memory is mapped by faults, each for all pages around the fault, because
 * unmap_mapping_range() does not find a mapping that mmap() has not finished.
 */
#include <linux/io.h>
#include <linux/iosys-map.h>
#include <linux/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "compat.h"
#include "core.h"

#define FAULT_AROUND SZ_2M

/* The pages of a run, after vmf_insert_pfn() has mapped the first. */
struct rest {
	struct mm_struct *mm;
	pgprot_t prot;			/* of the first page; x86 has looked up the memory type */
	unsigned long pfn;
};

static int gdmabuf_mmap_insert_next(pte_t *pte, unsigned long address, void *data)
{
	struct rest *rest = data;
	pte_t old = ptep_get(pte);

	if (!pgprot_val(rest->prot))
		rest->prot = pte_pgprot(old);
	if (pte_none(old))
		set_pte_at(rest->mm, address, pte, pfn_pte(rest->pfn, rest->prot));
	rest->pfn++;
	return 0;
}

/*
 * Calling vmf_insert_pfn() for every page looks the memory type up every time, and takes four times
 * as long for 16 MiB touched page by page.  No function that modules may call in a fault inserts
 * several pages: remap_pfn_range() changes the VMA.  i915's remap_io_mapping() inserts pages as is
 * done here.
 */
static vm_fault_t gdmabuf_mmap_insert_run(struct vm_area_struct *vma, unsigned long at,
					  unsigned long pfn, u64 length)
{
	struct rest rest = { .mm = vma->vm_mm, .pfn = pfn };
	vm_fault_t result = vmf_insert_pfn(vma, at, pfn);

	if (result == VM_FAULT_NOPAGE && length > PAGE_SIZE &&
	    apply_to_page_range(rest.mm, at, length, gdmabuf_mmap_insert_next, &rest))
		return VM_FAULT_OOM;
	return result;
}

/* The addresses that a fault maps. */
struct around {
	unsigned long from, to;
};

static struct around gdmabuf_mmap_fault_around(const struct gdmabuf_buffer *buffer,
					       const struct vm_fault *vmf)
{
	const struct vm_area_struct *vma = vmf->vma;
	unsigned long base = vma->vm_start - ((u64)vma->vm_pgoff << PAGE_SHIFT);
	unsigned long start = ALIGN_DOWN(vmf->address, FAULT_AROUND);

	return (struct around){
		.from = max(start, vma->vm_start),
		.to = min3(start + FAULT_AROUND, vma->vm_end, base + (unsigned long)buffer->length),
	};
}

static int gdmabuf_mmap_insert_nothing(pte_t *pte, unsigned long address, void *data)
{
	return 0;
}

static vm_fault_t gdmabuf_mmap_insert_around(struct gdmabuf_buffer *buffer,
					     struct vm_area_struct *vma, struct around around)
{
	unsigned long base = vma->vm_start - ((u64)vma->vm_pgoff << PAGE_SHIFT);
	unsigned long from = around.from, to = around.to;
	vm_fault_t result = VM_FAULT_NOPAGE;
	struct gdmabuf_run_iter it;

	run_first(&it, buffer->pin->runs, buffer->offset + (from - base), to - from);
	for (; it.length && result == VM_FAULT_NOPAGE; from += it.length, run_next(&it))
		result = gdmabuf_mmap_insert_run(vma, from, PHYS_PFN(it.start), it.length);
	return result;
}

static vm_fault_t gdmabuf_mmap_buffer_fault(struct gdmabuf_buffer *buffer, struct vm_fault *vmf)
{
	vm_fault_t result = VM_FAULT_SIGBUS;
	struct around around;

	if ((u64)vmf->pgoff << PAGE_SHIFT >= buffer->length)
		return VM_FAULT_SIGBUS;
	around = gdmabuf_mmap_fault_around(buffer, vmf);
	/*
	 * Page tables are allocated before the lock is taken: the process's memory cgroup may delay
	 * an allocation for long, and a revocation waits for the lock.
	 */
	if (apply_to_page_range(vmf->vma->vm_mm, around.from, around.to - around.from,
				gdmabuf_mmap_insert_nothing, NULL))
		return VM_FAULT_OOM;
	down_read(&buffer->pin->revoke_sem);
	if (!test_bit(PIN_REVOKED, &buffer->pin->state))
		result = gdmabuf_mmap_insert_around(buffer, vmf->vma, around);
	up_read(&buffer->pin->revoke_sem);
	return result;
}

static vm_fault_t gdmabuf_mmap_held_fault(struct vm_fault *vmf)
{
	return gdmabuf_mmap_buffer_fault(vmf->vma->vm_private_data, vmf);
}

/* For pages held by the dma-buf, whose file the mapping refers to. */
static const struct vm_operations_struct held_vm_ops = {
	.fault = gdmabuf_mmap_held_fault,
};

/*
 * A mapping of revocable memory: a VMA, or the VMAs after splits.  A free zaps all mappings with
 * the GPU driver's lock held, in a time that grows with the bytes and with the number of VMAs.  So
 * the mapped bytes of a user's memory are limited, and a VMA counts as MAPPING_MIN at least.  A
 * partial munmap() returns nothing before the last VMA is gone.  Once the pages are revoked,
 * nothing counts.
 */
struct mapping {
	struct gdmabuf_buffer *buffer;
	enum gdmabuf_mapper mapper;
	atomic_t vmas;
	u64 charged;		/* for the first VMA */
};

#define MAPPING_MIN FAULT_AROUND

static bool gdmabuf_mmap_is_revoked(const struct gdmabuf_pin *pin)
{
	return test_bit(PIN_REVOKED, &pin->state);
}

/* -ENOMEM: the limit is reached. */
static int gdmabuf_mapping_charge(struct mapping *mapping)
{
	struct gdmabuf_pin *pin = mapping->buffer->pin;
	int err = 0;

	mutex_lock(&pin->lock);
	if (gdmabuf_mmap_is_revoked(pin))
		goto unlock;
	err = gdmabuf_quota_charge_mapping(pin->quota, mapping->mapper, mapping->charged);
	if (!err)
		pin->mapped_bytes[mapping->mapper] += mapping->charged;
unlock:
	mutex_unlock(&pin->lock);
	return err;
}

/* Adds @bytes without a limit, or subtracts. */
static void gdmabuf_mapping_recharge(struct mapping *mapping, s64 bytes)
{
	struct gdmabuf_pin *pin = mapping->buffer->pin;

	mutex_lock(&pin->lock);
	if (!gdmabuf_mmap_is_revoked(pin)) {
		gdmabuf_quota_add_mapping(pin->quota, mapping->mapper, bytes);
		pin->mapped_bytes[mapping->mapper] += bytes;
	}
	mutex_unlock(&pin->lock);
}

static struct mapping *gdmabuf_mapping_create(struct gdmabuf_buffer *buffer, u64 length)
{
	struct mapping *mapping = kzalloc(sizeof(*mapping), GFP_KERNEL_ACCOUNT);

	if (!mapping)
		return NULL;
	mapping->buffer = buffer;
	mapping->mapper = gdmabuf_quota_mapper(buffer->pin->quota);
	mapping->charged = ALIGN(length, MAPPING_MIN);
	atomic_set(&mapping->vmas, 1);
	if (gdmabuf_mapping_charge(mapping)) {
		kfree(mapping);
		return NULL;
	}
	gdmabuf_buffer_add_mapping(buffer);
	return mapping;
}

/* A split, or the new place of an mremap().  Neither can be refused here. */
static void gdmabuf_mapping_open(struct vm_area_struct *vma)
{
	struct mapping *mapping = vma->vm_private_data;

	atomic_inc(&mapping->vmas);
	gdmabuf_mapping_recharge(mapping, MAPPING_MIN);
}

static void gdmabuf_mapping_close(struct vm_area_struct *vma)
{
	struct mapping *mapping = vma->vm_private_data;

	if (!atomic_dec_and_test(&mapping->vmas)) {
		gdmabuf_mapping_recharge(mapping, -(s64)MAPPING_MIN);
		return;
	}
	gdmabuf_buffer_del_mapping(mapping->buffer);
	gdmabuf_mapping_recharge(mapping, -(s64)mapping->charged);
	kfree(mapping);
}

static int gdmabuf_mapping_may_split(struct vm_area_struct *vma, unsigned long address)
{
	const struct mapping *mapping = vma->vm_private_data;
	const struct gdmabuf_pin *pin = mapping->buffer->pin;

	if (gdmabuf_mmap_is_revoked(pin) ||
	    gdmabuf_quota_has_room(pin->quota, mapping->mapper, MAPPING_MIN))
		return 0;
	return -ENOMEM;
}

static vm_fault_t gdmabuf_mapping_fault(struct vm_fault *vmf)
{
	struct mapping *mapping = vmf->vma->vm_private_data;

	return gdmabuf_mmap_buffer_fault(mapping->buffer, vmf);
}

static const struct vm_operations_struct mapping_vm_ops = {
	.open = gdmabuf_mapping_open,
	.close = gdmabuf_mapping_close,
	.may_split = gdmabuf_mapping_may_split,
	.fault = gdmabuf_mapping_fault,
};

static int gdmabuf_mmap_map_by_faults(struct gdmabuf_buffer *buffer, struct vm_area_struct *vma)
{
	struct mapping *mapping = gdmabuf_mapping_create(buffer, vma->vm_end - vma->vm_start);

	if (!mapping)
		return -ENOMEM;
	vma->vm_ops = &mapping_vm_ops;
	vma->vm_private_data = mapping;
	return 0;
}

/*
 * Maps each run by a single call: for a part of a VMA, x86 looks the memory type up for every page.
 */
static int gdmabuf_mmap_map_now(struct gdmabuf_buffer *buffer, struct vm_area_struct *vma)
{
	u64 offset = buffer->offset + ((u64)vma->vm_pgoff << PAGE_SHIFT);
	unsigned long at = vma->vm_start;
	struct gdmabuf_run_iter it;
	int err;

	vma->vm_ops = &held_vm_ops;
	vma->vm_private_data = buffer;
	run_first(&it, buffer->pin->runs, offset, vma->vm_end - vma->vm_start);
	for (; it.length; at += it.length, run_next(&it)) {
		err = remap_pfn_range(vma, at, PHYS_PFN(it.start), it.length, vma->vm_page_prot);
		if (err)
			return err;
		if (fatal_signal_pending(current))
			return -EINTR;
		cond_resched();
	}
	return 0;
}

/* The dma-buf core has checked that the range is within the buffer. */
static int gdmabuf_mmap_check_vma(const struct gdmabuf_buffer *buffer,
				  const struct vm_area_struct *vma)
{
	/*
	 * Private mappings, which copy on write, are impossible.  A private mapping is not shared,
	 * and is or can be made writable.
	 */
	if ((vma->vm_flags & (VM_SHARED | VM_MAYWRITE)) == VM_MAYWRITE)
		return -EINVAL;
	/*
	 * The descriptor's O_RDONLY is not enough: a driver that imports the buffer maps by
	 * dma_buf_mmap(), with the rights of the driver's own file.
	 */
	if (buffer->flags & GDMABUF_READ_ONLY && vma->vm_flags & VM_WRITE)
		return -EACCES;
	return test_bit(PIN_REVOKED, &buffer->pin->state) ? -ENODEV : 0;
}

/*
 * fork() copies mappings of host memory, as of all shared memory, but not mappings of GPU memory,
 * which the GPU driver does not pass on to children either.
 */
static void gdmabuf_mmap_set_flags(const struct gdmabuf_buffer *buffer, struct vm_area_struct *vma)
{
	vm_flags_set(vma, VM_IO | VM_PFNMAP | VM_DONTEXPAND | VM_DONTDUMP);
	if (buffer->pin->ops->kind == GDMABUF_KIND_GPU)
		vm_flags_set(vma, VM_DONTCOPY);
	/* mprotect() must not make the mapping writable. */
	if (buffer->flags & GDMABUF_READ_ONLY)
		vm_flags_clear(vma, VM_MAYWRITE);
}

/* CPUs never encrypt a BAR. */
static pgprot_t gdmabuf_mmap_bar_prot(pgprot_t prot)
{
	return pgprot_decrypted(pgprot_writecombine(prot));
}

int gdmabuf_buffer_mmap(struct dma_buf *dmabuf, struct vm_area_struct *vma)
{
	struct gdmabuf_buffer *buffer = dmabuf->priv;
	int err = gdmabuf_mmap_check_vma(buffer, vma);

	if (err)
		return err;
	if (!buffer->pin->cacheable)
		vma->vm_page_prot = gdmabuf_mmap_bar_prot(vma->vm_page_prot);
	gdmabuf_mmap_set_flags(buffer, vma);
	if (buffer->flags & GDMABUF_REVOCABLE)
		return gdmabuf_mmap_map_by_faults(buffer, vma);
	return gdmabuf_mmap_map_now(buffer, vma);
}

/* Several runs need vmap_pfn(), which some kernels lack. */
bool gdmabuf_vmap_gpu_works(const struct gdmabuf_pin *pin, u64 offset, u64 length)
{
	return length <= GDMABUF_VMAP_MAX &&
	       (IS_ENABLED(CONFIG_VMAP_PFN) || runs_count(pin->runs, offset, length, U64_MAX) == 1);
}

static void *gdmabuf_mmap_vmap_runs(struct gdmabuf_buffer *buffer)
{
	unsigned int nr = buffer->length >> PAGE_SHIFT, i = 0;
	unsigned long *pfns = kvmalloc_array(nr, sizeof(*pfns), GFP_KERNEL_ACCOUNT);
	struct gdmabuf_run_iter it;
	void *address = NULL;
	u64 done;

	if (!pfns)
		return NULL;
	run_first(&it, buffer->pin->runs, buffer->offset, buffer->length);
	for (; it.length; run_next(&it))
		for (done = 0; done < it.length; done += PAGE_SIZE)
			pfns[i++] = PHYS_PFN(it.start + done);
	if (IS_ENABLED(CONFIG_VMAP_PFN))
		address = vmap_pfn(pfns, nr, gdmabuf_mmap_bar_prot(PAGE_KERNEL));
	kvfree(pfns);
	return address;
}

static bool gdmabuf_mmap_is_one_run(const struct gdmabuf_buffer *buffer)
{
	return runs_count(buffer->pin->runs, buffer->offset, buffer->length, U64_MAX) == 1;
}

/*
 * The mapping is of I/O memory, but is returned as a plain address: importers accept nothing else,
 * and x86 and arm64 access both alike.
 */
int gdmabuf_vmap_gpu(struct dma_buf *dmabuf, struct iosys_map *map)
{
	struct gdmabuf_buffer *buffer = dmabuf->priv;
	struct gdmabuf_run_iter it;
	void *address;

	run_first(&it, buffer->pin->runs, buffer->offset, buffer->length);
	if (gdmabuf_mmap_is_one_run(buffer))
		address = memremap(it.start, buffer->length, MEMREMAP_WC);
	else
		address = gdmabuf_mmap_vmap_runs(buffer);
	if (!address)
		return -ENOMEM;
	iosys_map_set_vaddr(map, address);
	return 0;
}

void gdmabuf_vunmap_gpu(struct dma_buf *dmabuf, struct iosys_map *map)
{
	if (gdmabuf_mmap_is_one_run(dmabuf->priv))
		memunmap(map->vaddr);
	else
		vunmap(map->vaddr);
}

int gdmabuf_vmap_host(struct dma_buf *dmabuf, struct iosys_map *map)
{
	struct gdmabuf_buffer *buffer = dmabuf->priv;
	unsigned int nr = buffer->length >> PAGE_SHIFT, i = 0;
	struct page **pages = kvmalloc_array(nr, sizeof(*pages), GFP_KERNEL_ACCOUNT);
	struct gdmabuf_run_iter it;
	void *address;
	u64 done;

	if (!pages)
		return -ENOMEM;
	run_first(&it, buffer->pin->runs, buffer->offset, buffer->length);
	for (; it.length; run_next(&it))
		for (done = 0; done < it.length; done += PAGE_SIZE)
			pages[i++] = pfn_to_page(PHYS_PFN(it.start + done));
	address = vmap(pages, nr, VM_MAP, PAGE_KERNEL);
	kvfree(pages);
	if (!address)
		return -ENOMEM;
	iosys_map_set_vaddr(map, address);
	return 0;
}

void gdmabuf_vunmap_host(struct dma_buf *dmabuf, struct iosys_map *map)
{
	vunmap(map->vaddr);
}
