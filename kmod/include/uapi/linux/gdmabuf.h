/* SPDX-License-Identifier: (GPL-2.0 WITH Linux-syscall-note) OR MIT */
/*
 * gdmabuf - GPU memory and host memory of a process as dma-bufs
 *
 * open("/dev/gdmabuf", O_RDWR | O_CLOEXEC) makes a context, for the memory of the process that
 * opens the file.  Ioctls by a process with other memory, such as a child after fork() or the
 * process itself after execve(), fail with EACCES.
 *
 * An export pins a range of the process's memory and makes a dma-buf of it.  The pages stay where
 * they are until the dma-buf is released: by the last close of its descriptors, by the end of its
 * mappings, and by the drivers that imported it.  The dma-buf may be given to any process, and
 * outlives the context.  Two exports of one range are two pins, and both count.
 *
 * A watch tells by a word in memory whether an address still means the pages that it meant.  It
 * pins nothing.
 *
 * Every ioctl takes a struct whose first member is the size of the struct.  A struct larger than
 * the kernel's is accepted if the bytes beyond are zero.  A smaller struct is accepted if all
 * members of the first version are present.  Lengths and addresses are in bytes.  The layout is
 * the same for 32-bit processes.
 *
 * errno, of every ioctl:
 *   ENOTTY      no such ioctl
 *   E2BIG       bytes unknown to the kernel are not zero; or a struct of more than a page
 *   EOPNOTSUPP  a flag or reserved field that the kernel does not know; or no provider of GPU
 *               memory is loaded, or the provider's memory cannot be shared (of a coherent GPU)
 *   EINVAL      a range that is empty, wraps around, is not of whole pages, or has more than
 *               2^31 - 1 pages; a size too small
 *   EFAULT      a bad pointer; or a part of the range is not memory of the process, or is memory
 *               that cannot be pinned
 *   EACCES      the caller's memory is not the context's; or the range is mapped read-only, and
 *               GDMABUF_READ_ONLY is not set
 *   EDQUOT      a limit is reached: RLIMIT_MEMLOCK for host memory, the module's parameter
 *               gpu_quota_mb for GPU memory, out_watches for watches
 *   ENOSPC      no room is left in the GPU's BAR, or its driver has no memory: the driver does not
 *               tell the two apart
 *   ENOMEM      the kernel has no memory
 *   EMFILE      no descriptor is left; ENFILE likewise, for the whole system
 *   EINTR       a fatal signal came
 *   EIO         the GPU's driver failed in another way
 *   ENOENT      no such watch
 * A failed call leaves nothing pinned, nothing charged and no descriptor.
 *
 * RLIMIT_MEMLOCK: an export charges its pages to the caller's user before it pins the first, in one
 * sum with the memory that io_uring and iommufd pin for the user, and until the dma-buf is
 * released.  A page counts once for each export of it.  CAP_IPC_LOCK lifts the limit.
 *
 * gpu_quota_mb: all GPU memory exported by processes of a user counts until the driver has released
 * it.  0, the default, is no limit; CAP_SYS_RESOURCE lifts the limit.
 */
#ifndef _UAPI_LINUX_GDMABUF_H
#define _UAPI_LINUX_GDMABUF_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define GDMABUF_TYPE	'G'

/* The only user of all is libclimport: import/export/gdmabuf.c. */
enum {
	GDMABUF_CMD_BASE = 0x80,
	GDMABUF_CMD_CAPS = GDMABUF_CMD_BASE,	/* at open; climport diag */
	GDMABUF_CMD_EXPORT_HOST,		/* climport_export_dmabuf() */
	GDMABUF_CMD_EXPORT_GPU,			/* the same, where CUDA exports nothing */
	GDMABUF_CMD_WATCH_HOST,			/* exports that are kept, imports by opaque_fd */
	GDMABUF_CMD_UNWATCH_HOST,
};

/**
 * struct gdmabuf_caps - ioctl(GDMABUF_CAPS)
 * @size: sizeof(struct gdmabuf_caps)
 * @flags: 0
 * @out_host_page_size: addresses and lengths of host memory are multiples
 * @out_gpu_page_size: addresses and lengths of GPU memory are multiples; 0 without a provider
 * @out_watches: the most watches of a context, and the most current watches of all contexts of a
 *	process; the status page has a __u32 for each, rounded up to full pages
 * @out_provider: name of the provider of GPU memory, or empty
 */
struct gdmabuf_caps {
	__u32 size;
	__u32 flags;
	__u32 out_host_page_size;
	__u32 out_gpu_page_size;
	__u32 out_watches;
	char out_provider[32];
};

#define GDMABUF_CAPS		_IO(GDMABUF_TYPE, GDMABUF_CMD_CAPS)

