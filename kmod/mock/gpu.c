// SPDX-License-Identifier: GPL-2.0 OR MIT
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
 */
#include <linux/delay.h>
#include <linux/fs.h>
#include <linux/io.h>
#include <linux/list.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/pci.h>
#include <linux/pid.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/workqueue.h>

#include "../nvidia/nv-p2p.h"
#include "mock.h"

#define VA_BASE 0x7f4000000000ULL

/* A page of GPU memory that is used. */
struct granule {
	unsigned int refs;	/* of allocations and persistent pins */
	unsigned int shared;	/* non-persistent pins: they share BAR space */
};

struct allocation {
	struct list_head link;	/* by va */
	struct pid *tgid;
	struct file *file;
	u64 va;
	unsigned int nr;
	unsigned int granules[];
};

struct pin {
	struct list_head link;
	struct nvidia_p2p_page_table table;
	struct pid *tgid;
	bool persistent;
	u64 va;
	unsigned int nr;
	unsigned int *granules;
	struct nvidia_p2p_page *pages;
	void (*callback)(void *data);
	void *data;
};

static DEFINE_MUTEX(rm_lock);	/* protects all */
static LIST_HEAD(allocations);
static LIST_HEAD(pins);
static struct mock_config config;
static struct mock_stats stats;
static struct granule *granules;
static unsigned int nr_granules;
static struct pci_dev *gpu;
static void *bar;
static struct page *ram;
static u8 uuid[NVIDIA_P2P_GPU_UUID_LEN] = "mock gpu";

/* ---- memory ---- */

static void granule_put(unsigned int i)
{
	granules[i].refs--;
	stats.pages_used -= !granules[i].refs;
}

static int take_granules(struct allocation *a, bool scatter)
{
	unsigned int i, n = 0;

	for (i = 0; i < nr_granules && n < a->nr; i++) {
		if (granules[i].refs || (scatter && n && a->granules[n - 1] == i - 1))
			continue;
		/* Not scattered: start again after what is used. */
		if (!scatter && n && a->granules[n - 1] != i - 1)
			n = 0;
		a->granules[n++] = i;
	}
	if (n < a->nr)
		return -ENOMEM;
	for (i = 0; i < n; i++)
		granules[a->granules[i]].refs = 1;
	stats.pages_used += n;
	return 0;
}

/* In the lowest gap of this process's addresses. */
static void place(struct allocation *a)
{
	struct list_head *before = &allocations;
	struct allocation *other;

	a->va = VA_BASE;
	list_for_each_entry(other, &allocations, link) {
		if (other->tgid == a->tgid) {
			if (other->va - a->va >= (u64)a->nr * MOCK_PAGE)
				break;
			a->va = other->va + (u64)other->nr * MOCK_PAGE;
		}
		before = &other->link;
	}
	list_add(&a->link, before);
}

static struct allocation *find_allocation(struct pid *tgid, u64 va)
{
	struct allocation *a;

	list_for_each_entry(a, &allocations, link)
		if (a->tgid == tgid && va >= a->va && va - a->va < (u64)a->nr * MOCK_PAGE)
			return a;
	return NULL;
}

static int find_granule(struct pid *tgid, u64 va, unsigned int *granule)
{
	struct allocation *a = find_allocation(tgid, va);

	if (!a)
		return -EINVAL;
	*granule = a->granules[(va - a->va) / MOCK_PAGE];
	return 0;
}

static void free_allocation(struct allocation *a)
{
	unsigned int i;

	list_del(&a->link);
	for (i = 0; i < a->nr; i++)
		granule_put(a->granules[i]);
	put_pid(a->tgid);
	kvfree(a);
}

/* ---- pins ---- */

static phys_addr_t granule_phys(unsigned int i)
{
	if (config.ram)
		return page_to_phys(ram);
	return pci_resource_start(gpu, 2) + (phys_addr_t)i * MOCK_PAGE;
}

static unsigned int budget(void)
{
	return config.budget_pages ? config.budget_pages : nr_granules;
}

/* BAR space: persistent pins have their own, others share it. */
static int take_space(struct pin *pin)
{
	unsigned int i, need = 0;

	for (i = 0; i < pin->nr; i++)
		need += pin->persistent || !granules[pin->granules[i]].shared;
	if (stats.pages_pinned + need > budget())
		return -ENOMEM;
	stats.pages_pinned += need;
	for (i = 0; i < pin->nr; i++) {
		if (pin->persistent)
			granules[pin->granules[i]].refs++;
		else
			granules[pin->granules[i]].shared++;
	}
	return 0;
}

