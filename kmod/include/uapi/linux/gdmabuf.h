/* SPDX-License-Identifier: (GPL-2.0 WITH Linux-syscall-note) OR MIT */
/*
 * gdmabuf - GPU memory and host memory of a process as dma-bufs
 *
 * open("/dev/gdmabuf", O_RDWR | O_CLOEXEC) makes a context.  The owner of the context is the
 * process that called open(), until the process calls execve().  Calls by other processes, such as
 * a child, and by the owner after execve(), fail with EACCES.
 *
 * A pin is a range of the owner's memory whose pages stay where they are.  The pin has a slot in
 * the context, and a generation in the slot.  An export pins a range, or finds a pin of the range,
 * and makes a dma-buf on all of the pin or on a part.  The dma-buf may be given to any process, and
 * outlives the context.
 *
 * A watch is a range of the owner's memory without a pin: GDMABUF_WATCH_HOST.
 *
 * Every ioctl takes a struct whose first member is the size of the struct.  A struct larger than
 * the kernel's is accepted if the bytes beyond are zero.  A smaller struct is accepted if all
 * members of the first version are present.  Lengths and addresses are in bytes.  The layout is
 * valid for 32-bit processes, too.
 *
 * errno, of every ioctl:
 *   ENOTTY      no such ioctl
 *   E2BIG       bytes unknown to the kernel are not zero; or a struct of more than a page
 *   EOPNOTSUPP  a flag, mode or reserved field not supported by the kernel, or no provider of
 *               GPU memory is loaded
 *   EINVAL      a range that is empty, wraps around, or is not of whole pages; a size too small
 *   EFAULT      a bad pointer; or a part of the range is not memory of the process, or cannot be
 *               pinned
 *   EACCES      the caller is not the owner of the context; or the range is mapped read-only and
 *               GDMABUF_READ_ONLY is not set
 *   EDQUOT      the user has no quota of GPU memory left.  All memory pinned by the driver for the
 *               user counts, including watched pages, and memory whose last dma-buf was closed by
 *               a process other than the owner
 *   ENOSPC      no room is left in the GPU's BAR, or in the context's table of slots, although all
 *               idle pins were given up; or the context has too many watches
 *   ENOMEM      no memory; or RLIMIT_MEMLOCK is reached.  All host memory pinned by processes of
 *               the user counts.  A huge page (any large folio) counts whole if any part is
 *               pinned, and counts once for any number of pins.  CAP_IPC_LOCK lifts the limit
 *   EMFILE      no descriptor is left
 *   EINTR       a fatal signal came
 *   EAGAIN      another thread remapped the range during each of several attempts
 *   ENOENT      no such slot, or a different generation in the slot
 *   EBUSY       see GDMABUF_DROP
 *   EBADF       not a dma-buf of gdmabuf
 *   ENODEV      the device is gone; or no such device
 * A failed call leaves nothing pinned, and no descriptor.
 *
 * An idle pin is a kept pin (GDMABUF_KEEP) without a dma-buf.  If room is missing, idle pins are
 * given up, least recently exported first: pins of the context, then pins of the user's other
 * contexts.  If the BAR is full, pins of other users follow, as long as the losing user has more
 * GPU memory pinned than the caller's user would have after the export.  Revocable pins of other
 * processes are not given up, because only the owner can release the memory.  If a limit of the
 * user is reached (EDQUOT, ENOMEM), idle pins are given up only if they make the export possible.
 *
 * If a process other than the owner drops the last reference to a dma-buf, the owner releases the
 * GPU memory: where the kernel can call threads (task_work_add()), when a thread of the owner next
 * returns to user mode; else at the owner's next ioctl, or when the owner closes a context or frees
 * the memory.
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
	GDMABUF_CMD_WATCH_HOST,
};

/**
 * enum gdmabuf_cap - capabilities of the kernel, bits
 * @GDMABUF_CAP_HOST: GDMABUF_EXPORT_HOST works
 * @GDMABUF_CAP_GPU: GDMABUF_EXPORT_GPU has a provider
 * @GDMABUF_CAP_P2PDMA: the kernel knows the distance between PCI devices
 * @GDMABUF_CAP_WATCH_HOST: GDMABUF_WATCH_HOST works
 */
enum gdmabuf_cap {
	GDMABUF_CAP_HOST		= 1 << 0,
	GDMABUF_CAP_GPU			= 1 << 1,
	GDMABUF_CAP_P2PDMA		= 1 << 2,
	GDMABUF_CAP_WATCH_HOST		= 1 << 3,
};

