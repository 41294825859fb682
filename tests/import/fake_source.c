/* SPDX-License-Identifier: Apache-2.0 */
#include "fake_source.h"
#include "harness.h"

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

static size_t fake_block_of(const struct fake *fake, uintptr_t address)
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

static int fake_hold(struct fake *fake, size_t size)
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

/* The slot unpinned longest ago. */
static struct fake_held *fake_new_held(struct fake *fake)
{
	struct fake_held *held;

	do
		held = &fake->held[fake->next_held++ % FAKE_HELD];
	while (held->state == PINNED);
	held->state = PINNED;
	return held;
}

static int fake_pin(void *context, const void *wanted, uintptr_t address, size_t size,
		    struct cache_pin *out)
{
	struct fake *fake = context;
	size_t first = fake_block_of(fake, address), last = fake_block_of(fake, address + size - 1);
	size_t bytes = (last - first + 1) * fake->block;
	struct fake_held *held = NULL;
	int err;

	(void)wanted;
	pthread_mutex_lock(&fake->lock);
	err = fake_hold(fake, bytes);
	if (!err)
		held = fake_new_held(fake);
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

static void fake_unpin(void *context, const struct cache_pin *pin)
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

static bool fake_is_current(void *context, const struct cache_pin *pin)
{
	struct fake *fake = context;

	if (fake->in_look)
		fake->in_look();
	return atomic_load(&fake->generation[fake_block_of(fake, pin->base)]) ==
	       fake_generation(pin);
}

static void fake_idle(void *context)
{
	struct fake *fake = context;

	pthread_mutex_lock(&fake->lock);
	fake->idles++;
	pthread_mutex_unlock(&fake->lock);
}

const struct cache_source fake_source = { fake_pin, fake_unpin, fake_is_current, fake_idle };
const struct cache_source fake_source_unchecked = { fake_pin, fake_unpin, NULL, fake_idle };

struct cache *fake_cache_open_with(struct fake *fake, enum fake_check check, size_t block,
				   const struct cache_config *config)
{
	struct cache *cache = NULL;

	fake_init(fake, check, block);
	EXPECT_EQ(cache_create(check == FAKE_IS_CURRENT ? &fake_source : &fake_source_unchecked,
			       fake, config, &cache),
		  0);
	return cache;
}

struct cache *fake_cache_open(struct fake *fake, enum fake_check check, size_t block, size_t bytes,
			      uint32_t entries)
{
	const struct cache_config config = { .bytes = bytes, .entries = entries };

	return fake_cache_open_with(fake, check, block, &config);
}

void fake_cache_close(struct fake *fake, struct cache *cache)
{
	EXPECT_EQ(cache_destroy(cache), 0);
	EXPECT_EQ(fake->bytes, 0);
	EXPECT_EQ(fake->pins, fake->unpins);
	EXPECT_EQ(fake->wrong, 0);
}
