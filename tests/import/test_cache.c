/* SPDX-License-Identifier: Apache-2.0 */
/* The registration cache in a single thread.  Addresses are numbers, without memory. */
#include "fake_source.h"
#include "harness.h"

#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)

static struct fake fake;
static struct cache *cache;

static void block_cache_open(enum fake_check check, size_t block, size_t bytes, uint32_t entries)
{
	cache = fake_cache_open(&fake, check, block, bytes, entries);
}

static struct cache_ref block_get(size_t block)
{
	struct cache_ref ref = { 0 };

	EXPECT_EQ(cache_get(cache, fake_address(&fake, block), fake.block, NULL, &ref), 0);
	EXPECT(fake_is_pinned(ref.pin));
	EXPECT_EQ(ref.pin->base, fake_address(&fake, block));
	return ref;
}

static void block_use(size_t block)
{
	struct cache_ref ref = block_get(block);

	cache_put(cache, &ref);
}

/* Whether using the block needs no new pin. */
static int block_is_cached(size_t block)
{
	int pins = fake.pins;

	block_use(block);
	return fake.pins == pins;
}

static struct cache_stats cache_read_stats(void)
{
	struct cache_stats s;

	cache_stats(cache, &s);
	return s;
}

TEST(range_inside,
     "A range inside a pinned range is found, with the range's offset in the descriptor.")
{
	struct cache_ref ref;

	block_cache_open(FAKE_STATUS, 64 * KIB, SIZE_MAX, 0);
	block_use(3);
	EXPECT_EQ(cache_get(cache, fake_address(&fake, 3) + 1000, 24, NULL, &ref), 0);
	EXPECT_EQ(ref.offset, FAKE_OFFSET + 1000);
	EXPECT_EQ(ref.pin->size, 64 * KIB);
	EXPECT_EQ(fake.pins, 1);
	cache_put(cache, &ref);
	fake_cache_close(&fake, cache);
}

TEST(first_pin_offset,
     "The first use of a range returns the offset of the address, like later uses.")
{
	struct cache_ref ref;

	block_cache_open(FAKE_STATUS, MIB, SIZE_MAX, 0);
	EXPECT_EQ(cache_get(cache, fake_address(&fake, 0) + 4096, 1, NULL, &ref), 0);
	EXPECT_EQ(ref.offset, FAKE_OFFSET + 4096);
	cache_put(cache, &ref);
	fake_cache_close(&fake, cache);
}

TEST(range_across, "A range that a pinned range covers only in part is pinned anew, as a whole.")
{
	struct cache_ref ref;

	block_cache_open(FAKE_STATUS, MIB, SIZE_MAX, 0);
	block_use(0);
	EXPECT_EQ(cache_get(cache, fake_address(&fake, 1) - 1, 2, NULL, &ref), 0);
	EXPECT_EQ(ref.pin->size, 2 * MIB);
	EXPECT_EQ(fake.pins, 2);
	cache_put(cache, &ref);
	fake_cache_close(&fake, cache);
}

TEST(range_large,
     "A pinned range of many 2 MiB is found by each address inside, and by no address behind.")
{
	struct cache_ref ref;

	block_cache_open(FAKE_STATUS, 37 * MIB, SIZE_MAX, 0);
	block_use(1);
	for (size_t i = 0; i < 37; i++) {
		EXPECT_EQ(cache_get(cache, fake_address(&fake, 1) + i * MIB, MIB, NULL, &ref), 0);
		cache_put(cache, &ref);
	}
	EXPECT_EQ(fake.pins, 1);
	EXPECT_EQ(cache_read_stats().misses, 1);
	EXPECT(!block_is_cached(2));
	fake_cache_close(&fake, cache);
}

static int all_cached(size_t blocks)
{
	int cached = 1;

	for (size_t i = 0; i < blocks; i++)
		cached &= block_is_cached(i);
	return cached;
}

static const struct block_size {
	const char *name;
	size_t size;
} small_sizes[] = {
	{ "4096", 4 * KIB },
	{ "256", 256 },
};

