/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * A mock of NVIDIA's driver, for tests: the functions of nv-p2p.h without a GPU.  GPU memory is a
 * PCI BAR provided by QEMU (BAR 2 of ivshmem).  The mock does as the driver does:
 *
 * - A single lock protects everything.
 * - Memory belongs to a process (its tgid), which alone can pin the memory.  Any process may put.
 * - Pins keep freed memory.
 * - A pin takes BAR space of its own, which is used up before memory is: -ENOMEM.
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

struct allocation {
	struct list_head link;	/* in allocations, by va */
	struct pid *tgid;
	struct file *file;
	u64 va;
	unsigned int nr;
	unsigned int granules[];
};

extern struct list_head mock_allocations;
extern unsigned int *mock_granule_refs;	/* of each page of GPU memory: allocations and pins */
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

bool gdmabuf_mock_pins_are_gone(void);

#endif
