/* SPDX-License-Identifier: Apache-2.0 */
/* Records of platforms as text (icd/facts/facts.h). */
#include "harness.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "icd/facts/facts.h"

static const char whole[] =
	"device 0 a device\n"
	"host host_ptr 64 by self-test\n"
	"dma_buf - 0 no dma-buf\n"
	"unknown 0\n"
	"image2d 1\n"
	"best 1\n"
	"rule align 64, own 0, largest 1048576, kinds 3, accesses fff end\n"
	"exporters 5\n"
	"large_memory 0 died\n"
	"images 1\n"
	"image 0 unproved\n"
	"image 1 unproved\n"
	"image 2 unproved\n"
	"image 3 zero_copy all 0, largest 256x128, accesses fff, rows 0:0 0:0 64:4 0:0 64:16 end\n"
	"image 4 copies\n"
	"image 5 unproved\n"
	"image 6 unproved\n"
	"image 7 unproved\n"
	"image 8 unproved\n"
	"image 9 unproved\n"
	"end\n";

static const struct facts known = {
	.name = "a device",
	.type = { [IMPORT_HOST] = { "host_ptr", 64, "by self-test" },
		  [IMPORT_DMABUF] = { "-", 0, "no dma-buf" } },
	.image2d = true,
	.is_best = true,
	.rule = { .align = 64, .largest = 1048576, .kinds = 3, .accesses = 0xfff },
	.exporters = 5,
	.large_why = "died",
	.has_images = true,
	.images = { [3] = { IMAGE_ZERO_COPY,
			    false,
			    256,
			    128,
			    0xfff,
			    { [2] = 64, [4] = 64 },
			    { [2] = 4, [4] = 16 } },
		    [4] = { .found = IMAGE_COPIES } },
};

/* Returns the length. */
static size_t facts_put_section(const struct facts *facts, unsigned int number,
				char text[FACTS_SECTION_SIZE])
{
	size_t used = facts_format(facts, number, text, FACTS_SECTION_SIZE);

	used += (size_t)snprintf(text + used, FACTS_SECTION_SIZE - used, FACTS_END);
	EXPECT(used < FACTS_SECTION_SIZE);
	return used;
}

/* A record of @count devices. */
static char *facts_write_record(unsigned int count)
{
	char *text = calloc(count, FACTS_SECTION_SIZE);
	size_t used = 0;

	EXPECT(text);
	for (unsigned int i = 0; i < count; i++)
		used += facts_put_section(&known, i, text + used);
	return text;
}

/* The number of devices; -1: no record. */
static int facts_count(const char *text)
{
	struct facts_record *record = facts_parse(text);
	const int count = record ? (int)record->count : -1;

	free(record);
	return count;
}

TEST(text, "A record is the text that the header describes.")
{
	char text[FACTS_SECTION_SIZE];

	EXPECT_EQ(facts_put_section(&known, 0, text), strlen(whole));
	EXPECT(!strcmp(text, whole));
}

static const struct name {
	const char *name, *device, *driver, *is;
} names[] = {
	{ "of_both", "a device", "1.0", "a device, driver 1.0" },
	{ "of_lines", "a\ndevice", "1\n0", "a device, driver 1 0" },
	{ "unknown", NULL, NULL, ", driver " },
	{ "cut", "0123456789012345678901234567890123456789012345678901234567890123456789",
	  "0123456789012345678901234567890123456789012345678901234567890123456789",
	  "0123456789012345678901234567890123456789012345678901234567890123"
	  ", driver 012345678901234567890123456789012345678901234567890123" },
};

TEST_EACH(called, struct name, names,
	  "A device has its name and its driver's version, in one short line.")
{
	char name[FACTS_NAME_SIZE];

	facts_set_name(name, row->device, row->driver);
	EXPECT(!strcmp(name, row->is));
}

static const struct example {
	const char *name;
	struct facts facts;
} examples[] = {
	{ "nothing", { .type = { { .method = "-" }, { .method = "-" } } } },
	{ "unknown",
	  { .type = { { "-", 0, "no memory: later" }, { "-", 0, "end" } }, .is_unknown = true } },
	{ "names",
	  { .name = "end", .type = { { .method = "native" }, { .method = "opaque_fd" } } } },
	{ "own_address",
	  { .name = " a  b ",
	    .type = { { "host_ptr", 1, " two  blanks " }, { "khr", 4096, "host - 0" } },
	    .rule = { .align = 1, .own_address = true, .largest = (size_t)1 << 40 },
	    .exporters = 0xffffffff,
	    .takes_large = true,
	    .has_images = true,
	    .images = { { IMAGE_ZERO_COPY, true, UINT_MAX, UINT_MAX, 1, { 1 }, { 1 } },
			[IMAGE_RULES - 1] = { .found = IMAGE_FATAL } } } },
};

