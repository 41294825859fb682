/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The module's arithmetic: ranges, runs of contiguous memory, and words of the status page.  The tests
 * run in user space.
 */
#include "core/range.h"
#include "core/slot.h"
#include "harness.h"

enum { PAGE = 4096 }; /* or any power of two */
#define MAX UINT64_MAX
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

TEST(range_valid, "A range of whole pages that ends before the last page is valid.")
{
	EXPECT(range_is_valid(0, PAGE, PAGE));
	EXPECT(range_is_valid(PAGE, MAX - 2 * PAGE + 1, PAGE));
	EXPECT(range_is_valid(MAX - 2 * PAGE + 1, PAGE, PAGE));
}

TEST(range_empty, "An empty range is not valid.")
{
	EXPECT(!range_is_valid(PAGE, 0, PAGE));
}

TEST(range_unaligned, "A range that begins or ends inside a page is not valid.")
{
	EXPECT(!range_is_valid(PAGE + 1, PAGE, PAGE));
	EXPECT(!range_is_valid(PAGE, PAGE + 1, PAGE));
	EXPECT(!range_is_valid(PAGE / 2, PAGE / 2, PAGE));
	EXPECT(!range_is_valid(PAGE, PAGE, 16 * PAGE));
}

TEST(range_wraps, "A range that reaches the end of the address space is not valid.")
{
	EXPECT(!range_is_valid(MAX - PAGE + 1, PAGE, PAGE));
	EXPECT(!range_is_valid(MAX - PAGE + 1, 2 * PAGE, PAGE));
	EXPECT(!range_is_valid(2 * PAGE, MAX - PAGE + 1, PAGE));
}

TEST(run_extends, "A run is extended by memory that begins where the run ends.")
{
	struct gdmabuf_run run = { 0x1000, PAGE };

	EXPECT(run_extend(&run, 0x2000, 2 * PAGE));
	EXPECT_EQ(run.start, 0x1000);
	EXPECT_EQ(run.length, 3 * PAGE);
}

TEST(run_extends_not,
     "A run is not extended by memory elsewhere, and an empty run is never extended.")
{
	struct gdmabuf_run run = { 0x3000, PAGE }, empty = { 0, 0 };

	EXPECT(!run_extend(&run, 0x2000, PAGE));
	EXPECT(!run_extend(&run, 0x3000, PAGE));
	EXPECT(!run_extend(&run, 0x5000, PAGE));
	EXPECT_EQ(run.length, PAGE);
	EXPECT(!run_extend(&empty, 0, PAGE));
}

/* Pages 0-1, 2, 3-7; the last two follow each other but are two runs. */
static const struct gdmabuf_run runs[] = {
	{ 0x100000, 2 * PAGE },
	{ 0x10000, PAGE },
	{ 0x11000, 5 * PAGE },
};
enum { PAGES = 8 };

static u64 address_of_page(u64 page)
{
	if (page < 2)
		return 0x100000 + page * PAGE;
	return page < 3 ? 0x10000 : 0x11000 + (page - 3) * PAGE;
}

TEST(run_iter_pages, "The iterator returns every page of a part once, in order.")
{
	for (u64 first = 0; first < PAGES; first++)
		for (u64 end = first + 1; end <= PAGES; end++) {
			struct gdmabuf_run_iter it;
			u64 page = first;

			run_first(&it, runs, first * PAGE, (end - first) * PAGE);
			for (; it.length; run_next(&it))
				for (u64 done = 0; done < it.length; done += PAGE)
					EXPECT_EQ(it.start + done, address_of_page(page++));
			EXPECT_EQ(page, end);
		}
}

TEST(run_iter_bounds, "The iterator stops at the last run that the part touches.")
{
	struct gdmabuf_run_iter it;

	run_first(&it, runs, PAGE, PAGE);
	EXPECT(it.run == &runs[0]);
	run_next(&it);
	EXPECT_EQ(it.length, 0);
	EXPECT(it.run == &runs[0]);
	run_first(&it, runs, 2 * PAGE, PAGE);
	EXPECT(it.run == &runs[1]);
}

TEST(runs_counted, "runs_count() counts the runs that the first bytes touch.")
{
	EXPECT_EQ(runs_count(runs, PAGES * PAGE, MAX), COUNT(runs));
	EXPECT_EQ(runs_count(runs, PAGE, MAX), 1);
	EXPECT_EQ(runs_count(runs, 3 * PAGE, MAX), 2);
}

TEST(runs_segments, "A run longer than a segment counts as several segments, rounded up.")
{
	EXPECT_EQ(runs_count(runs, PAGES * PAGE, PAGE), PAGES);
	EXPECT_EQ(runs_count(runs, PAGES * PAGE, 2 * PAGE), 1 + 1 + 3);
}

TEST(runs_large, "runs_count() counts runs longer than 4 GiB.")
{
	const struct gdmabuf_run large = { 1ULL << 40, 1ULL << 36 };

	EXPECT_EQ(runs_count(&large, 1ULL << 36, MAX), 1);
	EXPECT_EQ(runs_count(&large, 1ULL << 36, 1ULL << 31), 32);
	EXPECT_EQ(runs_count(&large, PAGE, 1ULL << 31), 1);
}

TEST(slot_begins, "The first generation of a slot is even and not 0.")
{
	EXPECT_EQ(slot_word_next(0), 2);
}

TEST(slot_goes_on,
     "A slot's next generation is larger, whether the watch before is current or over.")
{
	u32 word = 0;

	for (int i = 0; i < 1000; i++) {
		u32 generation = slot_word_next(word);

		EXPECT(generation > word);
		EXPECT_EQ(generation % 2, 0);
		EXPECT(slot_word_over(generation) != generation);
		EXPECT_EQ(slot_word_next(slot_word_over(generation)), slot_word_next(generation));
		word = i % 2 ? slot_word_over(generation) : generation;
	}
}

TEST(slot_runs_out, "After the last generation a slot has none, so no word comes twice.")
{
	const u32 last = UINT32_MAX - 1;

	EXPECT_EQ(slot_word_next(last - 2), last);
	EXPECT_EQ(slot_word_next(last), 0);
	EXPECT_EQ(slot_word_next(slot_word_over(last)), 0);
}
