/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Differences between kernels, as found by the probes (../probes).  No other file of the core has
 * an #ifdef for a kernel.
 */
#ifndef GDMABUF_COMPAT_H
#define GDMABUF_COMPAT_H

#include <linux/dma-buf.h>
#include <linux/mm.h>
#include <linux/shrinker.h>
#include <linux/slab.h>
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

#ifdef GDMABUF_HAS_GUP_KEEPS_FILES
#define GDMABUF_GUP_KEEPS_FILES 1
#else
#define GDMABUF_GUP_KEEPS_FILES 0
#endif

#ifdef GDMABUF_HAS_GUP_UNSHARES_FILES
#define GDMABUF_GUP_UNSHARES_FILES 1
#else
#define GDMABUF_GUP_UNSHARES_FILES 0
#endif

/* NULL: no memory. */
static inline struct shrinker *
gdmabuf_shrinker_register(unsigned long (*count)(struct shrinker *, struct shrink_control *),
			  unsigned long (*scan)(struct shrinker *, struct shrink_control *))
{
#ifdef GDMABUF_HAS_SHRINKER_ALLOC
	struct shrinker *shrinker = shrinker_alloc(0, "gdmabuf");
#else
	struct shrinker *shrinker = kzalloc(sizeof(*shrinker), GFP_KERNEL);
#endif

	if (!shrinker)
		return NULL;
	shrinker->count_objects = count;
	shrinker->scan_objects = scan;
	shrinker->seeks = DEFAULT_SEEKS;
#ifdef GDMABUF_HAS_SHRINKER_ALLOC
	shrinker_register(shrinker);
#else
	if (register_shrinker(shrinker, "gdmabuf")) {
		kfree(shrinker);
		return NULL;
	}
#endif
	return shrinker;
}

static inline void gdmabuf_shrinker_unregister(struct shrinker *shrinker)
{
#ifdef GDMABUF_HAS_SHRINKER_ALLOC
	shrinker_free(shrinker);
#else
	unregister_shrinker(shrinker);
	kfree(shrinker);
#endif
}

#ifdef GDMABUF_HAS_IMPORT_NS_IDENTIFIER
#define GDMABUF_IMPORT_NS(name) MODULE_IMPORT_NS(name)
#else
#define GDMABUF_IMPORT_NS(name) MODULE_IMPORT_NS(#name)
#endif

#endif
