// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * The status page has a word for each slot.  Generations are even.  The lowest bit of a word is set
 * when the generation is over.  A slot without unused generations is never given out again, so no
 * word ever repeats a value of an earlier pin.
 */
#include <linux/module.h>
#include <linux/slab.h>

#include "compat.h"
#include "core.h"

static unsigned int first_generation = 2;
module_param(first_generation, uint, 0400);
MODULE_PARM_DESC(first_generation, "of every slot; even; for tests of what happens when they run out");

#define STATUS_SIZE PAGE_ALIGN(GDMABUF_SLOTS * sizeof(u32))
#define LAST_GENERATION (U32_MAX - 1)

int gdmabuf_slots_create(struct gdmabuf_slots *slots)
{
	unsigned int i;

	spin_lock_init(&slots->lock);
	slots->status = alloc_pages_exact(STATUS_SIZE,
					  GFP_KERNEL_ACCOUNT | __GFP_ZERO | __GFP_NOWARN);
	slots->generations = kvmalloc_array(GDMABUF_SLOTS, sizeof(u32), GFP_KERNEL_ACCOUNT);
	if (!slots->status || !slots->generations) {
		gdmabuf_slots_destroy(slots);
		return -ENOMEM;
	}
	for (i = 0; i < GDMABUF_SLOTS; i++)
		slots->generations[i] = first_generation & ~1U;
	return 0;
}

void gdmabuf_slots_destroy(struct gdmabuf_slots *slots)
{
	u32 *status, *generations;

	spin_lock(&slots->lock);
	status = slots->status;
	generations = slots->generations;
	slots->status = NULL;
	slots->generations = NULL;
	spin_unlock(&slots->lock);
	if (status)
		free_pages_exact(status, STATUS_SIZE);
	kvfree(generations);
}

int gdmabuf_slots_get(struct gdmabuf_slots *slots, u32 *slot, u32 *generation)
{
	unsigned long i;

	spin_lock(&slots->lock);
	i = find_first_zero_bit(slots->used, GDMABUF_SLOTS);
	if (i < GDMABUF_SLOTS) {
		__set_bit(i, slots->used);
		*slot = i;
		*generation = slots->generations[i];
		WRITE_ONCE(slots->status[i], *generation);
	}
	spin_unlock(&slots->lock);
	return i < GDMABUF_SLOTS ? 0 : -ENOSPC;
}

void gdmabuf_slots_put(struct gdmabuf_slots *slots, u32 slot)
{
	spin_lock(&slots->lock);
	if (!slots->status)
		goto unlock;
	WRITE_ONCE(slots->status[slot], slots->generations[slot] | 1);
	if (slots->generations[slot] < LAST_GENERATION) {
		slots->generations[slot] += 2;
		__clear_bit(slot, slots->used);
	}
unlock:
	spin_unlock(&slots->lock);
}

static void gdmabuf_slots_write_status(struct gdmabuf_slots *slots, u32 slot, u32 word)
{
	spin_lock(&slots->lock);
	if (slots->status) {
		/*
		 * Pairs with the acquire load of user space.  Comes after all stores for the pin.
		 */
		smp_store_release(&slots->status[slot], word);
	}
	spin_unlock(&slots->lock);
}

void gdmabuf_slots_live(struct gdmabuf_slots *slots, u32 slot, u32 generation)
{
	gdmabuf_slots_write_status(slots, slot, generation);
}

void gdmabuf_slots_stale(struct gdmabuf_slots *slots, u32 slot, u32 generation)
{
	gdmabuf_slots_write_status(slots, slot, generation | 1);
}

/*
 * vm_iomap_memory() is for device memory, and would map without encryption where RAM is encrypted.
 */
static int gdmabuf_slots_map(struct gdmabuf_slots *slots, struct vm_area_struct *vma)
{
	unsigned long pages = STATUS_SIZE >> PAGE_SHIFT, first = vma->vm_pgoff;

	if (first >= pages || vma_pages(vma) > pages - first)
		return -EINVAL;
	return remap_pfn_range(vma, vma->vm_start, PHYS_PFN(virt_to_phys(slots->status)) + first,
			       vma->vm_end - vma->vm_start, vma->vm_page_prot);
}

int gdmabuf_slots_mmap(struct gdmabuf_slots *slots, struct vm_area_struct *vma)
{
	if (vma->vm_flags & VM_WRITE)
		return -EACCES;
	if (!(vma->vm_flags & VM_SHARED))
		return -EINVAL;
	vm_flags_clear(vma, VM_MAYWRITE);
	vm_flags_set(vma, VM_DONTCOPY);
	return gdmabuf_slots_map(slots, vma);
}
