/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Differences between kernels, as found by the probes (../probes).  No other file of the core has
 * an #ifdef for a kernel.
 */
#ifndef GDMABUF_COMPAT_H
#define GDMABUF_COMPAT_H

#include <linux/dma-buf.h>
#include <linux/mm.h>
#include "probes.h"

#ifndef GDMABUF_HAS_VM_FLAGS_SET
static inline void vm_flags_set(struct vm_area_struct *vma, vm_flags_t flags)
{
	vma->vm_flags |= flags;
}

static inline void vm_flags_clear(struct vm_area_struct *vma, vm_flags_t flags)
{
	vma->vm_flags &= ~flags;
}
#endif

/*
 * Before 6.5 Linux pins pages for writing although their file system would not learn of the writes.
 * There the pin happens under the lock of the check, so that the mapping is the one that was
 * checked.  0: call pin_user_pages_fast() without the lock.
 */
static inline long gdmabuf_pin_user_pages_locked(unsigned long address, unsigned long nr,
						 unsigned int flags, struct page **pages)
{
#ifdef GDMABUF_HAS_GUP_KEEPS_FILES
	return 0;
#else
	return pin_user_pages(address, nr, flags, pages, NULL);
#endif
}

#ifdef GDMABUF_HAS_GUP_UNSHARES_FILES
#define GDMABUF_GUP_UNSHARES_FILES 1
#else
#define GDMABUF_GUP_UNSHARES_FILES 0
#endif

#ifdef GDMABUF_HAS_IMPORT_NS_IDENTIFIER
#define GDMABUF_IMPORT_NS(name) MODULE_IMPORT_NS(name)
#else
#define GDMABUF_IMPORT_NS(name) MODULE_IMPORT_NS(#name)
#endif

#endif