TEST_EACH(many_small, struct block_size, small_sizes,
	  "Hundreds of small blocks in the same 2 MiB are all found.")
{
	block_cache_open(FAKE_STATUS, row->size, SIZE_MAX, 0);
	for (size_t block = 0; block < 512; block++)
		block_use(block);
	EXPECT(all_cached(512));
	EXPECT_EQ(cache_read_stats().entries, 512);
	fake_cache_close(&fake, cache);
}

TEST(taken_out_of_many, "After some entries are taken out, every remaining entry is still found.")
{
	block_cache_open(FAKE_STATUS, 4 * KIB, SIZE_MAX, 0);
	for (size_t block = 0; block < 600; block++)
		block_use(block);
	for (size_t block = 0; block < 600; block += 3)
		cache_invalidate(cache, fake_address(&fake, block), 1);
	EXPECT_EQ(cache_read_stats().entries, 400);
	for (size_t block = 0; block < 600; block++)
		EXPECT_EQ(block_is_cached(block), block % 3 != 0);
	fake_cache_close(&fake, cache);
}

TEST(no_range, "An empty or wrapping range is -EINVAL, and no memory is pinned.")
{
	struct cache_ref ref;

	block_cache_open(FAKE_STATUS, MIB, SIZE_MAX, 0);
	block_use(0);
	EXPECT_EQ(cache_get(cache, fake_address(&fake, 0), 0, NULL, &ref), -EINVAL);
	EXPECT_EQ(cache_get(cache, 0, 0, NULL, &ref), -EINVAL);
	EXPECT_EQ(cache_get(cache, UINTPTR_MAX - 10, 12, NULL, &ref), -EINVAL);
	EXPECT_EQ(fake.tries, 1);
	fake_cache_close(&fake, cache);
}

TEST(pinned_wrong,
     "A source that pins other memory causes -EINVAL, and the cache unpins the memory.")
{
	struct cache_ref ref;

	block_cache_open(FAKE_STATUS, MIB, SIZE_MAX, 0);
	fake.pinned_wrong = 1;
	EXPECT_EQ(cache_get(cache, fake_address(&fake, 0), 1, NULL, &ref), -EINVAL);
	EXPECT_EQ(fake.bytes, 0);
	fake_cache_close(&fake, cache);
}

TEST(stale_status, "A pin with a changed status word is not found, and the address is pinned anew.")
{
	struct cache_ref ref;

	block_cache_open(FAKE_STATUS, MIB, SIZE_MAX, 0);
	block_use(0);
	fake_free(&fake, 0);
	ref = block_get(0);
	EXPECT_EQ(fake_generation(ref.pin), 1);
	EXPECT_EQ(fake.unpins, 1);
	EXPECT_EQ(cache_read_stats().stale, 1);
	cache_put(cache, &ref);
	fake_cache_close(&fake, cache);
}

TEST(stale_status_in_use,
     "A pin that turns stale in use is unpinned at the last put, and not before.")
{
	struct cache_ref old, new;

	block_cache_open(FAKE_STATUS, MIB, SIZE_MAX, 0);
	old = block_get(0);
	fake_free(&fake, 0);
	new = block_get(0);
	EXPECT(fake_is_pinned(old.pin));
	EXPECT_EQ(fake_generation(new.pin), 1);
	EXPECT_EQ(fake.unpins, 0);
	cache_put(cache, &old);
	EXPECT_EQ(fake.unpins, 1);
	cache_put(cache, &new);
	EXPECT_EQ(fake.unpins, 1);
	fake_cache_close(&fake, cache);
}