static void expect_same_images(const struct image_rule *a, const struct image_rule *b)
{
	EXPECT_EQ(a->found, b->found);
	EXPECT_EQ(a->is_all, b->is_all);
	EXPECT_EQ(a->width, b->width);
	EXPECT_EQ(a->height, b->height);
	EXPECT_EQ(a->accesses, b->accesses);
	for (int i = 0; i < IMAGE_PIXELS; i++) {
		EXPECT_EQ(a->align[i], b->align[i]);
		EXPECT_EQ(a->pitch[i], b->pitch[i]);
	}
}

TEST_EACH(inverse, struct example, examples, "What is written is read as it was.")
{
	char text[FACTS_SECTION_SIZE];
	struct facts_record *record;
	const struct facts *a = &row->facts, *b;

	facts_put_section(a, 0, text);
	record = facts_parse(text);
	EXPECT(record);
	EXPECT_EQ(record->count, 1);
	b = &record->device[0];
	EXPECT(!strcmp(a->name, b->name));
	for (int i = 0; i < IMPORT_TYPES; i++) {
		EXPECT(!strcmp(a->type[i].method, b->type[i].method));
		EXPECT(!strcmp(a->type[i].why, b->type[i].why));
		EXPECT_EQ(a->type[i].align, b->type[i].align);
	}
	EXPECT_EQ(a->is_unknown, b->is_unknown);
	EXPECT_EQ(a->image2d, b->image2d);
	EXPECT_EQ(a->is_best, b->is_best);
	EXPECT_EQ(a->rule.align, b->rule.align);
	EXPECT_EQ(a->rule.own_address, b->rule.own_address);
	EXPECT_EQ(a->rule.largest, b->rule.largest);
	EXPECT_EQ(a->rule.kinds, b->rule.kinds);
	EXPECT_EQ(a->rule.accesses, b->rule.accesses);
	EXPECT_EQ(a->exporters, b->exporters);
	EXPECT_EQ(a->takes_large, b->takes_large);
	EXPECT(!strcmp(a->large_why, b->large_why));
	EXPECT_EQ(a->has_images, b->has_images);
	for (unsigned int i = 0; i < IMAGE_RULES; i++)
		expect_same_images(&a->images[i], &b->images[i]);
	EXPECT(!b->has_died);
	free(record);
}

TEST(longest, "A section with the longest sentences and name has room, and is read as it was.")
{
	struct facts facts = known;
	char text[FACTS_SECTION_SIZE];
	struct facts_record *record;

	memset(facts.name, 'n', sizeof(facts.name) - 1);
	memset(facts.large_why, 'l', sizeof(facts.large_why) - 1);
	for (int i = 0; i < IMPORT_TYPES; i++)
		memset(facts.type[i].why, 'w', sizeof(facts.type[i].why) - 1);
	facts.type[IMPORT_HOST].align = SIZE_MAX;
	facts.rule.largest = SIZE_MAX;
	/* Each line of an image may be there twice, and the first is shorter. */
	for (int i = 0; i < IMAGE_RULES; i++)
		facts.images[i] = (struct image_rule){ IMAGE_ZERO_COPY,
						       true,
						       1u << 31,
						       1u << 31,
						       0xfff,
						       { 65536, 65536, 65536, 65536, 65536 },
						       { 65536, 65536, 65536, 65536, 65536 } };
	EXPECT(facts_put_section(&facts, FACTS_DEVICES - 1, text) +
		       IMAGE_RULES * (size_t)IMAGE_RULE_LINE_SIZE <
	       sizeof(text));
	facts_put_section(&facts, 0, text);
	record = facts_parse(text);
	EXPECT(record);
	EXPECT(!strcmp(record->device[0].name, facts.name));
	EXPECT(!strcmp(record->device[0].type[IMPORT_DMABUF].why, facts.type[IMPORT_DMABUF].why));
	free(record);
}

TEST(died, "Of a device whose driver dies, the record says why, and that no memory is taken.")
{
	struct facts_record *record = facts_parse("device 0 a device\n"
						  "died the driver crashes\n"
						  "end\n");

	EXPECT(record);
	EXPECT(record->device[0].has_died);
	for (int i = 0; i < IMPORT_TYPES; i++) {
		EXPECT(!strcmp(record->device[0].type[i].method, "-"));
		EXPECT(!strcmp(record->device[0].type[i].why, "the driver crashes"));
	}
	EXPECT(facts_are_whole(record));
	free(record);
}

static const struct ended {
	const char *name, *line;
	bool has_died;
} ended[] = {
	{ "died", "died the driver crashes\n", true },
	{ "lost", "lost the test was ended by others\n", false },
};

