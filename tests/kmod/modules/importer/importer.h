/* SPDX-License-Identifier: (GPL-2.0 WITH Linux-syscall-note) OR MIT */
/*
 * gdmabuf_importer - a device that imports dma-bufs, for tests
 *
 * open("/dev/gdmabuf_importer", O_RDWR) makes an importer, for one attachment at a time.  close()
 * undoes whatever is left: the mappings and the attachment.  The importer's device is QEMU's edu
 * (PCI 1234:11e8), which does DMA, or a platform device, which may import but does no DMA.
 *
 * mmap() of an importer maps the attached dma-buf by dma_buf_mmap(), as DRM drivers map imported
 * buffers: with the rights of the importer's file.  ENOTCONN without an attachment, EBUSY during
 * another call.
 *
 * errno, of every ioctl, besides the errors of the exporter:
 *   ENOTTY      no such ioctl
 *   EINVAL      an unknown flag, mode or direction; reserved is not 0; a range that is empty, too
 *               long, or not all in the dma-buf
 *   EFAULT      a bad pointer
 *   EBADF       not a dma-buf
 *   ENOTCONN    the importer has no attachment
 *   ENXIO       the importer has no mapping
 *   EBUSY       the importer has an attachment, or a mapping, already
 *   EOPNOTSUPP  DMA by a device without DMA
 *   EIO         the exporter's kernel mapping is not memory; or DMA addresses cover less than
 *               the dma-buf
 *   ETIMEDOUT   the DMA did not end
 *   EINTR       a signal came while waiting for a lock
 */
#ifndef GDMABUF_IMPORTER_H
#define GDMABUF_IMPORTER_H

#include <linux/ioctl.h>
#include <linux/types.h>

/* Bytes of a DMA.  edu has 4096 bytes of memory, but QEMU refuses a DMA of exactly 4096. */
#define GDMABUF_IMPORTER_DMA_MAX	2048

/**
 * enum gdmabuf_importer_mode - the kinds of importers
 * @GDMABUF_IMPORTER_STATIC: attaches without operations
 * @GDMABUF_IMPORTER_PINNED: pins when attaching, as RDMA devices without page faults do
 * @GDMABUF_IMPORTER_DYNAMIC: has operations, and pins nothing; warns if the memory moves
 */
enum gdmabuf_importer_mode {
	GDMABUF_IMPORTER_STATIC,
	GDMABUF_IMPORTER_PINNED,
	GDMABUF_IMPORTER_DYNAMIC,
};

/**
 * enum gdmabuf_importer_flags
 * @GDMABUF_IMPORTER_PEER2PEER: needs no struct pages.  Not with GDMABUF_IMPORTER_STATIC.
 * @GDMABUF_IMPORTER_PLATFORM_DEVICE: uses the platform device, even if the machine has edu
 */
enum gdmabuf_importer_flags {
	GDMABUF_IMPORTER_PEER2PEER		= 1 << 0,
	GDMABUF_IMPORTER_PLATFORM_DEVICE	= 1 << 1,
};

/**
 * enum gdmabuf_importer_direction - as the kernel numbers them
 */
enum gdmabuf_importer_direction {
	GDMABUF_IMPORTER_BIDIRECTIONAL,
	GDMABUF_IMPORTER_TO_DEVICE,
	GDMABUF_IMPORTER_FROM_DEVICE,
};

/**
 * struct gdmabuf_importer_attach - ioctl(GDMABUF_IMPORTER_ATTACH)
 * @fd: a dma-buf; the importer takes a reference
 * @mode: enum gdmabuf_importer_mode
 * @flags: enum gdmabuf_importer_flags
 * @direction: enum gdmabuf_importer_direction, of all mappings of the attachment
 * @max_segment: bytes; the device's limit from now on, for all attachments.  0: 64 KiB, as for PCI
 *	devices.
 * @out_edu: 1 if the device is edu, which does DMA
 */