TEST(stale_untouched,
     "cache_drop_changed() unpins the pins whose status word has changed, and no other pin.")
{
	struct cache_ref ref;

	block_cache_open(FAKE_STATUS, MIB, SIZE_MAX, 0);
	EXPECT(!cache_drop_changed(cache));
	block_use(0);
	block_use(1);
	ref = block_get(2);
	fake_free(&fake, 1);
	fake_free(&fake, 2);
	EXPECT(cache_drop_changed(cache));
	EXPECT_EQ(fake.unpins, 1);
	EXPECT(fake_is_pinned(ref.pin));
	cache_put(cache, &ref);
	EXPECT_EQ(fake.unpins, 2);
	EXPECT_EQ(cache_read_stats().stale, 2);
	EXPECT(block_is_cached(0));
	fake_cache_close(&fake, cache);
}

TEST(stale_by_call, "The cache asks is_current() at each use of a pin without a status word.")
{
	struct cache_ref ref;

	block_cache_open(FAKE_IS_CURRENT, MIB, SIZE_MAX, 0);
	block_use(0);
	EXPECT(block_is_cached(0));
	fake_free(&fake, 0);
	ref = block_get(0);
	EXPECT_EQ(fake_generation(ref.pin), 1);
	EXPECT_EQ(fake.unpins, 1);
	cache_put(cache, &ref);
	fake_cache_close(&fake, cache);
}

TEST(unchecked, "A pin without status word and is_current() is current until cache_invalidate().")
{
	block_cache_open(FAKE_NEITHER, MIB, SIZE_MAX, 0);
	block_use(0);
	fake_free(&fake, 0);
	EXPECT(block_is_cached(0));
	cache_invalidate(cache, fake_address(&fake, 0), MIB);
	EXPECT_EQ(fake.unpins, 1);
	EXPECT(!block_is_cached(0));
	fake_cache_close(&fake, cache);
}

TEST(invalidate_touches,
     "cache_invalidate() takes out every pin that the range touches, and no other pin.")
{
	block_cache_open(FAKE_NEITHER, MIB, SIZE_MAX, 0);
	for (size_t i = 0; i < 4; i++)
		block_use(i);
	cache_invalidate(cache, fake_address(&fake, 2) - 1, 2);
	cache_invalidate(cache, fake_address(&fake, 0), 0);
	EXPECT_EQ(fake.unpins, 2);
	EXPECT(block_is_cached(0));
	EXPECT(block_is_cached(3));
	EXPECT(!block_is_cached(1));
	EXPECT(!block_is_cached(2));
	fake_cache_close(&fake, cache);
}

TEST(invalidate_in_use, "An invalidated pin is not found, and is unpinned at the last put.")
{
	struct cache_ref a, b, new;

	block_cache_open(FAKE_NEITHER, MIB, SIZE_MAX, 0);
	a = block_get(0);
	b = block_get(0);
	cache_invalidate(cache, fake_address(&fake, 0), MIB);
	new = block_get(0);
	EXPECT(new.pin != a.pin);
	cache_put(cache, &a);
	EXPECT_EQ(fake.unpins, 0);
	EXPECT(fake_is_pinned(b.pin));
	cache_put(cache, &b);
	EXPECT_EQ(fake.unpins, 1);
	cache_put(cache, &new);
	fake_cache_close(&fake, cache);
}

TEST(many_references,
     "A thread may hold a hundred references, and put the references in any order.")
{
	struct cache_ref ref[100];

	block_cache_open(FAKE_NEITHER, MIB, SIZE_MAX, 0);
	for (int i = 0; i < 100; i++)
		ref[i] = block_get(i % 2);
	EXPECT_EQ(cache_read_stats().bytes_idle, 0);
	cache_invalidate(cache, fake_address(&fake, 0), 2 * MIB);
	for (int i = 0; i < 98; i++) {
		cache_put(cache, &ref[i]);
		EXPECT_EQ(fake.unpins, 0);
	}
	cache_put(cache, &ref[98]);
	EXPECT_EQ(fake.unpins, 1);
	cache_put(cache, &ref[99]);
	EXPECT_EQ(fake.unpins, 2);
	fake_cache_close(&fake, cache);
}

