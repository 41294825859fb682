/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

#include "harness.h"
#include "import/kinds/ranges.h"
#include "util/log.h"

#define COUNT 512
#define STEPS 200000
#define SPACE 4096 /* few addresses, so most ranges overlap */

static struct range ranges[COUNT];
static bool inside[COUNT];
static struct range *set;
static uint64_t state;

static uint64_t ranges_random_below(uint64_t limit)
{
	state = state * 6364136223846793005 + 1442695040888963407;
	return (state >> 33) % limit;
}

static bool range_meets(const struct range *r, uintptr_t first, uintptr_t last)
{
	return r->first <= last && first <= r->last;
}

static bool naive_find(uintptr_t first, uintptr_t last)
{
	for (int i = 0; i < COUNT; i++)
		if (inside[i] && range_meets(&ranges[i], first, last))
			return true;
	return false;
}

/* Most ranges are short; some enclose many ranges. */
static uintptr_t ranges_random_length(void)
{
	return ranges_random_below(16) ? ranges_random_below(8) : ranges_random_below(SPACE / 4);
}

static void ranges_toggle(int i)
{
	if (inside[i]) {
		ranges_remove(&set, &ranges[i]);
	} else {
		ranges[i].first = ranges_random_below(SPACE);
		ranges[i].last = ranges[i].first + ranges_random_length();
		ranges_insert(&set, &ranges[i]);
	}
	inside[i] = !inside[i];
}

static void expect_same_answer(void)
{
	const uintptr_t first = ranges_random_below(SPACE), last = first + ranges_random_length();
	const struct range *found = ranges_find(set, first, last);

	EXPECT_EQ(found != NULL, naive_find(first, last));
	if (!found)
		return;
	EXPECT(found >= ranges && found < ranges + COUNT && inside[found - ranges]);
	EXPECT(range_meets(found, first, last));
}

/* Up to @alive of the ranges are in the set at a time. */
static void ranges_walk(uint64_t seed, int alive)
{
	memset(inside, 0, sizeof(inside));
	set = NULL;
	state = seed;
	for (int step = 0; step < STEPS; step++) {
		ranges_toggle((int)ranges_random_below(alive));
		expect_same_answer();
	}
	for (int i = 0; i < COUNT; i++)
		if (inside[i])
			ranges_toggle(i);
	EXPECT(!set);
}

TEST(like_a_walk, "A lookup in a set of ranges finds the range that a walk over all ranges finds.")
{
	ranges_walk(1, 4);
	ranges_walk(2, 40);
	ranges_walk(3, COUNT);
}

TEST(same_range, "A set can contain a range several times, and removes each copy separately.")
{
	struct range same[3];

	set = NULL;
	for (int i = 0; i < 3; i++) {
		same[i] = (struct range){ .first = 8, .last = 9 };
		ranges_insert(&set, &same[i]);
	}
	for (int i = 0; i < 3; i++) {
		EXPECT(ranges_find(set, 9, 12));
		ranges_remove(&set, &same[i]);
	}
	EXPECT(!ranges_find(set, 9, 12));
}

static int tree_depth(const struct range *r)
{
	int left, right;

	if (!r)
		return 0;
	left = tree_depth(r->left);
	right = tree_depth(r->right);
	return 1 + (left > right ? left : right);
}

TEST(balanced, "Ranges inserted in order do not make a deep tree.")
{
	static struct range many[40000];

	set = NULL;
	for (int i = 0; i < 40000; i++) {
		many[i] = (struct range){ .first = 10 * i, .last = 10 * i + 5 };
		ranges_insert(&set, &many[i]);
	}
	EXPECT(tree_depth(set) < 80); /* 15 at best; 40000 for a list */
	EXPECT(!ranges_find(set, 99996, 99999));
	EXPECT(ranges_find(set, 99996, 100000) == &many[10000]);
}

TEST(refused, "The sentence about bytes that are no range says what is wrong with them.")
{
	EXPECT_EQ(range_refuse(0x1000, 0), -EINVAL);
	EXPECT(!strcmp(log_last(), "0 bytes at 0x1000 are no range"));
	EXPECT_EQ(range_refuse(0x1000, SIZE_MAX), -EINVAL);
	EXPECT(!strcmp(log_last(),
		       "0xffffffffffffffff bytes at 0x1000 reach beyond the last address"));
}
