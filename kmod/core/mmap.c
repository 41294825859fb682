// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Buffers for CPUs: mappings of processes, and of the kernel.  All is mapped at once, which costs a
 * fraction of a fault per page, and stays, because the pages do.
 */
#include <linux/io.h>
#include <linux/iosys-map.h>
#include <linux/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "compat.h"
#include "core.h"

/*
 * Maps each run by a single call: for a part of a VMA, x86 looks the memory type up for every page.
 */
static int gdmabuf_mmap_runs(const struct gdmabuf_buffer *buffer, struct vm_area_struct *vma)
{
	u64 offset = (u64)vma->vm_pgoff << PAGE_SHIFT;
	unsigned long at = vma->vm_start;
	struct gdmabuf_run_iter it;
	int err;

	run_first(&it, buffer->runs, offset, vma->vm_end - vma->vm_start);
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
static int gdmabuf_mmap_check(const struct gdmabuf_buffer *buffer, const struct vm_area_struct *vma)
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
	return buffer->flags & GDMABUF_READ_ONLY && vma->vm_flags & VM_WRITE ? -EACCES : 0;
}

/* CPUs never encrypt a BAR. */
static pgprot_t gdmabuf_mmap_bar_prot(pgprot_t prot)
{
	return pgprot_decrypted(pgprot_writecombine(prot));
}

int gdmabuf_mmap_buffer(struct dma_buf *dmabuf, struct vm_area_struct *vma)
{
	struct gdmabuf_buffer *buffer = dmabuf->priv;
	int err = gdmabuf_mmap_check(buffer, vma);

	if (err)
		return err;
	if (!buffer->cacheable)
		vma->vm_page_prot = gdmabuf_mmap_bar_prot(vma->vm_page_prot);
	vm_flags_set(vma, VM_IO | VM_PFNMAP | VM_DONTEXPAND | VM_DONTDUMP | buffer->kind->vm_flags);
	/* mprotect() must not make the mapping writable. */
	if (buffer->flags & GDMABUF_READ_ONLY)
		vm_flags_clear(vma, VM_MAYWRITE);
	return gdmabuf_mmap_runs(buffer, vma);
}

/* Several runs need vmap_pfn(), which some kernels lack. */
bool gdmabuf_vmap_gpu_works(const struct gdmabuf_buffer *buffer)
{
	return buffer->length <= GDMABUF_VMAP_MAX &&
	       (IS_ENABLED(CONFIG_VMAP_PFN) || buffer->nr_runs == 1);
}

static void *gdmabuf_vmap_runs(struct gdmabuf_buffer *buffer)
{
	unsigned int nr = buffer->length >> PAGE_SHIFT, i = 0;
	unsigned long *pfns = kvmalloc_array(nr, sizeof(*pfns), GFP_KERNEL_ACCOUNT);
	struct gdmabuf_run_iter it;
	void *address = NULL;
	u64 done;

	if (!pfns)
		return NULL;
	run_first(&it, buffer->runs, 0, buffer->length);
	for (; it.length; run_next(&it))
		for (done = 0; done < it.length; done += PAGE_SIZE)
			pfns[i++] = PHYS_PFN(it.start + done);
	if (IS_ENABLED(CONFIG_VMAP_PFN))
		address = vmap_pfn(pfns, nr, gdmabuf_mmap_bar_prot(PAGE_KERNEL));
	kvfree(pfns);
	return address;
}

/*
 * The mapping is of I/O memory, but is returned as a plain address: importers accept nothing else,
 * and x86 and arm64 access both alike.
 */
int gdmabuf_vmap_gpu(struct dma_buf *dmabuf, struct iosys_map *map)
{
	struct gdmabuf_buffer *buffer = dmabuf->priv;
	void *address;

	if (buffer->nr_runs == 1)
		address = memremap(buffer->runs->start, buffer->length, MEMREMAP_WC);
	else
		address = gdmabuf_vmap_runs(buffer);
	if (!address)
		return -ENOMEM;
	iosys_map_set_vaddr(map, address);
	return 0;
}

void gdmabuf_vunmap_gpu(struct dma_buf *dmabuf, struct iosys_map *map)
{
	const struct gdmabuf_buffer *buffer = dmabuf->priv;

	if (buffer->nr_runs == 1)
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
	run_first(&it, buffer->runs, 0, buffer->length);
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