TEST(many_in_use, "However many pins are in use, none is evicted, and each goes with its put.")
{
	struct cache_ref ref[20];

	block_cache_open(FAKE_NEITHER, MIB, 0, 0);
	for (size_t i = 0; i < 20; i++)
		ref[i] = block_get(i);
	EXPECT_EQ(fake.unpins, 0);
	for (int i = 0; i < 20; i++)
		cache_put(cache, &ref[i]);
	EXPECT_EQ(fake.unpins, 20);
	fake_cache_close(&fake, cache);
}

TEST(lazy, "A pin without users stays pinned, and is counted as idle.")
{
	struct cache_ref ref;

	block_cache_open(FAKE_STATUS, MIB, SIZE_MAX, 0);
	ref = block_get(0);
	EXPECT_EQ(cache_read_stats().bytes_pinned, MIB);
	EXPECT_EQ(cache_read_stats().bytes_idle, 0);
	cache_put(cache, &ref);
	EXPECT_EQ(fake.unpins, 0);
	EXPECT_EQ(cache_read_stats().bytes_idle, MIB);
	fake_cache_close(&fake, cache);
}

TEST(counts, "The cache counts hits and misses, also of pins that are gone.")
{
	block_cache_open(FAKE_STATUS, MIB, SIZE_MAX, 0);
	block_use(0);
	EXPECT_EQ(cache_read_stats().hits, 0);
	block_use(0);
	block_use(0);
	cache_invalidate(cache, fake_address(&fake, 0), 1);
	block_use(0);
	block_use(0);
	EXPECT_EQ(cache_read_stats().hits, 3);
	EXPECT_EQ(cache_read_stats().misses, 2);
	fake_cache_close(&fake, cache);
}

TEST(budget, "Pins that are idle never exceed the budget.")
{
	block_cache_open(FAKE_STATUS, MIB, 4 * MIB, 0);
	for (size_t i = 0; i < 20; i++) {
		block_use(i);
		EXPECT(cache_read_stats().bytes_pinned <= 4 * MIB);
	}
	EXPECT_EQ(fake.bytes, 4 * MIB);
	EXPECT_EQ(cache_read_stats().evictions, 16);
	fake_cache_close(&fake, cache);
}

TEST(budget_large, "The put of a large pin evicts as many small pins as needed.")
{
	struct cache_ref ref;

	block_cache_open(FAKE_STATUS, MIB, 4 * MIB, 0);
	for (size_t i = 0; i < 4; i++)
		block_use(i);
	EXPECT_EQ(cache_get(cache, fake_address(&fake, 10), 3 * MIB, NULL, &ref), 0);
	EXPECT_EQ(fake.unpins, 0);
	cache_put(cache, &ref);
	EXPECT_EQ(fake.unpins, 3);
	fake_cache_close(&fake, cache);
}

TEST(budget_none, "If the budget is 0, each put unpins.")
{
	block_cache_open(FAKE_STATUS, MIB, 0, 0);
	block_use(0);
	EXPECT_EQ(fake.unpins, 1);
	EXPECT(!block_is_cached(0));
	fake_cache_close(&fake, cache);
}

TEST(second_chance, "A pin that was used again is evicted after a pin that was used once.")
{
	block_cache_open(FAKE_STATUS, MIB, 4 * MIB, 0);
	for (size_t i = 0; i < 4; i++)
		block_use(i);
	block_use(0);
	block_use(2);
	block_use(4);
	block_use(5);
	EXPECT(block_is_cached(0));
	EXPECT(block_is_cached(2));
	EXPECT(!block_is_cached(1));
	fake_cache_close(&fake, cache);
}

TEST(second_chance_is_one, "A pin that was used again long ago is evicted in turn.")
{
	block_cache_open(FAKE_STATUS, MIB, 2 * MIB, 0);
	block_use(0);
	block_use(0);
	for (size_t i = 1; i < 6; i++)
		block_use(i);
	EXPECT(!block_is_cached(0));
	fake_cache_close(&fake, cache);
}

