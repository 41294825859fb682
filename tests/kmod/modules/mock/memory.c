// SPDX-License-Identifier: GPL-2.0 OR MIT
/* The memory: pages of a BAR, and their allocations. */
#include <linux/io.h>
#include <linux/mm.h>
#include <linux/pci.h>
#include <linux/pci-p2pdma.h>
#include <linux/pid.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "gpu.h"

/* Free in every process: x86-64 maps at 0x55... and from 0x7e... on, arm64 from 0xaa... on. */
#define VA_BASE 0x200000000000ULL

DEFINE_MUTEX(mock_rm_lock);
LIST_HEAD(mock_allocations);
struct mock_config mock_config;
struct mock_stats mock_stats;
unsigned int *mock_granule_refs;
unsigned int mock_nr_granules;

static struct pci_dev *gpu;
static void *bar;
static struct page *ram;

void gdmabuf_mock_granule_put_locked(unsigned int i)
{
	mock_granule_refs[i]--;
	mock_stats.pages_used -= !mock_granule_refs[i];
}

static int gdmabuf_mock_memory_take_granules_locked(struct allocation *a, bool scatter)
{
	unsigned int i, n = 0;

	for (i = 0; i < mock_nr_granules && n < a->nr; i++) {
		if (mock_granule_refs[i] || (scatter && n && a->granules[n - 1] == i - 1))
			continue;
		/* A contiguous allocation starts again after a used page. */
		if (!scatter && n && a->granules[n - 1] != i - 1)
			n = 0;
		a->granules[n++] = i;
	}
	if (n < a->nr)
		return -ENOMEM;
	for (i = 0; i < n; i++)
		mock_granule_refs[a->granules[i]] = 1;
	mock_stats.pages_used += n;
	return 0;
}

/* Places @a in the lowest gap of the process's addresses. */
static void gdmabuf_mock_memory_place_locked(struct allocation *a)
{
	struct list_head *before = &mock_allocations;
	struct allocation *other;

	a->va = VA_BASE;
	list_for_each_entry(other, &mock_allocations, link) {
		if (other->tgid == a->tgid) {
			if (other->va - a->va >= (u64)a->nr * MOCK_PAGE)
				break;
			a->va = other->va + (u64)other->nr * MOCK_PAGE;
		}
		before = &other->link;
	}
	list_add(&a->link, before);
}

struct allocation *gdmabuf_mock_allocation_find_locked(struct pid *tgid, u64 va)
{
	struct allocation *a;

	list_for_each_entry(a, &mock_allocations, link)
		if (a->tgid == tgid && va >= a->va && va - a->va < (u64)a->nr * MOCK_PAGE)
			return a;
	return NULL;
}

int gdmabuf_mock_granule_find_locked(struct pid *tgid, u64 va, unsigned int *granule)
{
	struct allocation *a = gdmabuf_mock_allocation_find_locked(tgid, va);

	if (!a)
		return -EINVAL;
	*granule = a->granules[(va - a->va) / MOCK_PAGE];
	return 0;
}

void gdmabuf_mock_allocation_free_locked(struct allocation *a)
{
	unsigned int i;

	list_del(&a->link);
	for (i = 0; i < a->nr; i++)
		gdmabuf_mock_granule_put_locked(a->granules[i]);
	put_pid(a->tgid);
	kvfree(a);
}

static struct allocation *gdmabuf_mock_memory_alloc(struct file *file, unsigned int nr)
{
	struct allocation *a = kvzalloc(struct_size(a, granules, nr), GFP_KERNEL);

	if (!a)
		return NULL;
	a->nr = nr;
	a->file = file;
	a->tgid = get_pid(task_tgid(current));
	return a;
}

int gdmabuf_mock_allocation_create(struct file *file, u64 length, bool scatter, u64 *va)
{
	u64 nr = DIV_ROUND_UP_ULL(length, MOCK_PAGE);
	struct allocation *a;
	int err;

	if (!nr || nr > mock_nr_granules)
		return -EINVAL;
	a = gdmabuf_mock_memory_alloc(file, nr);
	if (!a)
		return -ENOMEM;
	mutex_lock(&mock_rm_lock);
	err = gdmabuf_mock_memory_take_granules_locked(a, scatter);
	if (!err) {
		gdmabuf_mock_memory_place_locked(a);
		*va = a->va;
	}
	mutex_unlock(&mock_rm_lock);
	if (err) {
		put_pid(a->tgid);
		kvfree(a);
	}
	return err;
}

phys_addr_t gdmabuf_mock_granule_phys_locked(unsigned int i)
{
	if (mock_config.ram)
		return page_to_phys(ram);
	return pci_resource_start(gpu, 2) + (phys_addr_t)i * MOCK_PAGE;
}

void *gdmabuf_mock_granule_address(unsigned int i)
{
	return bar + (size_t)i * MOCK_PAGE;
}

static int gdmabuf_mock_memory_map_bar(void)
{
	mock_nr_granules = pci_resource_len(gpu, 2) / MOCK_PAGE;
	mock_granule_refs = kvcalloc(mock_nr_granules, sizeof(*mock_granule_refs), GFP_KERNEL);
	ram = alloc_pages(GFP_KERNEL, get_order(MOCK_PAGE));
	bar = memremap(pci_resource_start(gpu, 2), pci_resource_len(gpu, 2), MEMREMAP_WC);
	return mock_granule_refs && ram && bar ? 0 : -ENOMEM;
}

static void gdmabuf_mock_memory_unmap_bar(void)
{
	if (bar)
		memunmap(bar);
	if (ram)
		__free_pages(ram, get_order(MOCK_PAGE));
	kvfree(mock_granule_refs);
}

int gdmabuf_mock_memory_add_pages(void)
{
	return pci_p2pdma_add_resource(gpu, 2, 0, 0);
}

int gdmabuf_mock_memory_init(void)
{
	int err;

	gpu = pci_get_device(PCI_VENDOR_ID_REDHAT_QUMRANET, 0x1110, NULL);
	if (!gpu)
		return -ENODEV;
	err = pci_enable_device(gpu);
	if (err)
		goto put_device;
	err = gdmabuf_mock_memory_map_bar();
	if (err)
		goto unmap;
	return 0;

unmap:
	gdmabuf_mock_memory_unmap_bar();
	pci_disable_device(gpu);
put_device:
	pci_dev_put(gpu);
	return err;
}

void gdmabuf_mock_memory_exit(void)
{
	gdmabuf_mock_memory_unmap_bar();
	pci_disable_device(gpu);
	pci_dev_put(gpu);
}
