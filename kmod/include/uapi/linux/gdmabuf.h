/* SPDX-License-Identifier: (GPL-2.0 WITH Linux-syscall-note) OR MIT */
/*
 * gdmabuf - GPU memory and host memory of a process as dma-bufs
 *
 * open("/dev/gdmabuf", O_RDWR | O_CLOEXEC) makes a context, which belongs to the process
 * that opened it, and to what it executes then: other processes, a child among them, and
 * the same one after execve() get EACCES from every call on it.
 *
 * A range that is exported becomes a pin: pages that stay where they are.  It has a slot in
 * the context, and a generation there.  Each export makes a dma-buf on a pin, of all of
 * it or of a part; the dma-buf may be given to any process, and outlives the context.
 *
 * Every ioctl takes a struct whose first word is its size.  A larger one than the kernel
 * knows is taken if what is beyond is zero, a smaller one if it has all that was there at
 * first.  Lengths and addresses are bytes.  The same layout serves 32-bit processes.
 *
 * errno, of every ioctl:
 *   ENOTTY      no such ioctl
 *   E2BIG       bytes that this kernel does not know are not zero; more than a page
 *   EOPNOTSUPP  a flag, mode or reserved field that this kernel does not support, or no
 *               provider of GPU memory is loaded
 *   EINVAL      a range that is empty, wraps around or is not of whole pages; a size that
 *               is too small
 *   EFAULT      a bad pointer; or the range is not, or not all, memory of this process
 *               that can be pinned
 *   EACCES      the context is another process's; or the range is mapped read-only and
 *               GDMABUF_READ_ONLY is not set
 *   EDQUOT      the user has no quota of GPU memory left: all counts that the driver has pinned,
 *               the page that is watched and what others close last among it
 *   ENOSPC      no room left in the GPU's BAR, or in the context's table of slots, with
 *               all idle pins given up
 *   ENOMEM      no memory; or RLIMIT_MEMLOCK is reached, by all that the user has pinned by
 *               any process, which CAP_IPC_LOCK lifts.  A huge page (any large folio) counts
 *               whole if a part of it is pinned, and once, however many pins have parts of it
 *   EMFILE      no descriptor left
 *   EINTR       a fatal signal came
 *   EAGAIN      the range was remapped by another thread meanwhile, again and again
 *   ENOENT      no such slot, or another generation in it
 *   EBUSY       see GDMABUF_DROP
 *   EBADF       not a dma-buf of gdmabuf
 *   ENODEV      the device is gone; or no such device
 * Whatever fails leaves nothing pinned, and no descriptor.
 *
 * Where room is missing, idle pins are given up, least recently exported first: those of the
 * context, then of other contexts of the same user, then, if the BAR is full, of another user as
 * long as that has more GPU memory pinned than the caller's user would have with the export.  A
 * revocable pin of another process is not given up, since only its owner can release it.  Where a
 * limit of the user is reached (EDQUOT, ENOMEM), idle pins are given up if they are enough for the
 * export, else none.
 *
 * If the last reference to a dma-buf is dropped by another process than the owner, the driver has
 * the owner release the GPU memory: when a thread of it next returns to user mode, where the
 * kernel can call threads (task_work_add()), else at its next ioctl, when it closes a context, or frees the memory.
 */
#ifndef _UAPI_LINUX_GDMABUF_H
#define _UAPI_LINUX_GDMABUF_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define GDMABUF_TYPE	'G'

enum {
	GDMABUF_CMD_BASE = 0x80,
	GDMABUF_CMD_CAPS = GDMABUF_CMD_BASE,
	GDMABUF_CMD_EXPORT_GPU,
	GDMABUF_CMD_EXPORT_HOST,
	GDMABUF_CMD_QUERY,
	GDMABUF_CMD_DROP,
	GDMABUF_CMD_BUDGET,
	GDMABUF_CMD_STATS,
	GDMABUF_CMD_DIAG,
};