static void idle_cache_open(size_t bytes, uint32_t entries)
{
	block_cache_open(FAKE_STATUS, MIB, SIZE_MAX, 0);
	cache_set_limits(cache, bytes, entries);
}

TEST(idle_entries, "The idle pins never exceed their limit of entries, and the oldest pin goes.")
{
	idle_cache_open(SIZE_MAX, 3);
	for (size_t i = 0; i < 10; i++) {
		block_use(i);
		EXPECT(cache_read_stats().entries <= 3);
	}
	EXPECT(block_is_cached(9));
	EXPECT(!block_is_cached(6));
	fake_cache_close(&fake, cache);
}

TEST(idle_none, "If the limit of idle entries is 0, each put unpins.")
{
	idle_cache_open(SIZE_MAX, 0);
	block_use(0);
	EXPECT_EQ(fake.unpins, 1);
	fake_cache_close(&fake, cache);
}

TEST(idle_in_use, "Pins in use do not count against the limits of idle pins.")
{
	struct cache_ref refs[5];

	idle_cache_open(2 * MIB, 2);
	for (size_t i = 0; i < 5; i++)
		refs[i] = block_get(i);
	block_use(5);
	block_use(6);
	EXPECT_EQ(fake.unpins, 0);
	EXPECT(block_is_cached(5));
	EXPECT(block_is_cached(6));
	for (size_t i = 0; i < 5; i++) {
		cache_put(cache, &refs[i]);
		EXPECT_EQ(fake.unpins, i + 1);
	}
	fake_cache_close(&fake, cache);
}

TEST(idle_lowered, "A lower limit of idle pins unpins what is over the limit.")
{
	idle_cache_open(SIZE_MAX, 4);
	for (size_t i = 0; i < 4; i++)
		block_use(i);
	cache_set_limits(cache, SIZE_MAX, 1);
	EXPECT_EQ(fake.unpins, 3);
	fake_cache_close(&fake, cache);
}

TEST(idle_in_use_lowered, "A lower limit of idle entries passes over the pins in use.")
{
	struct cache_ref ref;

	block_cache_open(FAKE_STATUS, MIB, SIZE_MAX, 0);
	ref = block_get(1);
	for (size_t i = 2; i < 8; i++)
		block_use(i);
	cache_set_limits(cache, SIZE_MAX, 3);
	EXPECT_EQ(fake.unpins, 3);
	EXPECT(block_is_cached(1));
	cache_put(cache, &ref);
	fake_cache_close(&fake, cache);
}

TEST(idle_freed, "A lower limit of idle entries passes over the places of pins that have gone.")
{
	block_cache_open(FAKE_STATUS, MIB, SIZE_MAX, 0);
	for (size_t i = 0; i < 8; i++)
		block_use(i);
	cache_invalidate(cache, fake_address(&fake, 1), MIB);
	EXPECT_EQ(fake.unpins, 1);
	cache_set_limits(cache, SIZE_MAX, 3);
	EXPECT_EQ(fake.unpins, 5);
	EXPECT_EQ(cache_read_stats().entries, 3);
	fake_cache_close(&fake, cache);
}

TEST(room_used_last, "Room is made by pins that were not used again since room was made.")
{
	block_cache_open(FAKE_STATUS, MIB, SIZE_MAX, 0);
	for (size_t i = 0; i < 8; i++)
		block_use(i);
	EXPECT(cache_make_room(cache, 1));
	block_use(5);
	EXPECT(cache_make_room(cache, 4));
	EXPECT(block_is_cached(5));
	fake_cache_close(&fake, cache);
}

TEST(age, "A pin goes at the second cache_age() after the last use.")
{
	block_cache_open(FAKE_STATUS, MIB, SIZE_MAX, 0);
	block_use(0);
	block_use(1);
	EXPECT(cache_age(cache));
	block_use(1);
	EXPECT(cache_age(cache));
	EXPECT_EQ(fake.unpins, 1);
	EXPECT(block_is_cached(1));
	EXPECT(cache_age(cache));
	EXPECT_EQ(fake.unpins, 1);
	EXPECT(!cache_age(cache));
	EXPECT_EQ(fake.unpins, 2);
	fake_cache_close(&fake, cache);
}

