/* SPDX-License-Identifier: Apache-2.0 */
/* Records of platforms (icd/facts/facts.h), and rules of images. */
#include "harness.h"

#include <stdio.h>
#include <string.h>

#include "icd/facts/facts.h"

static const struct facts known = {
	.name = "a device",
	.type = { [IMPORT_HOST] = { "host_ptr", 64, false, "by self-test" },
		  [IMPORT_DMABUF] = { "-", 0, false, "no dma-buf" } },
	.image2d = true,
	.is_best = true,
	.rule = { .align = 64, .largest = 1048576, .kinds = 3, .accesses = 0xfff },
	.exporters = 5,
	.large_why = "died",
	.has_images = true,
	.images = { [3] = { IMAGE_ZERO_COPY, false, 256, 128, 0xfff, 0, 64, { [2] = 4, [4] = 16 } },
		    [4] = { .found = IMAGE_COPIES } },
};

TEST(sealed, "A record is what was sealed: no other byte, length, number of devices or layout.")
{
	static struct facts_record record = { .count = 2 };
	size_t size;

	record.device[0] = known;
	facts_seal(&record);
	size = facts_size(&record);
	EXPECT(facts_are_valid(&record, size));
	EXPECT(!facts_are_valid(&record, size - 1));
	EXPECT(!facts_are_valid(&record, size + 1));
	EXPECT(!facts_are_valid(&record, 4));
	record.device[1].is_best = true;
	EXPECT(!facts_are_valid(&record, size));
	record.device[1].is_best = false;
	record.progress.layout++;
	EXPECT(!facts_are_valid(&record, size));
	facts_seal(&record);
	record.count = FACTS_DEVICES + 1;
	EXPECT(!facts_are_valid(&record, facts_size(&record)));
}

static const struct part {
	const char *name;
	struct facts facts;
	bool is_whole;
} parts[] = {
	{ "nothing_taken", { .type = { { .method = "-" }, { .method = "-" } } }, true },
	{ "type_unknown",
	  { .type = { { .method = "-" }, { .method = "khr" } }, .is_unknown = true },
	  false },
	{ "exporter_unknown",
	  { .type = { { .method = "khr" }, { .method = "khr" } }, .is_unknown = true },
	  false },
};

TEST_EACH(unknown, struct part, parts, "A record in which anything is unknown is not whole.")
{
	static struct facts_record record = { .count = 2 };

	record.device[1] = row->facts;
	facts_seal(&record);
	EXPECT_EQ(record.is_whole, row->is_whole);
}

static const struct habit {
	const char *name;
	bool is_all;
} habits[] = { { "tried", false }, { "all", true } };

static const struct outside {
	const char *name;
	struct image_shape image;
	bool is_taken;
} outsides[] = {
	{ "inside", { IMAGE_OF_MEMORY, true, 0, (void *)64, 4, 256, 128, 1032 }, true },
	{ "no_gap", { IMAGE_OF_MEMORY, true, 0, (void *)64, 4, 4, 3, 16 }, true },
	{ "row", { IMAGE_OF_MEMORY, true, 0, (void *)64, 4, 3, 3, 12 }, false },
	{ "address", { IMAGE_OF_MEMORY, true, 0, (void *)32, 4, 2, 1, 8 }, false },
	{ "pixel", { IMAGE_OF_MEMORY, true, 0, (void *)64, 8, 1, 1, 8 }, false },
	{ "large_pixel", { IMAGE_OF_MEMORY, true, 0, (void *)64, 32, 1, 1, 32 }, false },
	{ "row_of_other_pixel", { IMAGE_OF_MEMORY, true, 0, (void *)64, 16, 1, 1, 24 }, false },
	{ "width", { IMAGE_OF_MEMORY, true, 0, (void *)64, 4, 258, 1, 1032 }, false },
	{ "height", { IMAGE_OF_MEMORY, true, 0, (void *)64, 4, 2, 129, 8 }, false },
	{ "access", { IMAGE_OF_MEMORY, true, CL_MEM_READ_ONLY, (void *)64, 4, 2, 1, 8 }, false },
	{ "other_object", { IMAGE_OF_BUFFER, true, 0, (void *)64, 4, 2, 1, 8 }, false },
	{ "other_type", { IMAGE_OF_MEMORY, false, 0, (void *)64, 4, 2, 1, 8 }, false },
};

TEST_EACH_PAIR(
	image_rule, struct outside, outsides, struct habit, habits,
	"An image with a property outside the rule is refused, unless the rule is all images.")
{
	struct image_rule rules[IMAGE_RULES] = { [3] = known.images[3] };
	const bool is_other = row->image.from != IMAGE_OF_MEMORY || !row->image.is_2d;

	rules[3].unit[2] = 8;
	rules[3].accesses = 1u << host_rule_access(0);
	rules[3].is_all = column->is_all;
	EXPECT_EQ(image_rule_check(rules, &row->image),
		  row->is_taken || (column->is_all && !is_other) ? CL_SUCCESS
								 : CL_INVALID_OPERATION);
}