/**
 * enum gdmabuf_cap - what this kernel can do, bits
 * @GDMABUF_CAP_HOST: GDMABUF_EXPORT_HOST works
 * @GDMABUF_CAP_GPU: GDMABUF_EXPORT_GPU has a provider
 * @GDMABUF_CAP_P2PDMA: the kernel knows the distance between PCI devices
 */
enum gdmabuf_cap {
	GDMABUF_CAP_HOST		= 1 << 0,
	GDMABUF_CAP_GPU			= 1 << 1,
	GDMABUF_CAP_P2PDMA		= 1 << 2,
};

/**
 * struct gdmabuf_caps - ioctl(GDMABUF_CAPS)
 * @size: sizeof(struct gdmabuf_caps)
 * @flags: 0
 * @out_caps: enum gdmabuf_cap
 * @out_host_page_size: what ranges of host memory are a multiple of
 * @out_gpu_page_size: what ranges of GPU memory are a multiple of; 0 without a provider
 * @out_slots: in the status page, which is @out_slots * 4 bytes, and more to a full page
 * @out_provider: name of the provider of GPU memory, or empty
 */
struct gdmabuf_caps {
	__u32 size;
	__u32 flags;
	__u32 out_caps;
	__u32 out_host_page_size;
	__u32 out_gpu_page_size;
	__u32 out_slots;
	char out_provider[32];
};

#define GDMABUF_CAPS		_IO(GDMABUF_TYPE, GDMABUF_CMD_CAPS)

/**
 * enum gdmabuf_export_flags
 * @GDMABUF_READ_ONLY: neither the CPU nor a device can write by way of the dma-buf, whoever
 *	maps it; brackets of writes (DMA_BUF_SYNC_WRITE) give EACCES.  The only export of
 *	memory that is mapped read-only.  Host memory only.
 * @GDMABUF_KEEP: the range stays pinned when its last dma-buf is gone, for exports to
 *	come: until GDMABUF_DROP, until room is needed, or the context is closed
 * @GDMABUF_REVOCABLE: the GPU memory may be freed while the dma-buf lives.  CPU mappings
 *	are then gone (SIGBUS).  Devices cannot import the dma-buf (EOPNOTSUPP): memory for
 *	them must not be freed below them.  Without it the pages stay allocated as long as
 *	there is a dma-buf.  GPU memory only.
 *	mmap() of the dma-buf gives ENOMEM where more than the module's parameter
 *	revocable_map_mb (4096) would be mapped of the exporting user's revocable memory, by
 *	all processes of that user, or by all of other users, which have a limit of their own:
 *	freeing takes all mappings with the GPU driver's lock held.  A mapping
 *	counts with its length, and 2 MiB at least; so does each part that it is split into,
 *	and mprotect(), mremap() or munmap() of a part then gives ENOMEM, too.  Mappings of
 *	memory that was freed do not count.
 * @GDMABUF_UNWATCHED: nobody asks later whether the address still means these pages: the
 *	slot's word says from the beginning that it does not, and no other export takes the
 *	pin.  GPU memory is then pinned once, and not twice, which takes half the time.  GPU
 *	memory only, without GDMABUF_KEEP and GDMABUF_REVOCABLE.
 */
enum gdmabuf_export_flags {
	GDMABUF_READ_ONLY	= 1 << 0,
	GDMABUF_KEEP		= 1 << 1,
	GDMABUF_REVOCABLE	= 1 << 2,
	GDMABUF_UNWATCHED	= 1 << 3,
};

/**
 * struct gdmabuf_export - ioctl(GDMABUF_EXPORT_GPU), ioctl(GDMABUF_EXPORT_HOST)
 * @size: sizeof(struct gdmabuf_export)
 * @flags: enum gdmabuf_export_flags
 * @address: of the range, in the calling process; for CUDA, a device pointer
 * @length: bytes
 * @out_fd: a new descriptor of a dma-buf of @length bytes, close-on-exec.  The caller's.
 * @out_slot: of the pin
 * @out_generation: the slot's word in the status page, as long as @address still means
 *	these pages
 * @reserved: 0
 *
 * A range within a pin that is not stale takes that pin: nothing is pinned again, but
 * the pin lives on with the new dma-buf, and is kept if GDMABUF_KEEP is set.
 *
 * A range of several allocations of GPU memory (mapped side by side, as CUDA's cuMemMap() does) is
 * exported with GDMABUF_UNWATCHED, with GDMABUF_REVOCABLE, or one by one: of a pin that is held, it
 * is the first page that is watched.
 */