TEST(age_in_use, "A pin in use has no age; the age begins with the put.")
{
	struct cache_ref ref;

	block_cache_open(FAKE_STATUS, MIB, SIZE_MAX, 0);
	ref = block_get(0);
	for (int i = 0; i < 3; i++)
		EXPECT(!cache_age(cache));
	cache_put(cache, &ref);
	EXPECT(cache_age(cache));
	EXPECT_EQ(fake.unpins, 0);
	EXPECT(!cache_age(cache));
	EXPECT_EQ(fake.unpins, 1);
	fake_cache_close(&fake, cache);
}

static bool (*const idle_looks[])(struct cache *) = { cache_age, cache_drop_changed };

TEST(idle_told, "The first put after cache_age() or cache_drop_changed() tells the source.")
{
	struct cache_ref first, second;

	block_cache_open(FAKE_STATUS, MIB, SIZE_MAX, 0);
	block_use(0);
	EXPECT_EQ(fake.idles, 0);
	for (int i = 0; i < 2; i++) {
		first = block_get(0);
		second = block_get(0);
		EXPECT(!idle_looks[i](cache));
		EXPECT_EQ(fake.idles, i);
		cache_put(cache, &first);
		EXPECT_EQ(fake.idles, i + 1);
		cache_put(cache, &second);
		EXPECT_EQ(fake.idles, i + 1);
	}
	fake_cache_close(&fake, cache);
}

static bool look_needed;

static void look_during_find(void)
{
	fake.in_look = NULL;
	look_needed = cache_age(cache);
}

TEST(idle_look, "A look-up that uses a pin for a moment and finds it stale tells the source.")
{
	struct cache_ref ref;

	block_cache_open(FAKE_IS_CURRENT, MIB, SIZE_MAX, 0);
	block_use(0);
	fake_free(&fake, 0);
	fake.in_look = look_during_find;
	EXPECT(!cache_get_cached(cache, fake_address(&fake, 0), MIB, &ref));
	EXPECT(!look_needed);
	EXPECT_EQ(fake.idles, 1);
	fake_cache_close(&fake, cache);
}

static void look_invalidate(void)
{
	fake.in_look = NULL;
	cache_invalidate(cache, fake_address(&fake, 0), MIB);
	EXPECT_EQ(fake.unpins, 0);
}

TEST(idle_look_last,
     "A pin that ends while a look-up asks for its state is unpinned by the look-up.")
{
	struct cache_ref ref;

	block_cache_open(FAKE_IS_CURRENT, MIB, SIZE_MAX, 0);
	block_use(0);
	fake_free(&fake, 0);
	fake.in_look = look_invalidate;
	EXPECT(!cache_get_cached(cache, fake_address(&fake, 0), MIB, &ref));
	EXPECT_EQ(fake.unpins, 1);
	fake_cache_close(&fake, cache);
}

TEST(entry_limit, "At the limit of entries the cache evicts an idle entry.")
{
	block_cache_open(FAKE_STATUS, MIB, SIZE_MAX, 3);
	for (size_t i = 0; i < 10; i++)
		block_use(i);
	EXPECT_EQ(cache_read_stats().entries, 3);
	EXPECT_EQ(fake.bytes, 3 * MIB);
	fake_cache_close(&fake, cache);
}

TEST(entry_limit_in_use, "If all entries are in use, a new pin is -ENOSPC and is unpinned.")
{
	struct cache_ref a, b, c;

	block_cache_open(FAKE_STATUS, MIB, SIZE_MAX, 2);
	a = block_get(0);
	b = block_get(1);
	EXPECT_EQ(cache_get(cache, fake_address(&fake, 2), 1, NULL, &c), -ENOSPC);
	EXPECT_EQ(fake.bytes, 2 * MIB);
	EXPECT(fake_is_pinned(a.pin) && fake_is_pinned(b.pin));
	cache_put(cache, &a);
	block_use(2);
	cache_put(cache, &b);
	fake_cache_close(&fake, cache);
}