/**
 * enum gdmabuf_export_flags
 * @GDMABUF_READ_ONLY: no CPU and no device can write through the dma-buf, in any process;
 *	DMA_BUF_IOCTL_SYNC with DMA_BUF_SYNC_WRITE fails with EACCES.  The only way to export memory
 *	mapped read-only.  Host memory only.
 */
enum gdmabuf_export_flags {
	GDMABUF_READ_ONLY	= 1 << 0,
};

/**
 * struct gdmabuf_export - ioctl(GDMABUF_EXPORT_HOST), ioctl(GDMABUF_EXPORT_GPU)
 * @size: sizeof(struct gdmabuf_export)
 * @flags: enum gdmabuf_export_flags
 * @address: of the range, in the calling process; for CUDA, a device pointer
 * @length: bytes
 * @out_fd: a new descriptor of a dma-buf of @length bytes, close-on-exec.  The caller's.
 * @reserved: 0
 *
 * Host memory may be anonymous memory or a mapping of a file.  Of a private mapping of a file the
 * process first gets its own copies of the file's pages, as if it wrote to each page; the copies of
 * a transparent huge page are small pages.  Before Linux 6.2, pages that are mapped read-only are
 * exported without a copy.  Shared mappings of files that a file system writes back can be exported
 * with GDMABUF_READ_ONLY only.  Mappings of devices, and the kernel's own such as [vvar], are no
 * host memory: EFAULT.
 *
 * GPU memory stays allocated as long as the dma-buf lives, also when the process frees it.  Nobody
 * is told of the free: ask CUDA (CU_POINTER_ATTRIBUTE_BUFFER_ID) before the dma-buf is used for the
 * address again.
 */
struct gdmabuf_export {
	__u32 size;
	__u32 flags;
	__aligned_u64 address;
	__aligned_u64 length;
	__s32 out_fd;
	__u32 reserved;
};

#define GDMABUF_EXPORT_HOST	_IO(GDMABUF_TYPE, GDMABUF_CMD_EXPORT_HOST)
#define GDMABUF_EXPORT_GPU	_IO(GDMABUF_TYPE, GDMABUF_CMD_EXPORT_GPU)

/**
 * struct gdmabuf_watch_host - ioctl(GDMABUF_WATCH_HOST)
 * @size: sizeof(struct gdmabuf_watch_host)
 * @flags: 0
 * @address: of the range, in the calling process
 * @length: bytes
 * @out_slot: the watch's index in the status page
 * @out_generation: the slot's word as long as the watch is current; never 0
 *
 * Begin the watch, then let a driver pin, or export.  As long as the watch is current, a page at
 * the address during the pin is at the address now.
 *
 * A watch is current until a page of the range is taken away from the address: by munmap(), mmap()
 * or shmat() over the range, mremap(), brk(), madvise() (MADV_DONTNEED, MADV_FREE, MADV_REMOVE,
 * MADV_GUARD_INSTALL and others), by a file that is truncated or punched, by a copy on write, by
 * the kernel's own migration or reclaim, by execve() and exit; in any thread or process.  A stale
 * watch never becomes current again.  mprotect() and fork() alone leave a watch current: if the
 * process or a driver gets a copy of a page as a result, the copy makes the watch stale.
 *
 * A watch may become stale although the pages stay: if the kernel tried to move a pinned page in
 * vain, if a huge page was split, or if the pin itself gave the process a private copy.  In the
 * last case a second watch and pin of the range stay current.
 *
 * The range may be memory of any kind, or have no memory.  Watches may overlap.  A watch ends with
 * GDMABUF_UNWATCH_HOST, or when the context is closed.
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

/**
 * struct gdmabuf_watch_id - ioctl(GDMABUF_UNWATCH_HOST): ends a watch, current or stale
 * @size: sizeof(struct gdmabuf_watch_id)
 * @flags: 0
 * @slot: of the watch
 * @generation: of the watch
 */
struct gdmabuf_watch_id {
	__u32 size;
	__u32 flags;
	__u32 slot;
	__u32 generation;
};

#define GDMABUF_UNWATCH_HOST	_IO(GDMABUF_TYPE, GDMABUF_CMD_UNWATCH_HOST)

/*
 * The status page: mmap(NULL, bytes, PROT_READ, MAP_SHARED, context, 0).  A check of a watch is a
 * load of its word, with acquire order before all accesses that rely on the answer.  The answer is
 * a hint: the word may change right after the load.  A word that differs from the generation means
 * that the watch is stale or has ended.  fork() does not pass the mapping on.
 */

#endif /* _UAPI_LINUX_GDMABUF_H */