TEST_EACH(
	ended_in_danger, struct ended, ended,
	"If a test that the driver may not survive ends its process, what was known before holds.")
{
	char text[2 * sizeof(whole)];
	struct facts_record *record;
	const struct facts *facts;

	snprintf(text, sizeof(text), "%.*stest one\nbest 1\ntest two\n%send\n",
		 (int)(strlen(whole) - strlen(FACTS_END)), whole, row->line);
	record = facts_parse(text);
	EXPECT(record);
	facts = &record->device[0];
	EXPECT_EQ(facts->begun, 2);
	EXPECT_EQ(facts->has_died, row->has_died);
	EXPECT(!facts->is_best);
	EXPECT(!strcmp(facts->type[IMPORT_HOST].method, "host_ptr"));
	EXPECT_EQ(facts->rule.align, 64);
	free(record);
}

TEST(lost, "Of a device whose test was ended by others, nothing is known.")
{
	struct facts_record *record =
		facts_parse("device 0 a device\nlost the test was ended by others\nend\n");

	EXPECT(record);
	EXPECT(!strcmp(record->device[0].type[IMPORT_HOST].method, "-"));
	EXPECT(record->device[0].is_unknown);
	EXPECT(!facts_are_whole(record));
	free(record);
}

TEST(changes, "The changed lines of a section, behind an older one, make it the newer one.")
{
	struct facts other = known;
	char text[FACTS_SECTION_SIZE], changes[FACTS_SECTION_SIZE];
	struct facts_record *record;

	facts_format(&known, 0, text, sizeof(text));
	facts_format(&known, 0, changes, sizeof(changes));
	facts_keep_changes(text, changes);
	EXPECT(!*changes);
	other.is_best = false;
	strcpy(other.type[IMPORT_DMABUF].why, "image2d 1");
	facts_format(&other, 0, changes, sizeof(changes));
	facts_keep_changes(text, changes);
	EXPECT(!strcmp(changes, "dma_buf - 0 image2d 1\nbest 0\n"));
	strcat(strcat(text, changes), FACTS_END);
	record = facts_parse(text);
	EXPECT(record);
	EXPECT(!record->device[0].is_best);
	EXPECT(!strcmp(record->device[0].type[IMPORT_DMABUF].why, "image2d 1"));
	free(record);
}

static const struct image_end {
	const char *name, *text;
	bool has_died, is_whole;
	enum image_found found;
} image_ends[] = {
	{ "died", "died the driver crashes", true, true, IMAGE_FATAL },
	{ "lost", "lost others ended it", false, false, IMAGE_UNPROVED },
};

TEST_EACH(ended_by_image, struct image_end, image_ends,
	  "If the process ends in the test of an image, the record has what was found before, and "
	  "the image is the "
	  "driver's fault unless others ended the process.")
{
	char text[2 * sizeof(whole)];
	struct facts_record *record;

	snprintf(text, sizeof(text),
		 "%.*simage 0 fatal\n"
		 "%s\nend\n",
		 (int)(strlen(whole) - strlen(FACTS_END)), whole, row->text);
	record = facts_parse(text);
	EXPECT(record);
	EXPECT(!strcmp(record->device[0].type[IMPORT_HOST].method, "host_ptr"));
	EXPECT_EQ(record->device[0].rule.align, 64);
	EXPECT_EQ(record->device[0].images[3].found, IMAGE_ZERO_COPY);
	EXPECT_EQ(record->device[0].images[0].found, row->found);
	EXPECT_EQ(record->device[0].has_died, row->has_died);
	EXPECT_EQ(facts_are_whole(record), row->is_whole);
	EXPECT(facts_have_images(record));
	free(record);
}

TEST(last_line, "Of several lines of an image, the last counts.")
{
	char text[2 * sizeof(whole)];
	struct facts_record *record;

	snprintf(text, sizeof(text),
		 "%.*simage 3 fatal\n"
		 "end\n",
		 (int)(strlen(whole) - strlen(FACTS_END)), whole);
	record = facts_parse(text);
	EXPECT(record);
	EXPECT_EQ(record->device[0].images[3].found, IMAGE_FATAL);
	EXPECT_EQ(record->device[0].images[4].found, IMAGE_COPIES);
	free(record);
}

TEST(images, "A driver that dies in another test has its images tested, unless it takes nothing.")
{
	struct facts_record *record = facts_parse("device 0 a device\n"
						  "died the driver crashes\n"
						  "end\n");
	struct facts facts = known;
	char text[FACTS_SECTION_SIZE];

	EXPECT(record && facts_have_images(record));
	free(record);
	facts.has_images = false;
	facts_format(&facts, 0, text, sizeof(text));
	strcat(text, "test one\ndied the driver crashes\n" FACTS_END);
	record = facts_parse(text);
	EXPECT(record && record->device[0].has_died);
	EXPECT(!facts_have_images(record));
	free(record);
}