static void give_space(struct pin *pin)
{
	unsigned int i;

	for (i = 0; i < pin->nr; i++) {
		struct granule *granule = &granules[pin->granules[i]];

		if (pin->persistent) {
			granule_put(pin->granules[i]);
			stats.pages_pinned--;
		} else {
			granule->shared--;
			stats.pages_pinned -= !granule->shared;
		}
	}
}

static void free_pin(struct pin *pin)
{
	kvfree(pin->granules);
	kvfree(pin->pages);
	kvfree(pin->table.pages);
	put_pid(pin->tgid);
	memset(pin, 0x5a, sizeof(*pin));
	kfree(pin);
}

static struct pin *alloc_pin(u64 va, u64 length)
{
	struct pin *pin = kzalloc(sizeof(*pin), GFP_KERNEL);

	if (!pin)
		return NULL;
	pin->tgid = get_pid(task_tgid(current));
	pin->va = va;
	pin->nr = length / MOCK_PAGE;
	pin->granules = kvcalloc(pin->nr, sizeof(*pin->granules), GFP_KERNEL);
	pin->pages = kvcalloc(pin->nr, sizeof(*pin->pages), GFP_KERNEL);
	pin->table.pages = kvcalloc(pin->nr, sizeof(*pin->table.pages), GFP_KERNEL);
	if (pin->granules && pin->pages && pin->table.pages)
		return pin;
	free_pin(pin);
	return NULL;
}

static void fill_table(struct pin *pin)
{
	struct nvidia_p2p_page_table *table = &pin->table;
	unsigned int i;

	table->version = config.version ? config.version : NVIDIA_P2P_PAGE_TABLE_VERSION;
	table->page_size = config.page_size ? config.page_size : NVIDIA_P2P_PAGE_SIZE_64KB;
	table->entries = pin->nr;
	table->gpu_uuid = uuid;
	for (i = 0; i < pin->nr; i++) {
		pin->pages[i].physical_address = granule_phys(pin->granules[i]);
		table->pages[i] = &pin->pages[i];
	}
}

static int fill_pin(struct pin *pin)
{
	unsigned int i;
	int err;

	for (i = 0; i < pin->nr; i++) {
		err = find_granule(pin->tgid, pin->va + (u64)i * MOCK_PAGE, &pin->granules[i]);
		if (err)
			return err;
	}
	err = take_space(pin);
	if (!err)
		fill_table(pin);
	return err;
}

static int injected(void)
{
	if (!config.fail_errno || config.fail_after == ~0U)
		return 0;
	if (config.fail_after--)
		return 0;
	return config.fail_errno;
}

/* Takes the pin away and tells its owner; the table is gone when that returns. */
static void call_back(struct pin *pin)
{
	list_del(&pin->link);
	stats.pins--;
	stats.callbacks++;
	give_space(pin);
	pin->callback(pin->data);
	free_pin(pin);
}

static int get_locked(struct pin *pin, struct nvidia_p2p_page_table **table)
{
	int err = injected();

	if (!err)
		err = fill_pin(pin);
	if (err) {
		free_pin(pin);
		return err;
	}
	stats.gets++;
	if (pin->persistent)
		stats.persistent++;
	else
		stats.pins++;
	list_add(&pin->link, &pins);
	*table = &pin->table;
	if (config.callback_in_get && !pin->persistent)
		call_back(pin);
	return 0;
}

static int get(u64 va, u64 length, struct nvidia_p2p_page_table **table, void (*callback)(void *),
	       void *data)
{
	struct pin *pin;
	int err;

	if (!length || va % MOCK_PAGE || length % MOCK_PAGE || length / MOCK_PAGE > nr_granules)
		return -EINVAL;
	pin = alloc_pin(va, length);
	if (!pin)
		return -ENOMEM;
	pin->persistent = !callback;
	pin->callback = callback;
	pin->data = data;
	mutex_lock(&rm_lock);
	if (config.delay_us)
		usleep_range(config.delay_us, config.delay_us + 100);
	err = get_locked(pin, table);
	mutex_unlock(&rm_lock);
	return err;
}

static struct pin *find_pin(struct nvidia_p2p_page_table *table)
{
	struct pin *pin;

	list_for_each_entry(pin, &pins, link)
		if (&pin->table == table)
			return pin;
	return NULL;
}