/**
 * struct gdmabuf_caps - ioctl(GDMABUF_CAPS)
 * @size: sizeof(struct gdmabuf_caps)
 * @flags: 0
 * @out_caps: enum gdmabuf_cap
 * @out_host_page_size: addresses and lengths of host memory are multiples
 * @out_gpu_page_size: addresses and lengths of GPU memory are multiples; 0 without a provider
 * @out_slots: slots in the status page, which has @out_slots * 4 bytes, rounded up to full pages
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
 * @GDMABUF_READ_ONLY: no CPU and no device can write through the dma-buf, in any process;
 *	DMA_BUF_IOCTL_SYNC with DMA_BUF_SYNC_WRITE fails with EACCES.  The only way to export memory
 *	mapped read-only.  Host memory only.
 * @GDMABUF_KEEP: the range stays pinned for later exports when the last dma-buf is gone: until
 *	GDMABUF_DROP, until room is needed, or until the context is closed
 * @GDMABUF_REVOCABLE: the GPU memory may be freed while the dma-buf lives.  CPU mappings then raise
 *	SIGBUS.  Devices cannot import the dma-buf (EOPNOTSUPP), because memory must not be freed
 *	under a device.  Without the flag the pages stay allocated as long as a dma-buf lives.  GPU
 *	memory only.
 *	A free takes down all CPU mappings with the GPU driver's lock held.  So mmap() of the
 *	dma-buf fails with ENOMEM beyond a limit on mappings of the exporting user's revocable
 *	memory: the module's parameter revocable_map_mb (4096).  The limit applies once to all
 *	processes of the user together, and once to all processes of other users.  A mapping
 *	counts with its length, rounded up to 2 MiB, and each split adds 2 MiB.  So mprotect(),
 *	mremap() and munmap() of a part can fail with ENOMEM, too.  Mappings of freed memory do
 *	not count.
 * @GDMABUF_UNWATCHED: no watch tells later whether the address still means the pages.  The slot's
 *	word is stale from the beginning, and no other export uses the pin.  GPU memory is then
 *	pinned once instead of twice, in half the time.  GPU memory only; not with GDMABUF_KEEP or
 *	GDMABUF_REVOCABLE.
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
 * @out_generation: the slot's word in the status page, as long as @address still means the pages
 * @reserved: 0
 *
 * If the range lies in a pin, and the pin is not stale, the export uses the pin, and pins nothing
 * again.  The pin then lives as long as the new dma-buf, and is kept if GDMABUF_KEEP is set.
 *
 * If a private mapping of a file is exported, the process first gets its own copies of the file's
 * pages, as if the process wrote to each page.  The copies of a transparent huge page are small
 * pages.  Before Linux 6.2, pages that are mapped read-only are exported without a copy.
 *
 * Several allocations of GPU memory may be mapped side by side, by CUDA's cuMemMap() for example.
 * Export such a range with GDMABUF_UNWATCHED, with GDMABUF_REVOCABLE, or each allocation by itself:
 * otherwise only the first page of the pin is watched.
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
 * enum gdmabuf_kind - kind of memory
 */
enum gdmabuf_kind {
	GDMABUF_KIND_HOST	= 1,
	GDMABUF_KIND_GPU	= 2,
};

