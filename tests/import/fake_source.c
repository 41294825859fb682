/* SPDX-License-Identifier: Apache-2.0 */
#include "fake_source.h"

#include <errno.h>
#include <string.h>

#define PINNED 0x50494e4e
#define POISON 0x6b6b6b6b

void fake_init(struct fake *fake, enum fake_check check, size_t block)
{
	memset(fake, 0, sizeof(*fake));
	pthread_mutex_init(&fake->lock, NULL);
	fake->check = check;
	fake->block = block;
	fake->capacity = SIZE_MAX;
}

uintptr_t fake_address(const struct fake *fake, size_t block)
{
	return FAKE_BASE + block * fake->block;
}

static size_t block_of(const struct fake *fake, uintptr_t address)
{
	return (address - FAKE_BASE) / fake->block;
}

void fake_free(struct fake *fake, size_t block)
{
	atomic_fetch_add_explicit(&fake->generation[block], 1, memory_order_release);
}

int fake_is_pinned(const struct cache_pin *pin)
{
	return ((struct fake_held *)pin->data)->state == PINNED;
}

uint32_t fake_generation(const struct cache_pin *pin)
{
	return ((struct fake_held *)pin->data)->generation;
}

static int hold(struct fake *fake, size_t size)
{
	int err = fake->error;

	fake->tries++;
	if (!err && (size > fake->capacity || fake->bytes > fake->capacity - size))
		err = -ENOSPC;
	if (!err) {
		fake->bytes += size;
		fake->pins++;
	}
	return err;
}

/* One that was given back long ago. */
static struct fake_held *new_held(struct fake *fake)
{
	struct fake_held *held;

	do
		held = &fake->held[fake->next_held++ % FAKE_HELD];
	while (held->state == PINNED);
	held->state = PINNED;
	return held;
}

static int pin(void *context, uintptr_t address, size_t size, struct cache_pin *out)
{
	struct fake *fake = context;
	size_t first = block_of(fake, address), last = block_of(fake, address + size - 1);
	size_t bytes = (last - first + 1) * fake->block;
	struct fake_held *held = NULL;
	int err;

	pthread_mutex_lock(&fake->lock);
	err = hold(fake, bytes);
	if (!err)
		held = new_held(fake);
	pthread_mutex_unlock(&fake->lock);
	if (err)
		return err;
	held->generation = atomic_load(&fake->generation[first]);
	*out = (struct cache_pin){
		.base = fake_address(fake, first) + (fake->pinned_wrong ? fake->block : 0),
		.size = bytes,
		.fd = -1,
		.offset = FAKE_OFFSET,
		.data = held,
		.status = fake->check == FAKE_STATUS ? &fake->generation[first] : NULL,
		.valid = held->generation,
	};
	if (fake->in_pin)
		fake->in_pin(fake);
	return 0;
}

static void unpin(void *context, const struct cache_pin *pin)
{
	struct fake *fake = context;
	struct fake_held *held = pin->data;

	pthread_mutex_lock(&fake->lock);
	fake->wrong += held->state != PINNED;
	fake->unpins++;
	fake->bytes -= pin->size;
	held->state = POISON;
	held->generation = POISON;
	pthread_mutex_unlock(&fake->lock);
}

static bool is_current(void *context, const struct cache_pin *pin)
{
	struct fake *fake = context;

	return atomic_load(&fake->generation[block_of(fake, pin->base)]) == fake_generation(pin);
}

const struct cache_source fake_source = { pin, unpin, is_current };
const struct cache_source fake_source_unchecked = { pin, unpin, NULL };
