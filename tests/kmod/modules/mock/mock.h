/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * /dev/gdmabuf_mock stands in for CUDA, for tests.  An open file is the CUDA of a process: close()
 * frees all memory allocated through the file.  Errors: EINVAL, ENOMEM, EFAULT.
 */
#ifndef GDMABUF_MOCK_H
#define GDMABUF_MOCK_H

#include <linux/ioctl.h>
#include <linux/types.h>

enum { MOCK_PAGE = 65536 };

#define MOCK_SCATTER 1		/* no two pages adjacent in the BAR */

struct mock_alloc {
	__u64 length;		/* rounded up to MOCK_PAGE */
	__u64 va;		/* out; the lowest free address of the process */
	__u32 flags;
	__u32 pad;
};

struct mock_free {
	__u64 va;
};

struct mock_copy {
	__u64 va;
	__u64 user;
	__u64 length;
	__u32 to_gpu;
	__u32 pad;
};

/* A driver without faults has 0 in all members. */
struct mock_config {
	__u32 delay_us;		/* of each pin */
	__u32 fail_after;	/* gets that succeed before a get fails; ~0: no get fails */
	__s32 fail_errno;
	__u32 version;		/* of page tables, if not 0 */
	__u32 page_size;	/* in page tables, if not 0 */
	__u32 ram;		/* page tables have addresses of RAM */
	__u32 budget_pages;	/* of the BAR; 0: the whole BAR */
	__u32 fail_puts;	/* so many puts fail */
	__s32 fail_put_errno;	/* 0: -ENOMEM, and nothing happens.  Other errors end the pin */
};

struct mock_stats {
	__u32 pins;		/* now */
	__u32 pages_pinned;	/* of the budget */
	__u32 pages_used;	/* of GPU memory */
	__u32 gets, failed_puts;
	__u32 version;		/* of page tables, unless configured */
};

#define MOCK_ALLOC	_IOWR('M', 0xe0, struct mock_alloc)
#define MOCK_FREE	_IOW('M', 0xe1, struct mock_free)
#define MOCK_COPY	_IOW('M', 0xe2, struct mock_copy)
#define MOCK_CONFIG	_IOW('M', 0xe3, struct mock_config)
#define MOCK_STATS	_IOR('M', 0xe4, struct mock_stats)
/* Adds struct pages to the BAR, for good, as drivers with P2PDMA do.  EOPNOTSUPP: no P2PDMA. */
#define MOCK_ADD_PAGES _IO('M', 0xe5)

#endif
