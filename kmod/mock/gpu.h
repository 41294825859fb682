/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * NVIDIA's driver as far as nv-p2p.h goes, without a GPU, for tests: its memory is a PCI BAR that
 * QEMU provides (ivshmem's BAR 2).  As the driver does:
 *
 * - one lock for all, held when free callbacks are called;
 * - memory and non-persistent pins belong to a process (its tgid); putting such a pin in another
 *   returns 0 and does nothing;
 * - a page table is gone when its callback returned, and what was pinned is given back;
 * - persistent pins keep memory that is freed;
 * - BAR space ends before memory does: -ENOMEM.
 *
 * Memory knows nothing of pins, and both nothing of the control device.  Errors are 0 or -errno.
 */
#ifndef GDMABUF_MOCK_GPU_H
#define GDMABUF_MOCK_GPU_H

#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/types.h>

#include "mock.h"

struct file;
struct pid;

/* Protects all that there is; functions that end in _locked need it. */
extern struct mutex mock_rm_lock;
extern struct mock_config mock_config;
extern struct mock_stats mock_stats;

/* ---- memory.c ---- */

/* A page of GPU memory that is used. */
struct granule {
	unsigned int refs;	/* of allocations and persistent pins */
	unsigned int shared;	/* non-persistent pins: they share BAR space */
};

struct allocation {
	struct list_head link;	/* in allocations, by va */
	struct pid *tgid;
	struct file *file;
	u64 va;
	unsigned int nr;
	unsigned int granules[];
};

extern struct list_head mock_allocations;
extern struct granule *mock_granules;
extern unsigned int mock_nr_granules;

/* -ENODEV, -ENOMEM. */
int gdmabuf_mock_memory_init(void);
void gdmabuf_mock_memory_exit(void);
/* Struct pages for the BAR, as for peer-to-peer DMA; for good.  -EOPNOTSUPP. */
int gdmabuf_mock_memory_add_pages(void);

/* Of the caller, until gdmabuf_mock_allocation_free_locked().  -EINVAL, -ENOMEM. */
int gdmabuf_mock_allocation_create(struct file *file, u64 length, bool scatter, u64 *va);
void gdmabuf_mock_allocation_free_locked(struct allocation *a);
/* NULL if there is none. */
struct allocation *gdmabuf_mock_allocation_find_locked(struct pid *tgid, u64 va);

/* -EINVAL: not allocated. */
int gdmabuf_mock_granule_find_locked(struct pid *tgid, u64 va, unsigned int *granule);
void gdmabuf_mock_granule_put_locked(unsigned int i);
/* In the BAR, or in RAM if config says so. */
phys_addr_t gdmabuf_mock_granule_phys_locked(unsigned int i);
/* In the BAR. */
void *gdmabuf_mock_granule_address(unsigned int i);

/* ---- pins.c: and nvidia_p2p_*() ---- */

/* Calls back for all pins that touch @a. */
void gdmabuf_mock_pins_end_locked(const struct allocation *a);
bool gdmabuf_mock_pins_are_gone(void);

#endif
