// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Buffers for the CPU: mappings of processes, and of the kernel.
 *
 * What cannot be revoked is mapped at once, which costs a fraction of a fault for each page.
 * Revocable pages are mapped by faults, each for all pages around it: a mapping that is still
 * being made is found by no unmap_mapping_range().
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
#define REVOCABLE_VMAS 16

/* Pages of a run, of which the first is mapped. */
struct rest {
	struct mm_struct *mm;
	pgprot_t prot;			/* the first's, whose memory type x86 has looked up */
	unsigned long pfn;
};

static int insert_next(pte_t *pte, unsigned long address, void *data)
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
 * vmf_insert_pfn() of every page would look the memory type up every time: four times as long for
 * 16 MiB, touched by the page.  Nothing that a module may call from a fault inserts more than one:
 * remap_pfn_range() changes the VMA.  i915 does as is done here, in remap_io_mapping().
 */
static vm_fault_t insert_run(struct vm_area_struct *vma, unsigned long at, unsigned long pfn,
			     u64 length)
{
	struct rest rest = { .mm = vma->vm_mm, .pfn = pfn };
	vm_fault_t result = vmf_insert_pfn(vma, at, pfn);

	if (result == VM_FAULT_NOPAGE && length > PAGE_SIZE &&
	    apply_to_page_range(rest.mm, at, length, insert_next, &rest))
		return VM_FAULT_OOM;
	return result;
}

/* Addresses that one fault maps. */
struct around {
	unsigned long from, to;
};

static struct around fault_around(const struct gdmabuf_buffer *buffer, const struct vm_fault *vmf)
{
	const struct vm_area_struct *vma = vmf->vma;
	unsigned long base = vma->vm_start - ((u64)vma->vm_pgoff << PAGE_SHIFT);
	unsigned long start = ALIGN_DOWN(vmf->address, FAULT_AROUND);

	return (struct around){
		.from = max(start, vma->vm_start),
		.to = min3(start + FAULT_AROUND, vma->vm_end, base + (unsigned long)buffer->length),
	};
}

static int insert_nothing(pte_t *pte, unsigned long address, void *data)
{
	return 0;
}

static vm_fault_t insert_around(struct gdmabuf_buffer *buffer, struct vm_area_struct *vma,
				struct around around)
{
	unsigned long base = vma->vm_start - ((u64)vma->vm_pgoff << PAGE_SHIFT);
	unsigned long from = around.from, to = around.to;
	vm_fault_t result = VM_FAULT_NOPAGE;
	struct gdmabuf_run_iter it;

	run_first(&it, buffer->pin->runs, buffer->offset + (from - base), to - from);
	for (; it.length && result == VM_FAULT_NOPAGE; from += it.length, run_next(&it))
		result = insert_run(vma, from, PHYS_PFN(it.start), it.length);
	return result;
}

static vm_fault_t fault(struct vm_fault *vmf)
{
	struct gdmabuf_buffer *buffer = vmf->vma->vm_private_data;
	vm_fault_t result = VM_FAULT_SIGBUS;
	struct around around;

	if ((u64)vmf->pgoff << PAGE_SHIFT >= buffer->length)
		return VM_FAULT_SIGBUS;
	around = fault_around(buffer, vmf);
	/*
	 * The page table first: memory for it may take as long as the process's memory cgroup
	 * likes, and a revocation waits for the lock.
	 */
	if (apply_to_page_range(vmf->vma->vm_mm, around.from, around.to - around.from,
				insert_nothing, NULL))
		return VM_FAULT_OOM;
	down_read(&buffer->pin->revoke_sem);
	if (!test_bit(PIN_REVOKED, &buffer->pin->state))
		result = insert_around(buffer, vmf->vma, around);
	up_read(&buffer->pin->revoke_sem);
	return result;
}

/* VMAs of a pin are counted when they are made, split or moved, and when they end. */
static void vma_open(struct vm_area_struct *vma)
{
	struct gdmabuf_buffer *buffer = vma->vm_private_data;

	atomic_inc(&buffer->pin->nr_vmas);
}

static void vma_close(struct vm_area_struct *vma)
{
	struct gdmabuf_buffer *buffer = vma->vm_private_data;

	atomic_dec(&buffer->pin->nr_vmas);
}

/* The pages are the dma-buf's, whose file the mapping holds. */
static const struct vm_operations_struct vm_ops = {
	.open = vma_open,
	.close = vma_close,
	.fault = fault,
};

/*
 * A revocation takes all mappings with the GPU driver's lock held, and takes the longer the more
 * they are: so there is a limit.
 */