/**
 * enum gdmabuf_state - of a dma-buf's pin, bits
 * @GDMABUF_STALE: the address no longer means the pages
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
 * @fd: a dma-buf of gdmabuf, made by any process
 * @out_kind: enum gdmabuf_kind
 * @out_flags: enum gdmabuf_export_flags of the export
 * @out_state: enum gdmabuf_state
 * @out_length: bytes
 * @out_address: of the exported range.  0, like all members below, if the context did not make @fd.
 * @out_slot: of the pin
 * @out_generation: of the pin
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
 * @slot: of an export or a watch
 * @generation: of the export or the watch, or the slot's present word
 *
 * GDMABUF_DROP takes GDMABUF_KEEP back.  EBUSY: the pin is no longer kept, but still has dma-bufs,
 * and ends with the last dma-buf.
 *
 * GDMABUF_DROP of a watch ends the watch.
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
 * @bytes: limit on idle pins of the context; U64_MAX, the default: no limit.  Idle pins beyond the
 *	limit are given up now, least recently exported first.
 * @out_bytes: the limit before the call
 * @out_used: bytes of idle pins after the call
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
 * struct gdmabuf_stats - ioctl(GDMABUF_STATS), of the context since open()
 * @size: sizeof(struct gdmabuf_stats)
 * @flags: 0
 * @out_host_pins: now
 * @out_host_bytes: pinned now
 * @out_gpu_pins: now, without revoked pins
 * @out_gpu_bytes: pinned now
 * @out_exports: dma-bufs made
 * @out_hits: exports that found a pin
 * @out_evictions: idle pins given up for room or by the budget
 * @out_retries: pins that succeeded only after evictions
 * @out_stale: pins whose address came to mean other pages
 * @out_revoked: pins whose pages were taken away
 * @out_host_watches: now; not in the first version of the struct
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
	__aligned_u64 out_host_watches;
};

#define GDMABUF_STATS		_IO(GDMABUF_TYPE, GDMABUF_CMD_STATS)

/**
 * enum gdmabuf_diag_flags - the path between two PCI devices, bits
 * @GDMABUF_DIAG_IOMMU: an IOMMU translates the peer's DMA.  Also set if the peer is behind an IOMMU
 *	and has no driver, or a driver with its own DMA management (VFIO).
 * @GDMABUF_DIAG_ACS: a bridge on the path sends peer-to-peer transactions up to the root (Access
 *	Control Services)
 * @GDMABUF_DIAG_SAME_BRIDGE: both devices are below a common bridge, so a path exists without the
 *	root complex
 * @GDMABUF_DIAG_DISTANCE: the kernel computed @out_distance
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
 * @out_distance: as pci_p2pdma_distance(): number of ports between the devices, -1 if no path works
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

/**
 * struct gdmabuf_watch_host - ioctl(GDMABUF_WATCH_HOST)
 * @size: sizeof(struct gdmabuf_watch_host)
 * @flags: 0
 * @address: of the range, in the calling process
 * @length: bytes
 * @out_slot: of the watch
 * @out_generation: the slot's word in the status page, as long as the watch is current
 *
 * For a driver other than gdmabuf that pins memory of the process: does the address still mean the
 * pages of the pin?  Begin the watch, then let the driver pin.  As long as the watch is current, a
 * page at the address during the pin is at the address now.
 *
 * A watch is current until a page of the range is taken away from the address: by munmap(), mmap()
 * or shmat() over the range, mremap(), brk(), madvise() (MADV_DONTNEED, MADV_FREE, MADV_REMOVE,
 * MADV_GUARD_INSTALL and others), by a file that is truncated or punched, by a copy on write, by
 * the kernel's own migration or reclaim, by execve() and exit; in any thread or process.  A stale
 * watch never becomes current again.  mprotect() and fork() alone leave a watch current: if the
 * process or a driver gets a copy of a page as a result, the copy makes the watch stale.
 *
 * A watch may become stale although the pages stay: if the kernel tried to move a pinned page in
 * vain, if a huge page was split, or if the pin itself gave the process a private copy.
 *
 * A watch pins nothing, and counts against no limit of pinned memory.  The range may be memory of
 * any kind, or have no memory.  Watches may overlap.  A watch ends with GDMABUF_DROP, or when the
 * context is closed.  A context has at most out_slots / 2 watches, stale watches included.
 */
struct gdmabuf_watch_host {
	__u32 size;
	__u32 flags;
	__aligned_u64 address;
	__aligned_u64 length;
	__u32 out_slot;
	__u32 out_generation;
};

#define GDMABUF_WATCH_HOST	_IO(GDMABUF_TYPE, GDMABUF_CMD_WATCH_HOST)

/*
 * The status page: mmap(NULL, bytes, PROT_READ, MAP_SHARED, context, 0).  An array of __u32, a word
 * per slot.  As long as the word equals the generation of an export, the exported address still
 * means the pinned pages.  As long as the word equals the generation of a watch, the watch is
 * current.  A check is a load, with acquire order before all accesses that rely on
 * the answer.  The answer is a hint: the word may change right after the load.  The pages of a
 * dma-buf itself are safe in any case.
 *
 * For GPU memory exported without GDMABUF_REVOCABLE and GDMABUF_UNWATCHED, only the first page of
 * the pin, of out_gpu_page_size bytes, is watched.  The word does not change when a later
 * allocation within the range is freed.
 */

#endif /* _UAPI_LINUX_GDMABUF_H */
