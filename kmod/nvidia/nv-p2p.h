/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * The functions nvidia_p2p_*() of nvidia.ko that gdmabuf_nvidia calls.  Names and types are those
 * of NVIDIA's nv-p2p.h.  Functions return 0 or -errno.
 *
 * With CONFIG_MODVERSIONS the version of a symbol is computed from its type after preprocessing,
 * with all structs spelt out: tags, names and order of members, array sizes as written ([3] differs
 * from [1 + 2]), typedefs by name (uint32_t differs from u32).  Do not change any of these.
 * Comments, names of parameters, and declarations without use in a symbol's type do not count.
 * tests/kmod/nvidia-symbols compares the versions.
 */
#ifndef NV_P2P_H
#define NV_P2P_H

#include <linux/types.h>

/*
 * The layout of the page table: 1 up to driver 575, 2 from 580 on.  A driver has a single layout,
 * which the symbols' versions reveal, too.
 */
#ifndef NV_P2P_LAYOUT
#define NV_P2P_LAYOUT 1
#endif

#if NV_P2P_LAYOUT == 1
#define NVIDIA_P2P_PAGE_TABLE_VERSION 0x00010002
#elif NV_P2P_LAYOUT == 2
#define NVIDIA_P2P_PAGE_TABLE_VERSION 0x00020000
#else
#error "NV_P2P_LAYOUT is 1 or 2"
#endif

/*
 * A table is readable if the major version equals the header's, and the minor version is not lower.
 */
#define NVIDIA_P2P_MAJOR_VERSION(v) ((v) >> 16)
#define NVIDIA_P2P_MINOR_VERSION(v) ((v) & 0xffff)

#define NVIDIA_P2P_PAGE_TABLE_VERSION_COMPATIBLE(p)			\
	(NVIDIA_P2P_MAJOR_VERSION((p)->version) ==			\
		 NVIDIA_P2P_MAJOR_VERSION(NVIDIA_P2P_PAGE_TABLE_VERSION) && \
	 NVIDIA_P2P_MINOR_VERSION((p)->version) >=			\
		 NVIDIA_P2P_MINOR_VERSION(NVIDIA_P2P_PAGE_TABLE_VERSION))

#define NVIDIA_P2P_GPU_UUID_LEN 16

/* For nvidia_p2p_page_table.page_size. */
enum nvidia_p2p_page_size_type {
	NVIDIA_P2P_PAGE_SIZE_4KB,
	NVIDIA_P2P_PAGE_SIZE_64KB,
	NVIDIA_P2P_PAGE_SIZE_128KB,
};

struct nvidia_p2p_page {
	uint64_t physical_address;
	union nvidia_p2p_request_registers {
		struct {
			uint32_t wreqmb_h;
			uint32_t rreqmb_h;
			uint32_t rreqmb_0;
			uint32_t reserved[3];
		} fermi;
	} registers;
};

/* Allocated, filled in and owned by the driver. */
struct nvidia_p2p_page_table {
	uint32_t version;		/* the driver's NVIDIA_P2P_PAGE_TABLE_VERSION */
	uint32_t page_size;		/* enum nvidia_p2p_page_size_type */
	struct nvidia_p2p_page **pages;
	uint32_t entries;
	uint8_t *gpu_uuid;		/* NVIDIA_P2P_GPU_UUID_LEN bytes */
#if NV_P2P_LAYOUT == 2
	uint32_t flags;			/* NVIDIA_P2P_PAGE_TABLE_FLAGS_* */
#endif
};

/* Memory of a coherent GPU, not a BAR. */
#if NV_P2P_LAYOUT == 2
#define NVIDIA_P2P_PAGE_TABLE_FLAGS_CPU_CACHEABLE 0x1
#endif

/* Flags of nvidia_p2p_get_pages_persistent().  Before driver 570 any flag is -EINVAL. */
#define NVIDIA_P2P_FLAGS_DEFAULT 0
#define NVIDIA_P2P_FLAGS_FORCE_BAR1_MAPPING 1

/*
 * Pins GPU memory of the calling process, aligned to 64 KiB, until put_pages_persistent() in any
 * process, even if the memory is freed.  Both sleep.
 */
int nvidia_p2p_get_pages_persistent(uint64_t virtual_address, uint64_t length,
				    struct nvidia_p2p_page_table **page_table, uint32_t flags);
int nvidia_p2p_put_pages_persistent(uint64_t virtual_address,
				    struct nvidia_p2p_page_table *page_table, uint32_t flags);

#endif
