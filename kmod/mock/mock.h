/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * /dev/gdmabuf_mock: what CUDA does, for tests.  An open file is a process's CUDA: closing it frees
 * all that was allocated by it.  Errors: EINVAL, ENOMEM, EFAULT.
 */
#ifndef GDMABUF_MOCK_H
#define GDMABUF_MOCK_H

#include <linux/ioctl.h>
#include <linux/types.h>

enum { MOCK_PAGE = 65536 };

#define MOCK_SCATTER 1		/* no two pages beside each other in the BAR */

struct mock_alloc {
	__u64 length;		/* rounded up to MOCK_PAGE */
	__u64 va;		/* out; the lowest that is free in this process */
	__u32 flags;
	__u32 pad;
};

#define MOCK_FREE_BY_THREAD 1	/* callbacks come from another thread */
#define MOCK_FREE_SUB 2		/* of a part of a block: CUDA keeps the block, nobody is called */

struct mock_free {
	__u64 va;
	__u32 flags;
	__u32 pad;
};

struct mock_copy {
	__u64 va;
	__u64 user;
	__u64 length;
	__u32 to_gpu;
	__u32 pad;
};

/* All 0 is a driver that works. */
struct mock_config {
	__u32 delay_us;		/* of each pin */
	__u32 fail_after;	/* this many gets succeed, then one fails; ~0: none */
	__s32 fail_errno;
	__u32 callback_in_get;	/* the memory is freed while it is being pinned */
	__u32 version;		/* of page tables, if not 0 */
	__u32 page_size;	/* in page tables, if not 0 */
	__u32 ram;		/* page tables have addresses of RAM */
	__u32 budget_pages;	/* of the BAR that can be pinned, if not 0 */
	__u32 fail_puts;	/* this many puts fail, of both kinds, and do nothing */
	__s32 fail_put_errno; /* with this, if not 0, instead of -ENOMEM: of persistent pins for good */
};

struct mock_stats {
	__u32 pins, persistent;	/* now */
	__u32 pages_pinned;	/* of the budget */
	__u32 pages_used;	/* of GPU memory */
	__u32 gets, callbacks, foreign_puts;
	__u32 version;		/* of page tables, by itself */
	__u32 failed_puts, pad;
};

#define MOCK_ALLOC	_IOWR('M', 0xe0, struct mock_alloc)
#define MOCK_FREE	_IOW('M', 0xe1, struct mock_free)
#define MOCK_COPY	_IOW('M', 0xe2, struct mock_copy)
#define MOCK_CONFIG	_IOW('M', 0xe3, struct mock_config)
#define MOCK_STATS	_IOR('M', 0xe4, struct mock_stats)
/* Gives the BAR struct pages, for good, as a driver that uses P2PDMA does.  EOPNOTSUPP: no P2PDMA. */
#define MOCK_ADD_PAGES _IO('M', 0xe5)

#endif