struct gdmabuf_export {
	__u32 size;
	__u32 flags;
	__aligned_u64 address;
	__aligned_u64 length;
	__s32 out_fd;
	__u32 out_slot;
	__u32 out_generation;
	__u32 reserved;
};

#define GDMABUF_EXPORT_GPU	_IO(GDMABUF_TYPE, GDMABUF_CMD_EXPORT_GPU)
#define GDMABUF_EXPORT_HOST	_IO(GDMABUF_TYPE, GDMABUF_CMD_EXPORT_HOST)

/**
 * enum gdmabuf_kind - whose memory
 */
enum gdmabuf_kind {
	GDMABUF_KIND_HOST	= 1,
	GDMABUF_KIND_GPU	= 2,
};

/**
 * enum gdmabuf_state - of a dma-buf's pin, bits
 * @GDMABUF_STALE: the address does not mean these pages any more
 * @GDMABUF_REVOKED: the pages are gone
 */
enum gdmabuf_state {
	GDMABUF_STALE		= 1 << 0,
	GDMABUF_REVOKED		= 1 << 1,
};

/**
 * struct gdmabuf_query - ioctl(GDMABUF_QUERY)
 * @size: sizeof(struct gdmabuf_query)
 * @flags: 0
 * @fd: a dma-buf of gdmabuf, also one that another process made
 * @out_kind: enum gdmabuf_kind
 * @out_flags: enum gdmabuf_export_flags that it was exported with
 * @out_state: enum gdmabuf_state
 * @out_length: bytes
 * @out_address: what was exported.  0 if @fd is not of this context, and so for the rest:
 * @out_slot: of its pin
 * @out_generation: of its pin
 * @out_offset: of the dma-buf in the pin
 * @out_pin_length: bytes pinned
 */
struct gdmabuf_query {
	__u32 size;
	__u32 flags;
	__s32 fd;
	__u32 out_kind;
	__u32 out_flags;
	__u32 out_state;
	__aligned_u64 out_length;
	__aligned_u64 out_address;
	__u32 out_slot;
	__u32 out_generation;
	__aligned_u64 out_offset;
	__aligned_u64 out_pin_length;
};

#define GDMABUF_QUERY		_IO(GDMABUF_TYPE, GDMABUF_CMD_QUERY)

/**
 * struct gdmabuf_pin_id - ioctl(GDMABUF_DROP)
 * @size: sizeof(struct gdmabuf_pin_id)
 * @flags: 0
 * @slot: as exported
 * @generation: as exported, or as it is now
 *
 * GDMABUF_DROP takes GDMABUF_KEEP back.  EBUSY: the pin is now not kept, but dma-bufs
 * are on it still, with the last of which it goes.
 */
struct gdmabuf_pin_id {
	__u32 size;
	__u32 flags;
	__u32 slot;
	__u32 generation;
};

#define GDMABUF_DROP		_IO(GDMABUF_TYPE, GDMABUF_CMD_DROP)

/**
 * struct gdmabuf_budget - ioctl(GDMABUF_BUDGET)
 * @size: sizeof(struct gdmabuf_budget)
 * @flags: 0
 * @kind: enum gdmabuf_kind
 * @reserved: 0
 * @bytes: how much the context may keep pinned that no dma-buf needs; U64_MAX, the
 *	default: all.  What is more is given up now, least recently exported first.
 * @out_bytes: what the limit was
 * @out_used: bytes that are kept and idle, after
 */
struct gdmabuf_budget {
	__u32 size;
	__u32 flags;
	__u32 kind;
	__u32 reserved;
	__aligned_u64 bytes;
	__aligned_u64 out_bytes;
	__aligned_u64 out_used;
};

