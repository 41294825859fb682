// SPDX-License-Identifier: GPL-2.0 OR MIT
/* Pins of the memory: nvidia_p2p_get_pages_persistent() and its opposite. */
#include <linux/delay.h>
#include <linux/export.h>
#include <linux/pid.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "nv-p2p.h"
#include "gpu.h"

struct pin {
	struct list_head link;
	struct nvidia_p2p_page_table table;
	u64 va;
	unsigned int nr;
	unsigned int *granules;
	struct nvidia_p2p_page *pages;
};

static LIST_HEAD(pins);
static u8 uuid[NVIDIA_P2P_GPU_UUID_LEN] = "mock gpu";

static unsigned int gdmabuf_mock_pins_budget_locked(void)
{
	return mock_config.budget_pages ? mock_config.budget_pages : mock_nr_granules;
}

static int gdmabuf_mock_pins_take_space_locked(struct pin *pin)
{
	unsigned int i;

	if (mock_stats.pages_pinned + pin->nr > gdmabuf_mock_pins_budget_locked())
		return -ENOMEM;
	mock_stats.pages_pinned += pin->nr;
	for (i = 0; i < pin->nr; i++)
		mock_granule_refs[pin->granules[i]]++;
	return 0;
}

static void gdmabuf_mock_pins_give_space_locked(struct pin *pin)
{
	unsigned int i;

	mock_stats.pages_pinned -= pin->nr;
	for (i = 0; i < pin->nr; i++)
		gdmabuf_mock_granule_put_locked(pin->granules[i]);
}

static void gdmabuf_mock_pins_free_pin(struct pin *pin)
{
	kvfree(pin->granules);
	kvfree(pin->pages);
	kvfree(pin->table.pages);
	memset(pin, 0x5a, sizeof(*pin));
	kfree(pin);
}

static struct pin *gdmabuf_mock_pins_alloc_pin(u64 va, u64 length)
{
	struct pin *pin = kzalloc(sizeof(*pin), GFP_KERNEL);

	if (!pin)
		return NULL;
	pin->va = va;
	pin->nr = length / MOCK_PAGE;
	pin->granules = kvcalloc(pin->nr, sizeof(*pin->granules), GFP_KERNEL);
	pin->pages = kvcalloc(pin->nr, sizeof(*pin->pages), GFP_KERNEL);
	pin->table.pages = kvcalloc(pin->nr, sizeof(*pin->table.pages), GFP_KERNEL);
	if (pin->granules && pin->pages && pin->table.pages)
		return pin;
	gdmabuf_mock_pins_free_pin(pin);
	return NULL;
}

static void gdmabuf_mock_pins_fill_table_locked(struct pin *pin)
{
	struct nvidia_p2p_page_table *table = &pin->table;
	unsigned int i;

	table->version = mock_config.version ? mock_config.version : NVIDIA_P2P_PAGE_TABLE_VERSION;
	table->page_size = mock_config.page_size ? mock_config.page_size
						 : NVIDIA_P2P_PAGE_SIZE_64KB;
	table->entries = pin->nr;
	table->gpu_uuid = uuid;
	for (i = 0; i < pin->nr; i++) {
		pin->pages[i].physical_address = gdmabuf_mock_granule_phys_locked(pin->granules[i]);
		table->pages[i] = &pin->pages[i];
	}
}

static int gdmabuf_mock_pins_fill_pin_locked(struct pin *pin)
{
	unsigned int i;
	int err;

	for (i = 0; i < pin->nr; i++) {
		err = gdmabuf_mock_granule_find_locked(task_tgid(current),
						       pin->va + (u64)i * MOCK_PAGE,
						       &pin->granules[i]);
		if (err)
			return err;
	}
	err = gdmabuf_mock_pins_take_space_locked(pin);
	if (!err)
		gdmabuf_mock_pins_fill_table_locked(pin);
	return err;
}

static int gdmabuf_mock_pins_injected_locked(void)
{
	if (!mock_config.fail_errno || mock_config.fail_after == ~0U)
		return 0;
	if (mock_config.fail_after--)
		return 0;
	return mock_config.fail_errno;
}

static int gdmabuf_mock_pins_get_locked(struct pin *pin)
{
	int err = gdmabuf_mock_pins_injected_locked();

	if (!err)
		err = gdmabuf_mock_pins_fill_pin_locked(pin);
	if (err)
		return err;
	mock_stats.gets++;
	mock_stats.pins++;
	list_add(&pin->link, &pins);
	return 0;
}

int nvidia_p2p_get_pages_persistent(uint64_t virtual_address, uint64_t length,
				    struct nvidia_p2p_page_table **page_table, uint32_t flags)
{
	struct pin *pin;
	int err;

	if (flags || !length || virtual_address % MOCK_PAGE || length % MOCK_PAGE ||
	    length / MOCK_PAGE > mock_nr_granules)
		return -EINVAL;
	pin = gdmabuf_mock_pins_alloc_pin(virtual_address, length);
	if (!pin)
		return -ENOMEM;
	mutex_lock(&mock_rm_lock);
	if (mock_config.delay_us)
		usleep_range(mock_config.delay_us, mock_config.delay_us + 100);
	err = gdmabuf_mock_pins_get_locked(pin);
	mutex_unlock(&mock_rm_lock);
	if (err)
		gdmabuf_mock_pins_free_pin(pin);
	else
		*page_table = &pin->table;
	return err;
}
EXPORT_SYMBOL_GPL(nvidia_p2p_get_pages_persistent);

/* -ENOMEM by default: the driver's put starts with an allocation. */
static int gdmabuf_mock_pins_put_error_locked(void)
{
	if (!mock_config.fail_puts)
		return 0;
	mock_config.fail_puts--;
	mock_stats.failed_puts++;
	return mock_config.fail_put_errno ? mock_config.fail_put_errno : -ENOMEM;
}

static struct pin *gdmabuf_mock_pins_find_locked(struct nvidia_p2p_page_table *table)
{
	struct pin *pin;

	list_for_each_entry(pin, &pins, link)
		if (&pin->table == table)
			return pin;
	return NULL;
}

int nvidia_p2p_put_pages_persistent(uint64_t virtual_address,
				    struct nvidia_p2p_page_table *page_table, uint32_t flags)
{
	struct pin *pin;
	int err;

	mutex_lock(&mock_rm_lock);
	err = gdmabuf_mock_pins_put_error_locked();
	/* If the GPU is gone, the driver fails to put the pin, and forgets the pin. */
	pin = err == -ENOMEM ? NULL : gdmabuf_mock_pins_find_locked(page_table);
	if (pin) {
		list_del(&pin->link);
		mock_stats.pins--;
		gdmabuf_mock_pins_give_space_locked(pin);
		gdmabuf_mock_pins_free_pin(pin);
	}
	mutex_unlock(&mock_rm_lock);
	if (err)
		return err;
	return pin ? 0 : -EINVAL;
}
EXPORT_SYMBOL_GPL(nvidia_p2p_put_pages_persistent);

bool gdmabuf_mock_pins_are_gone(void)
{
	return list_empty(&pins) && !mock_stats.pages_pinned;
}
