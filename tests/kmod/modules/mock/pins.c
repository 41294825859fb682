// SPDX-License-Identifier: GPL-2.0 OR MIT
/* Pins of the memory: nvidia_p2p_get_pages() and its relatives. */
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
	struct pid *tgid;
	bool persistent;
	u64 va;
	unsigned int nr;
	unsigned int *granules;
	struct nvidia_p2p_page *pages;
	void (*callback)(void *data);
	void *data;
};

static LIST_HEAD(pins);
static u8 uuid[NVIDIA_P2P_GPU_UUID_LEN] = "mock gpu";

static unsigned int gdmabuf_mock_pins_budget_locked(void)
{
	return mock_config.budget_pages ? mock_config.budget_pages : mock_nr_granules;
}

/* A persistent pin has BAR space of its own.  Non-persistent pins of a page share BAR space. */
static int gdmabuf_mock_pins_take_space_locked(struct pin *pin)
{
	unsigned int i, need = 0;

	for (i = 0; i < pin->nr; i++)
		need += pin->persistent || !mock_granules[pin->granules[i]].shared;
	if (mock_stats.pages_pinned + need > gdmabuf_mock_pins_budget_locked())
		return -ENOMEM;
	mock_stats.pages_pinned += need;
	for (i = 0; i < pin->nr; i++) {
		if (pin->persistent)
			mock_granules[pin->granules[i]].refs++;
		else
			mock_granules[pin->granules[i]].shared++;
	}
	return 0;
}

static void gdmabuf_mock_pins_give_space_locked(struct pin *pin)
{
	unsigned int i;

	for (i = 0; i < pin->nr; i++) {
		struct granule *granule = &mock_granules[pin->granules[i]];

		if (pin->persistent) {
			gdmabuf_mock_granule_put_locked(pin->granules[i]);
			mock_stats.pages_pinned--;
		} else {
			granule->shared--;
			mock_stats.pages_pinned -= !granule->shared;
		}
	}
}

static void gdmabuf_mock_pins_free_pin(struct pin *pin)
{
	kvfree(pin->granules);
	kvfree(pin->pages);
	kvfree(pin->table.pages);
	put_pid(pin->tgid);
	memset(pin, 0x5a, sizeof(*pin));
	kfree(pin);
}

static struct pin *gdmabuf_mock_pins_alloc_pin(u64 va, u64 length)
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
		err = gdmabuf_mock_granule_find_locked(pin->tgid, pin->va + (u64)i * MOCK_PAGE,
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

/* Ends the pin and calls back.  The table is freed when the callback returns. */
static void gdmabuf_mock_pins_call_back_locked(struct pin *pin)
{
	list_del(&pin->link);
	mock_stats.pins--;
	mock_stats.callbacks++;
	gdmabuf_mock_pins_give_space_locked(pin);
	pin->callback(pin->data);
	gdmabuf_mock_pins_free_pin(pin);
}

static int gdmabuf_mock_pins_get_locked(struct pin *pin, struct nvidia_p2p_page_table **table)
{
	int err = gdmabuf_mock_pins_injected_locked();

	if (!err)
		err = gdmabuf_mock_pins_fill_pin_locked(pin);
	if (err) {
		gdmabuf_mock_pins_free_pin(pin);
		return err;
	}
	mock_stats.gets++;
	if (pin->persistent)
		mock_stats.persistent++;
	else
		mock_stats.pins++;
	list_add(&pin->link, &pins);
	*table = &pin->table;
	if (mock_config.callback_in_get && !pin->persistent)
		gdmabuf_mock_pins_call_back_locked(pin);
	return 0;
}

static int gdmabuf_mock_pins_get(u64 va, u64 length, struct nvidia_p2p_page_table **table,
				 void (*callback)(void *), void *data)
{
	struct pin *pin;
	int err;

	if (!length || va % MOCK_PAGE || length % MOCK_PAGE ||
	    length / MOCK_PAGE > mock_nr_granules)
		return -EINVAL;
	pin = gdmabuf_mock_pins_alloc_pin(va, length);
	if (!pin)
		return -ENOMEM;
	pin->persistent = !callback;
	pin->callback = callback;
	pin->data = data;
	mutex_lock(&mock_rm_lock);
	if (mock_config.delay_us)
		usleep_range(mock_config.delay_us, mock_config.delay_us + 100);
	err = gdmabuf_mock_pins_get_locked(pin, table);
	mutex_unlock(&mock_rm_lock);
	return err;
}

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

int nvidia_p2p_get_pages(uint64_t p2p_token, uint32_t va_space, uint64_t virtual_address,
			 uint64_t length, struct nvidia_p2p_page_table **page_table,
			 void (*free_callback)(void *data), void *data)
{
	/* Tokens are for memory of other processes, and the mock gives out no tokens. */
	if (p2p_token || va_space || !free_callback)
		return -EINVAL;
	return gdmabuf_mock_pins_get(virtual_address, length, page_table, free_callback, data);
}
EXPORT_SYMBOL_GPL(nvidia_p2p_get_pages);

int nvidia_p2p_put_pages(uint64_t p2p_token, uint32_t va_space, uint64_t virtual_address,
			 struct nvidia_p2p_page_table *page_table)
{
	struct pin *pin;
	int err;

	mutex_lock(&mock_rm_lock);
	err = gdmabuf_mock_pins_put_error_locked();
	if (err) {
		mutex_unlock(&mock_rm_lock);
		return err;
	}
	pin = gdmabuf_mock_pins_find_locked(page_table);
	if (pin && pin->tgid != task_tgid(current)) {
		mock_stats.foreign_puts++;
	} else if (pin) {
		list_del(&pin->link);
		mock_stats.pins--;
		gdmabuf_mock_pins_give_space_locked(pin);
		gdmabuf_mock_pins_free_pin(pin);
	}
	mutex_unlock(&mock_rm_lock);
	return 0;
}
EXPORT_SYMBOL_GPL(nvidia_p2p_put_pages);

int nvidia_p2p_get_pages_persistent(uint64_t virtual_address, uint64_t length,
				    struct nvidia_p2p_page_table **page_table, uint32_t flags)
{
	return flags ? -EINVAL
		     : gdmabuf_mock_pins_get(virtual_address, length, page_table, NULL, NULL);
}
EXPORT_SYMBOL_GPL(nvidia_p2p_get_pages_persistent);

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
		mock_stats.persistent--;
		gdmabuf_mock_pins_give_space_locked(pin);
		gdmabuf_mock_pins_free_pin(pin);
	}
	mutex_unlock(&mock_rm_lock);
	if (err)
		return err;
	return pin ? 0 : -EINVAL;
}
EXPORT_SYMBOL_GPL(nvidia_p2p_put_pages_persistent);

int nvidia_p2p_free_page_table(struct nvidia_p2p_page_table *page_table)
{
	return 0;
}
EXPORT_SYMBOL_GPL(nvidia_p2p_free_page_table);

void gdmabuf_mock_pins_end_locked(const struct allocation *a)
{
	u64 end = a->va + (u64)a->nr * MOCK_PAGE;
	struct pin *pin, *next;

	list_for_each_entry_safe(pin, next, &pins, link)
		if (!pin->persistent && pin->tgid == a->tgid && pin->va < end &&
		    pin->va + (u64)pin->nr * MOCK_PAGE > a->va)
			gdmabuf_mock_pins_call_back_locked(pin);
}

bool gdmabuf_mock_pins_are_gone(void)
{
	return list_empty(&pins) && !mock_stats.pages_pinned;
}
