/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * A mock of NVIDIA's driver, for tests: the functions of nv-p2p.h without a GPU.  GPU memory is a
 * PCI BAR provided by QEMU (BAR 2 of ivshmem).  The mock does as the driver does:
 *
 * - A single lock protects everything, and is held when free callbacks are called.
 * - Memory and non-persistent pins belong to a process (its tgid).  A put of a non-persistent pin
 *   in another process returns 0 and does nothing.
 * - After a callback returns, the page table is freed and the pages are given back.
 * - Persistent pins keep freed memory.
 * - BAR space is used up before memory is: -ENOMEM.
 *
 * memory.c knows nothing of pins, and neither memory.c nor pins.c knows the control device.
 * Functions return 0 or -errno.
 */
#ifndef GDMABUF_MOCK_GPU_H
#define GDMABUF_MOCK_GPU_H

#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/types.h>

#include "mock.h"

struct file;
struct pid;

/* Protects all data.  Functions with names in _locked need the lock. */
extern struct mutex mock_rm_lock;
extern struct mock_config mock_config;
extern struct mock_stats mock_stats;

/* ---- memory.c ---- */

/* A used page of GPU memory. */
struct granule {
	unsigned int refs;	/* of allocations and persistent pins */
	unsigned int shared;	/* non-persistent pins, which share BAR space */
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
/* Adds struct pages to the BAR, for good, as for peer-to-peer DMA.  -EOPNOTSUPP. */
int gdmabuf_mock_memory_add_pages(void);

/* Allocates for the caller, until gdmabuf_mock_allocation_free_locked().  -EINVAL, -ENOMEM. */
int gdmabuf_mock_allocation_create(struct file *file, u64 length, bool scatter, u64 *va);
void gdmabuf_mock_allocation_free_locked(struct allocation *a);
/* NULL: not allocated. */
struct allocation *gdmabuf_mock_allocation_find_locked(struct pid *tgid, u64 va);

/* -EINVAL: not allocated. */
int gdmabuf_mock_granule_find_locked(struct pid *tgid, u64 va, unsigned int *granule);
void gdmabuf_mock_granule_put_locked(unsigned int i);
/* An address in the BAR, or in RAM if mock_config.ram is set. */
phys_addr_t gdmabuf_mock_granule_phys_locked(unsigned int i);
/* An address in the BAR's mapping. */
void *gdmabuf_mock_granule_address(unsigned int i);

/* ---- pins.c, with nvidia_p2p_*() ---- */

/* Calls back for all pins that overlap @a. */
void gdmabuf_mock_pins_end_locked(const struct allocation *a);
bool gdmabuf_mock_pins_are_gone(void);

#endif
