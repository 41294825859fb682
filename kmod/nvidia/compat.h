/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Differences between versions of nv-p2p.h, and the choice of the header. */
#ifndef GDMABUF_NVIDIA_COMPAT_H
#define GDMABUF_NVIDIA_COMPAT_H

#include <linux/types.h>

#ifdef NV_P2P_VENDOR
#include <nv-p2p.h>
#else
#include "nv-p2p.h"
#endif

/* The driver may be older than the header, so the table's own version decides. */
static inline bool table_is_cacheable(const struct nvidia_p2p_page_table *table)
{
#if NVIDIA_P2P_PAGE_TABLE_VERSION >= 0x00020000
	return NVIDIA_P2P_MAJOR_VERSION(table->version) >= 2 &&
	       table->flags & NVIDIA_P2P_PAGE_TABLE_FLAGS_CPU_CACHEABLE;
#else
	return false;
#endif
}

#endif