int nvidia_p2p_get_pages(uint64_t p2p_token, uint32_t va_space, uint64_t virtual_address,
			 uint64_t length, struct nvidia_p2p_page_table **page_table,
			 void (*free_callback)(void *data), void *data)
{
	return free_callback ? get(virtual_address, length, page_table, free_callback, data) : -EINVAL;
}
EXPORT_SYMBOL_GPL(nvidia_p2p_get_pages);

int nvidia_p2p_put_pages(uint64_t p2p_token, uint32_t va_space, uint64_t virtual_address,
			 struct nvidia_p2p_page_table *page_table)
{
	struct pin *pin;

	mutex_lock(&rm_lock);
	pin = find_pin(page_table);
	if (pin && pin->tgid != task_tgid(current)) {
		stats.foreign_puts++;
	} else if (pin) {
		list_del(&pin->link);
		stats.pins--;
		give_space(pin);
		free_pin(pin);
	}
	mutex_unlock(&rm_lock);
	return 0;
}
EXPORT_SYMBOL_GPL(nvidia_p2p_put_pages);

int nvidia_p2p_get_pages_persistent(uint64_t virtual_address, uint64_t length,
				    struct nvidia_p2p_page_table **page_table, uint32_t flags)
{
	return flags ? -EINVAL : get(virtual_address, length, page_table, NULL, NULL);
}
EXPORT_SYMBOL_GPL(nvidia_p2p_get_pages_persistent);

int nvidia_p2p_put_pages_persistent(uint64_t virtual_address, struct nvidia_p2p_page_table *page_table,
				    uint32_t flags)
{
	struct pin *pin;

	mutex_lock(&rm_lock);
	pin = find_pin(page_table);
	if (pin) {
		list_del(&pin->link);
		stats.persistent--;
		give_space(pin);
		free_pin(pin);
	}
	mutex_unlock(&rm_lock);
	return pin ? 0 : -EINVAL;
}
EXPORT_SYMBOL_GPL(nvidia_p2p_put_pages_persistent);

int nvidia_p2p_free_page_table(struct nvidia_p2p_page_table *page_table)
{
	return 0;
}
EXPORT_SYMBOL_GPL(nvidia_p2p_free_page_table);

/* ---- the control device ---- */

static void free_with_callbacks(struct allocation *a)
{
	u64 end = a->va + (u64)a->nr * MOCK_PAGE;
	struct pin *pin, *next;

	list_for_each_entry_safe(pin, next, &pins, link)
		if (!pin->persistent && pin->tgid == a->tgid && pin->va < end &&
		    pin->va + (u64)pin->nr * MOCK_PAGE > a->va)
			call_back(pin);
	free_allocation(a);
}

static int do_alloc(struct file *file, struct mock_alloc *arg)
{
	struct allocation *a;
	u64 nr = DIV_ROUND_UP_ULL(arg->length, MOCK_PAGE);
	int err;

	if (!nr || nr > nr_granules)
		return -EINVAL;
	a = kvzalloc(struct_size(a, granules, nr), GFP_KERNEL);
	if (!a)
		return -ENOMEM;
	a->nr = nr;
	a->file = file;
	a->tgid = get_pid(task_tgid(current));
	mutex_lock(&rm_lock);
	err = take_granules(a, arg->flags & MOCK_SCATTER);
	if (!err)
		place(a);
	mutex_unlock(&rm_lock);
	if (err) {
		put_pid(a->tgid);
		kvfree(a);
		return err;
	}
	arg->va = a->va;
	return 0;
}

struct free_work {
	struct work_struct work;
	struct pid *tgid;
	u64 va;
	int err;
};

static void free_worker(struct work_struct *work)
{
	struct free_work *w = container_of(work, struct free_work, work);
	struct allocation *a;

	mutex_lock(&rm_lock);
	a = find_allocation(w->tgid, w->va);
	w->err = a && a->va == w->va ? 0 : -EINVAL;
	if (!w->err)
		free_with_callbacks(a);
	mutex_unlock(&rm_lock);
}

static int do_free(const struct mock_free *arg)
{
	struct free_work w = { .tgid = task_tgid(current), .va = arg->va };

	if (arg->flags & MOCK_FREE_SUB)
		return 0;
	INIT_WORK_ONSTACK(&w.work, free_worker);
	if (arg->flags & MOCK_FREE_BY_THREAD) {
		schedule_work(&w.work);
		flush_work(&w.work);
	} else {
		free_worker(&w.work);
	}
	destroy_work_on_stack(&w.work);
	return w.err;
}