TEST(exhausted, "If pin() returns -ENOSPC, the cache evicts idle entries and tries again.")
{
	block_cache_open(FAKE_STATUS, MIB, SIZE_MAX, 0);
	fake.capacity = 4 * MIB;
	for (size_t i = 0; i < 10; i++)
		block_use(i);
	EXPECT_EQ(fake.bytes, 4 * MIB);
	EXPECT_EQ(cache_read_stats().evictions, 6);
	fake_cache_close(&fake, cache);
}

TEST(exhausted_for_ever,
     "The cache evicts 1, 2, 4, ... and the last pin, and then returns the error of pin().")
{
	struct cache_ref ref, used;

	block_cache_open(FAKE_STATUS, MIB, SIZE_MAX, 0);
	used = block_get(8);
	for (size_t i = 0; i < 8; i++)
		block_use(i);
	fake.tries = 0;
	fake.error = -ENOMEM;
	EXPECT_EQ(cache_get(cache, fake_address(&fake, 9), 1, NULL, &ref), -ENOMEM);
	EXPECT_EQ(fake.tries, 1 + 4);
	EXPECT_EQ(fake.unpins, 8);
	EXPECT(fake_is_pinned(used.pin));
	EXPECT_EQ(cache_read_stats().entries, 1);
	cache_put(cache, &used);
	fake.error = 0;
	block_use(9);
	fake_cache_close(&fake, cache);
}

TEST(other_error,
     "An error of pin() other than a shortage is returned at once, without an eviction.")
{
	struct cache_ref ref;

	block_cache_open(FAKE_STATUS, MIB, SIZE_MAX, 0);
	block_use(0);
	fake.error = -EFAULT;
	EXPECT_EQ(cache_get(cache, fake_address(&fake, 1), 1, NULL, &ref), -EFAULT);
	EXPECT_EQ(fake.tries, 2);
	EXPECT_EQ(cache_read_stats().entries, 1);
	EXPECT(block_is_cached(0));
	fake_cache_close(&fake, cache);
}

static void free_while_pinning(struct fake *f)
{
	f->in_pin = NULL;
	cache_invalidate(cache, fake_address(f, 0), 1);
}

TEST(invalidate_while_pinning, "Memory that is freed during its pin is not found later.")
{
	struct cache_ref ref;

	block_cache_open(FAKE_NEITHER, MIB, SIZE_MAX, 0);
	fake.in_pin = free_while_pinning;
	ref = block_get(0);
	EXPECT(fake_is_pinned(ref.pin));
	EXPECT(!block_is_cached(0));
	cache_put(cache, &ref);
	EXPECT_EQ(fake.unpins, 1);
	fake_cache_close(&fake, cache);
}

TEST(destroy_in_use,
     "While a reference is held, destroy is -EBUSY; later, destroy unpins everything.")
{
	struct cache_ref ref;

	block_cache_open(FAKE_STATUS, MIB, SIZE_MAX, 0);
	block_use(1);
	ref = block_get(0);
	EXPECT_EQ(cache_destroy(cache), -EBUSY);
	EXPECT_EQ(fake.unpins, 0);
	EXPECT(block_is_cached(1));
	cache_put(cache, &ref);
	fake_cache_close(&fake, cache);
}

/* Runs in the child; the exit status is the line of the failed check. */
#define CHILD_EXPECT(condition)                    \
	do {                                       \
		if (!(condition))                  \
			_exit(__LINE__ % 251 + 1); \
	} while (0)