#define GDMABUF_BUDGET		_IO(GDMABUF_TYPE, GDMABUF_CMD_BUDGET)

/**
 * struct gdmabuf_stats - ioctl(GDMABUF_STATS), of the context since it was opened
 * @size: sizeof(struct gdmabuf_stats)
 * @flags: 0
 * @out_host_pins: now
 * @out_host_bytes: pinned now
 * @out_gpu_pins: now, without those whose pages were taken
 * @out_gpu_bytes: pinned now
 * @out_exports: dma-bufs made
 * @out_hits: of these, on a pin that was there
 * @out_evictions: idle pins given up for room or by the budget
 * @out_retries: pins that worked after evictions only
 * @out_stale: pins whose address came to mean something else
 * @out_revoked: pins whose pages were taken
 */
struct gdmabuf_stats {
	__u32 size;
	__u32 flags;
	__aligned_u64 out_host_pins;
	__aligned_u64 out_host_bytes;
	__aligned_u64 out_gpu_pins;
	__aligned_u64 out_gpu_bytes;
	__aligned_u64 out_exports;
	__aligned_u64 out_hits;
	__aligned_u64 out_evictions;
	__aligned_u64 out_retries;
	__aligned_u64 out_stale;
	__aligned_u64 out_revoked;
};

#define GDMABUF_STATS		_IO(GDMABUF_TYPE, GDMABUF_CMD_STATS)

/**
 * enum gdmabuf_diag_flags - what stands between two PCI devices, bits
 * @GDMABUF_DIAG_IOMMU: the peer's DMA is translated by an IOMMU; also if an IOMMU is there, and the
 *	peer has no driver, or one that decides itself (VFIO)
 * @GDMABUF_DIAG_ACS: a bridge on the way sends peer-to-peer transactions up to the root
 *	(Access Control Services)
 * @GDMABUF_DIAG_SAME_BRIDGE: both are below one bridge, so there is a way that does not
 *	go through the root complex
 * @GDMABUF_DIAG_DISTANCE: @out_distance is what the kernel computed
 */
enum gdmabuf_diag_flags {
	GDMABUF_DIAG_IOMMU	= 1 << 0,
	GDMABUF_DIAG_ACS	= 1 << 1,
	GDMABUF_DIAG_SAME_BRIDGE = 1 << 2,
	GDMABUF_DIAG_DISTANCE	= 1 << 3,
};

/**
 * struct gdmabuf_diag - ioctl(GDMABUF_DIAG)
 * @size: sizeof(struct gdmabuf_diag)
 * @flags: 0
 * @gpu: PCI address: domain << 16 | bus << 8 | device << 3 | function
 * @peer: PCI address
 * @out_flags: enum gdmabuf_diag_flags
 * @out_distance: as pci_p2pdma_distance(): number of ports between, -1 if there is no
 *	way that works
 *
 * ENODEV: no such PCI device.
 */
struct gdmabuf_diag {
	__u32 size;
	__u32 flags;
	__u32 gpu;
	__u32 peer;
	__u32 out_flags;
	__s32 out_distance;
};

#define GDMABUF_DIAG		_IO(GDMABUF_TYPE, GDMABUF_CMD_DIAG)

/*
 * The status page: mmap(NULL, bytes, PROT_READ, MAP_SHARED, context, 0).  An array of __u32,
 * a word a slot.  As long as it equals the generation of an export, the address that was
 * exported still means the pages that were pinned: one load, to be made with acquire order
 * before what relies on it.  It is advice about a moment that may be over; what a
 * dma-buf itself holds is safe whatever the word says.
 *
 * Of GPU memory that is neither GDMABUF_REVOCABLE nor GDMABUF_UNWATCHED the first page of the
 * pin, of out_gpu_page_size bytes, speaks for all: the word does not tell that another
 * allocation within the range was freed.
 */

#endif /* _UAPI_LINUX_GDMABUF_H */