static int copy_granule(u64 va, void __user *user, u64 length, bool to_gpu)
{
	unsigned int granule;
	void *at;
	int err = find_granule(task_tgid(current), va, &granule);

	if (err)
		return err;
	at = bar + (size_t)granule * MOCK_PAGE + va % MOCK_PAGE;
	err = to_gpu ? copy_from_user(at, user, length) : copy_to_user(user, at, length);
	return err ? -EFAULT : 0;
}

static int do_copy(const struct mock_copy *arg)
{
	u64 done, n;
	int err = 0;

	mutex_lock(&rm_lock);
	for (done = 0; !err && done < arg->length; done += n) {
		n = min(arg->length - done, MOCK_PAGE - (arg->va + done) % MOCK_PAGE);
		err = copy_granule(arg->va + done, u64_to_user_ptr(arg->user) + done, n, arg->to_gpu);
	}
	mutex_unlock(&rm_lock);
	return err;
}

static long mock_ioctl(struct file *file, unsigned int request, unsigned long address)
{
	void __user *user = (void __user *)address;
	union {
		struct mock_alloc alloc;
		struct mock_free free;
		struct mock_copy copy;
		struct mock_config config;
		struct mock_stats stats;
	} arg = {};
	int err = 0;

	if (_IOC_SIZE(request) > sizeof(arg) || copy_from_user(&arg, user, _IOC_SIZE(request)))
		return -EFAULT;
	switch (request) {
	case MOCK_ALLOC:
		err = do_alloc(file, &arg.alloc);
		break;
	case MOCK_FREE:
		return do_free(&arg.free);
	case MOCK_COPY:
		return do_copy(&arg.copy);
	case MOCK_CONFIG:
		mutex_lock(&rm_lock);
		config = arg.config;
		mutex_unlock(&rm_lock);
		return 0;
	case MOCK_STATS:
		mutex_lock(&rm_lock);
		arg.stats = stats;
		arg.stats.version = NVIDIA_P2P_PAGE_TABLE_VERSION;
		mutex_unlock(&rm_lock);
		break;
	default:
		return -ENOTTY;
	}
	if (!err && copy_to_user(user, &arg, _IOC_SIZE(request)))
		err = -EFAULT;
	return err;
}

static int mock_release(struct inode *inode, struct file *file)
{
	struct allocation *a, *next;

	mutex_lock(&rm_lock);
	list_for_each_entry_safe(a, next, &allocations, link)
		if (a->file == file)
			free_with_callbacks(a);
	mutex_unlock(&rm_lock);
	return 0;
}

static const struct file_operations fops = {
	.owner = THIS_MODULE,
	.unlocked_ioctl = mock_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.release = mock_release,
};

static struct miscdevice device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "gdmabuf_mock",
	.fops = &fops,
	.mode = 0666,
};

static int map_bar(void)
{
	nr_granules = pci_resource_len(gpu, 2) / MOCK_PAGE;
	granules = kvcalloc(nr_granules, sizeof(*granules), GFP_KERNEL);
	ram = alloc_pages(GFP_KERNEL, get_order(MOCK_PAGE));
	bar = memremap(pci_resource_start(gpu, 2), pci_resource_len(gpu, 2), MEMREMAP_WC);
	return granules && ram && bar ? 0 : -ENOMEM;
}

static void unmap_bar(void)
{
	if (bar)
		memunmap(bar);
	if (ram)
		__free_pages(ram, get_order(MOCK_PAGE));
	kvfree(granules);
}

static int __init mock_init(void)
{
	int err;

	gpu = pci_get_device(PCI_VENDOR_ID_REDHAT_QUMRANET, 0x1110, NULL);
	if (!gpu)
		return -ENODEV;
	err = pci_enable_device(gpu);
	if (err)
		goto put_device;
	err = map_bar();
	if (err)
		goto unmap;
	err = misc_register(&device);
	if (err)
		goto unmap;
	return 0;

unmap:
	unmap_bar();
	pci_disable_device(gpu);
put_device:
	pci_dev_put(gpu);
	return err;
}

static void __exit mock_exit(void)
{
	misc_deregister(&device);
	WARN_ON(!list_empty(&pins) || !list_empty(&allocations) || stats.pages_pinned);
	unmap_bar();
	pci_disable_device(gpu);
	pci_dev_put(gpu);
}

module_init(mock_init);
module_exit(mock_exit);
MODULE_DESCRIPTION("NVIDIA's peer-to-peer interface without a GPU, for tests");
MODULE_LICENSE("Dual MIT/GPL");