static void block_use_in_child(struct cache_ref *held, struct cache_ref *counted)
{
	struct cache_ref ref;

	alarm(TEST_HANG_S);
	CHILD_EXPECT(cache_read_stats().entries == 0 && cache_read_stats().bytes_pinned == 0);
	CHILD_EXPECT(!cache_get(cache, fake_address(&fake, 0), 1, NULL, &ref));
	CHILD_EXPECT(fake.pins == 3 && ref.pin != held->pin);
	cache_put(cache, held);
	cache_put(cache, counted);
	cache_put(cache, &ref);
	CHILD_EXPECT(fake.unpins == 0 && cache_read_stats().entries == 1);
	CHILD_EXPECT(block_is_cached(0) && !block_is_cached(1));
	cache_invalidate(cache, fake_address(&fake, 0), 2 * MIB);
	CHILD_EXPECT(fake.unpins == 2 && fake.wrong == 0);
	_exit(0);
}

static int child_exit_status(pid_t child)
{
	int status;

	if (waitpid(child, &status, 0) != child || !WIFEXITED(status))
		return -1;
	return WEXITSTATUS(status);
}

TEST(forked, "A child finds and unpins no entry of the parent, and may use the cache.")
{
	struct cache_ref ref[10];
	pid_t child;

	block_cache_open(FAKE_NEITHER, MIB, SIZE_MAX, 0);
	block_use(1);
	for (int i = 0; i < 10; i++)
		ref[i] = block_get(0);
	child = fork();
	if (!child)
		block_use_in_child(&ref[0], &ref[9]);
	EXPECT_EQ(child_exit_status(child), 0);
	EXPECT(block_is_cached(0));
	EXPECT(block_is_cached(1));
	for (int i = 0; i < 10; i++)
		cache_put(cache, &ref[i]);
	fake_cache_close(&fake, cache);
}

TEST(forked_over_limit, "The pins of a parent do not count against the limits of a child.")
{
	struct cache_ref ref;
	pid_t child;

	block_cache_open(FAKE_NEITHER, MIB, MIB, 0);
	ref = block_get(0);
	block_use(1);
	child = fork();
	if (!child) {
		block_use(2);
		_exit(fake.unpins == 0 && block_is_cached(2) ? 0 : 1);
	}
	EXPECT_EQ(child_exit_status(child), 0);
	cache_put(cache, &ref);
	fake_cache_close(&fake, cache);
}

static void block_use_in_clone(struct cache_ref *held)
{
	struct cache_ref ref;

	alarm(TEST_HANG_S);
	CHILD_EXPECT(!cache_get_cached(cache, fake_address(&fake, 1), 1, &ref));
	CHILD_EXPECT(!cache_get(cache, fake_address(&fake, 0), 1, NULL, &ref));
	CHILD_EXPECT(fake.pins == 3 && ref.pin != held->pin);
	cache_put(cache, held);
	cache_put(cache, &ref);
	CHILD_EXPECT(block_is_cached(0) && !block_is_cached(1));
	cache_make_room(cache, UINT32_MAX);
	CHILD_EXPECT(fake.unpins == 2 && fake.wrong == 0);
	CHILD_EXPECT(cache_read_stats().entries == 0 && cache_read_stats().bytes_pinned == 0);
	_exit(0);
}

static const struct clone_check {
	const char *name;
	enum fake_check check;
} clone_checks[] = {
	{ "status", FAKE_STATUS },
	{ "call", FAKE_IS_CURRENT },
	{ "neither", FAKE_NEITHER },
};

TEST_EACH(cloned, struct clone_check, clone_checks,
	  "A child without fork handlers finds and unpins no entry of the parent, either.")
{
	struct cache_ref ref;
	pid_t child;

	if (!strcmp(SANITIZER, "thread"))
		test_skip("the thread sanitizer does not know such a child");
	block_cache_open(row->check, MIB, SIZE_MAX, 0);
	block_use(1);
	ref = block_get(0);
	child = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
	if (!child)
		block_use_in_clone(&ref);
	EXPECT_EQ(child_exit_status(child), 0);
	EXPECT(block_is_cached(0));
	EXPECT(block_is_cached(1));
	cache_put(cache, &ref);
	fake_cache_close(&fake, cache);
}