static bool take_vma(struct gdmabuf_buffer *buffer)
{
	atomic_t *nr_vmas = &buffer->pin->nr_vmas;

	if (atomic_inc_return(nr_vmas) <= REVOCABLE_VMAS || !(buffer->flags & GDMABUF_REVOCABLE))
		return true;
	atomic_dec(nr_vmas);
	return false;
}

/* A run at once: of a part of the VMA, x86 looks the memory type up for every page. */
static int map_now(struct gdmabuf_buffer *buffer, struct vm_area_struct *vma)
{
	u64 offset = buffer->offset + ((u64)vma->vm_pgoff << PAGE_SHIFT);
	unsigned long at = vma->vm_start;
	struct gdmabuf_run_iter it;
	int err;

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
static int check_vma(const struct gdmabuf_buffer *buffer, const struct vm_area_struct *vma)
{
	/*
	 * No copy on write: private mappings are those that are not shared but can be made
	 * writable.
	 */
	if ((vma->vm_flags & (VM_SHARED | VM_MAYWRITE)) == VM_MAYWRITE)
		return -EINVAL;
	/*
	 * The descriptor's O_RDONLY does not see to it: a driver that imported the buffer maps it
	 * with the rights of its own file, by dma_buf_mmap().
	 */
	if (buffer->flags & GDMABUF_READ_ONLY && vma->vm_flags & VM_WRITE)
		return -EACCES;
	return test_bit(PIN_REVOKED, &buffer->pin->state) ? -ENODEV : 0;
}

/*
 * A child of a process has its mappings of host memory, as of any memory that is shared; not those
 * of GPU memory, whose driver's own are not inherited either.
 */
static void set_flags(const struct gdmabuf_buffer *buffer, struct vm_area_struct *vma)
{
	vm_flags_set(vma, VM_IO | VM_PFNMAP | VM_DONTEXPAND | VM_DONTDUMP);
	if (buffer->pin->ops->kind == GDMABUF_KIND_GPU)
		vm_flags_set(vma, VM_DONTCOPY);
	/* Nor by mprotect(). */
	if (buffer->flags & GDMABUF_READ_ONLY)
		vm_flags_clear(vma, VM_MAYWRITE);
}

int gdmabuf_buffer_mmap(struct dma_buf *dmabuf, struct vm_area_struct *vma)
{
	struct gdmabuf_buffer *buffer = dmabuf->priv;
	int err = check_vma(buffer, vma);

	if (err)
		return err;
	if (!take_vma(buffer))
		return -ENOMEM;
	if (!buffer->pin->cacheable)
		vma->vm_page_prot = pgprot_writecombine(vma->vm_page_prot);
	set_flags(buffer, vma);
	vma->vm_ops = &vm_ops;
	vma->vm_private_data = buffer;
	err = buffer->flags & GDMABUF_REVOCABLE ? 0 : map_now(buffer, vma);
	if (err)
		vma_close(vma);
	return err;
}

/* Several runs in a row need a function that not all kernels have. */
bool gdmabuf_vmap_gpu_works(const struct gdmabuf_pin *pin, u64 offset, u64 length)
{
	return length <= GDMABUF_VMAP_MAX &&
	       (IS_ENABLED(CONFIG_VMAP_PFN) || runs_count(pin->runs, offset, length, U64_MAX) == 1);
}

static void *vmap_runs(struct gdmabuf_buffer *buffer)
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
		address = vmap_pfn(pfns, nr, pgprot_writecombine(PAGE_KERNEL));
	kvfree(pfns);
	return address;
}

static bool is_one_run(const struct gdmabuf_buffer *buffer)
{
	return runs_count(buffer->pin->runs, buffer->offset, buffer->length, U64_MAX) == 1;
}

/*
 * Of I/O memory, but as an address: importers keep that alone of what they are given, and x86 and
 * arm64 read and write it like memory.
 */
int gdmabuf_vmap_gpu(struct dma_buf *dmabuf, struct iosys_map *map)
{
	struct gdmabuf_buffer *buffer = dmabuf->priv;
	struct gdmabuf_run_iter it;
	void *address;

	run_first(&it, buffer->pin->runs, buffer->offset, buffer->length);
	if (is_one_run(buffer))
		address = memremap(it.start, buffer->length, MEMREMAP_WC);
	else
		address = vmap_runs(buffer);
	if (!address)
		return -ENOMEM;
	iosys_map_set_vaddr(map, address);
	return 0;
}

void gdmabuf_vunmap_gpu(struct dma_buf *dmabuf, struct iosys_map *map)
{
	if (is_one_run(dmabuf->priv))
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