static const struct damage {
	const char *name, *from, *to;
} damages[] = {
	{ "no_end", "\nend\n", "\n" },
	{ "two_ends", "end\n", "end\nend\n" },
	{ "no_device", "device 0 a device\n", "" },
	{ "no_number", "device 0", "device" },
	{ "other_number", "device 0", "device 1" },
	{ "no_name", "0 a device", "0" },
	{ "no_host", "host host_ptr 64 by self-test\n", "" },
	{ "no_dma_buf", "dma_buf - 0 no dma-buf\n", "" },
	{ "long_method", "host_ptr", "host_ptr_host_ptr_host_ptr" },
	{ "no_method", "host_ptr 64", "64" },
	{ "no_align", "host_ptr 64", "host_ptr" },
	{ "unknown_line", "image2d 1\n", "image3d 1\n" },
	{ "empty_line", "image2d 1\n", "\n" },
	{ "no_switch", "image2d 1", "image2d 2" },
	{ "more_than_a_switch", "image2d 1", "image2d 1 1" },
	{ "no_rule", "rule align 64", "rule 64" },
	{ "rule_cut", "fff end", "fff" },
	{ "align_of_rule", "align 64", "align 65" },
	{ "kinds_of_rule", "kinds 3", "kinds ffffffff" },
	{ "accesses_of_rule", "accesses fff", "accesses ffff" },
	{ "exporters", "exporters 5", "exporters x" },
	{ "two_exporter_words", "exporters 5", "exporters 5 0" },
	{ "large_memory", "large_memory 0", "large_memory 2" },
	{ "no_large_memory", "large_memory 0", "large_memory" },
	{ "test_without_name", "image2d 1\n", "test\n" },
	{ "number_of_image", "image 3", "image 10" },
	{ "word_of_image", "zero_copy all", "zero all" },
	{ "image_cut", "16 end\nimage 4", "16\nimage 4" },
	{ "align_of_image", "64:4", "65537:4" },
	{ "pitch_of_image", "64:4", "64:65537" },
	{ "rows_of_image", " 64:16", "" },
	{ "accesses_of_image", "128, accesses fff", "128, accesses ffff" },
};

TEST_EACH(damaged, struct damage, damages, "A text with a damaged line is no record.")
{
	char text[2 * sizeof(whole)];
	const char *at = strstr(whole, row->from);

	EXPECT(at);
	snprintf(text, sizeof(text), "%.*s%s%s", (int)(at - whole), whole, row->to,
		 at + strlen(row->from));
	EXPECT_EQ(facts_count(whole), 1);
	EXPECT_EQ(facts_count(text), -1);
}

TEST(long_sentence, "A text with a sentence that is too long is no record.")
{
	char why[FACTS_WHY_SIZE + 1] = "", text[FACTS_SECTION_SIZE];

	memset(why, 'w', FACTS_WHY_SIZE);
	snprintf(text, sizeof(text), "device 0 a\nhost - 0 %s\ndma_buf - 0 no\nend\n", why);
	EXPECT_EQ(facts_count(text), -1);
	why[FACTS_WHY_SIZE - 1] = '\0';
	snprintf(text, sizeof(text), "device 0 a\nhost - 0 %s\ndma_buf - 0 no\nend\n", why);
	EXPECT_EQ(facts_count(text), 1);
}

TEST(cut,
     "A text that is cut off within a section is no record, and its whole sections are counted.")
{
	const size_t length = strlen(whole);

	for (size_t cut = 1; cut < 2 * length; cut++) {
		char *text = facts_write_record(2);

		text[cut] = '\0';
		EXPECT_EQ(facts_count_sections(text), cut / length);
		EXPECT_EQ(facts_count(text), cut == length ? 1 : -1);
		free(text);
	}
}

TEST(too_many, "A record has 64 devices at most.")
{
	char *text = facts_write_record(FACTS_DEVICES + 1);
	const size_t length = strlen(text);

	EXPECT_EQ(facts_count(text), -1);
	free(text);
	text = facts_write_record(FACTS_DEVICES);
	EXPECT(strlen(text) < length);
	EXPECT_EQ(facts_count(text), FACTS_DEVICES);
	EXPECT_EQ(facts_count_sections(text), FACTS_DEVICES);
	free(text);
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
	char text[FACTS_SECTION_SIZE];
	struct facts_record *record;

	facts_put_section(&row->facts, 0, text);
	record = facts_parse(text);
	EXPECT(record);
	EXPECT_EQ(facts_are_whole(record), row->is_whole);
	free(record);
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

	rules[3].pitch[2] = 8;
	rules[3].accesses = 1u << host_rule_access(0);
	rules[3].is_all = column->is_all;
	EXPECT_EQ(image_rule_check(rules, &row->image),
		  row->is_taken || (column->is_all && !is_other) ? CL_SUCCESS
								 : CL_INVALID_OPERATION);
}