struct gdmabuf_importer_attach {
	__s32 fd;
	__u32 mode;
	__u32 flags;
	__u32 direction;
	__u32 max_segment;
	__u32 out_edu;
};

/**
 * struct gdmabuf_importer_map - ioctl(GDMABUF_IMPORTER_MAP)
 * @out_nents: segments with DMA addresses
 * @out_orig_nents: segments with struct pages
 * @out_length: bytes, of all segments
 * @out_largest: bytes, of the largest segment
 * @out_ranges: contiguous ranges of DMA addresses
 * @reserved: 0
 */
struct gdmabuf_importer_map {
	__u32 out_nents;
	__u32 out_orig_nents;
	__aligned_u64 out_length;
	__aligned_u64 out_largest;
	__u32 out_ranges;
	__u32 reserved;
};

/**
 * struct gdmabuf_importer_copy - ioctl(GDMABUF_IMPORTER_COPY): DMA from the dma-buf to itself
 * @source: offset
 * @destination: offset
 * @length: bytes, up to GDMABUF_IMPORTER_DMA_MAX
 * @reserved: 0
 *
 * All calls with DMA hold the dma-buf's lock until the DMA is done.  edu takes 0.1 s for each
 * segment.  A DMA that an IOMMU refuses is not reported, but the unread bytes arrive as
 * GDMABUF_IMPORTER_POISON.
 */
struct gdmabuf_importer_copy {
	__aligned_u64 source;
	__aligned_u64 destination;
	__u32 length;
	__u32 reserved;
};

#define GDMABUF_IMPORTER_POISON		0xdb

/**
 * struct gdmabuf_importer_access - READ and WRITE, VREAD and VWRITE
 * @offset: in the dma-buf
 * @data: a pointer
 * @length: bytes, up to GDMABUF_IMPORTER_DMA_MAX for READ and WRITE
 * @reserved: 0
 *
 * READ and WRITE are DMA; VREAD and VWRITE are the CPU's, through the mapping of VMAP.
 */
struct gdmabuf_importer_access {
	__aligned_u64 offset;
	__aligned_u64 data;
	__u32 length;
	__u32 reserved;
};

/**
 * struct gdmabuf_importer_cpu - BEGIN_CPU_ACCESS and END_CPU_ACCESS
 * @direction: enum gdmabuf_importer_direction
 */
struct gdmabuf_importer_cpu {
	__u32 direction;
};

#define GDMABUF_IMPORTER_ATTACH		_IOWR('I', 0x80, struct gdmabuf_importer_attach)
#define GDMABUF_IMPORTER_DETACH		_IO('I', 0x81)
#define GDMABUF_IMPORTER_MAP		_IOR('I', 0x82, struct gdmabuf_importer_map)
#define GDMABUF_IMPORTER_UNMAP		_IO('I', 0x83)
#define GDMABUF_IMPORTER_COPY		_IOW('I', 0x84, struct gdmabuf_importer_copy)
#define GDMABUF_IMPORTER_READ		_IOW('I', 0x85, struct gdmabuf_importer_access)
#define GDMABUF_IMPORTER_WRITE		_IOW('I', 0x86, struct gdmabuf_importer_access)
#define GDMABUF_IMPORTER_VMAP		_IO('I', 0x87)
#define GDMABUF_IMPORTER_VUNMAP		_IO('I', 0x88)
#define GDMABUF_IMPORTER_VREAD		_IOW('I', 0x89, struct gdmabuf_importer_access)
#define GDMABUF_IMPORTER_VWRITE		_IOW('I', 0x8a, struct gdmabuf_importer_access)
#define GDMABUF_IMPORTER_BEGIN_CPU_ACCESS _IOW('I', 0x8b, struct gdmabuf_importer_cpu)
#define GDMABUF_IMPORTER_END_CPU_ACCESS	_IOW('I', 0x8c, struct gdmabuf_importer_cpu)

#endif
