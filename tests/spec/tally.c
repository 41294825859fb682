/* SPDX-License-Identifier: Apache-2.0 */
#include "tally.h"

#include <stdbool.h>

#include "tools/terminal.h"

enum { REASONS_MAX = 512, SENTENCES_MAX = 1024, ALL_SKIPPED = 77, LINE = 96 };

static unsigned int counts[3];

/* Each reason for skips with its number of tests. */
static struct reason {
	char *text;
	unsigned int count;
} reasons[REASONS_MAX];
static size_t reason_count;

/* The sentences of which a test has passed or failed. */
static const char *exercised[SENTENCES_MAX];
static size_t exercised_count;

static void tally_count_reason(const char *why)
{
	size_t i = 0;

	while (i < reason_count && strcmp(reasons[i].text, why))
		i++;
	if (i == REASONS_MAX)
		return;
	if (i == reason_count) {
		reasons[i].text = strdup(why);
		reason_count += !!reasons[i].text;
	}
	reasons[i].count++;
}

static bool tally_has(const char *const *sentences, size_t count, const char *says)
{
	for (size_t i = 0; i < count; i++)
		if (!strcmp(sentences[i], says))
			return true;
	return false;
}

static void tally_add_sentence(const char **sentences, size_t *count, const char *says)
{
	if (*count < SENTENCES_MAX && !tally_has(sentences, *count, says))
		sentences[(*count)++] = says;
}

static void tally_print_details(const char *details)
{
	while (*details) {
		size_t length = strcspn(details, "\n");

		terminal_line(stdout, 6, "#   %.*s", (int)length, details);
		details += length + (details[length] == '\n');
	}
}

void tally_add(const struct test *test, enum test_result result, const char *why,
	       const char *details)
{
	bool is_skip = result == TEST_SKIPPED;

	counts[result]++;
	terminal_line(stdout, 4, "%sok %u - %s%s%s", result == TEST_FAILED ? "not " : "",
		      counts[TEST_PASSED] + counts[TEST_FAILED] + counts[TEST_SKIPPED], test->name,
		      is_skip ? " # SKIP " : "", is_skip ? why : "");
	if (result == TEST_FAILED)
		terminal_line(stdout, 6, "#   %s", test->says);
	tally_print_details(details);
	fflush(stdout);
	if (is_skip)
		tally_count_reason(why);
	else
		tally_add_sentence(exercised, &exercised_count, test->says);
}

static int tally_compare_reasons(const void *a, const void *b)
{
	const struct reason *left = a, *right = b;

	if (left->count != right->count)
		return left->count < right->count ? 1 : -1;
	return strcmp(left->text, right->text);
}

static void tally_print_reasons(void)
{
	qsort(reasons, reason_count, sizeof(reasons[0]), tally_compare_reasons);
	for (size_t i = 0; i < reason_count; i++)
		terminal_line(stdout, 4, "# %u skipped: %s", reasons[i].count, reasons[i].text);
}

/* Of a list of names, which goes on below as a comment of TAP. */
static size_t tally_width(void)
{
	const int width = terminal_width(stdout);

	return width && width < LINE ? (size_t)width : LINE;
}

static void tally_print_sentences(struct test *const *tests, size_t count)
{
	static const char *all[SENTENCES_MAX];
	size_t all_count = 0, width = tally_width(), column = width;

	for (size_t i = 0; i < count; i++)
		tally_add_sentence(all, &all_count, tests[i]->says);
	terminal_line(stdout, 4, "# %zu of the %zu sentences of these tests were exercised%s",
		      exercised_count, all_count, exercised_count < all_count ? "; not:" : "");
	for (size_t i = 0; i < all_count; i++) {
		int length = (int)strcspn(all[i], " ");

		if (tally_has(exercised, exercised_count, all[i]))
			continue;
		if (column + (size_t)length >= width) {
			printf("%s#  ", column < width ? "\n" : "");
			column = 3;
		}
		column += (size_t)printf(" %.*s", length, all[i]);
	}
	if (exercised_count < all_count)
		printf("\n");
}

void tally_print(struct test *const *tests, size_t count, const char *about)
{
	printf("1..%u\n", counts[TEST_PASSED] + counts[TEST_FAILED] + counts[TEST_SKIPPED]);
	tally_print_reasons();
	tally_print_sentences(tests, count);
	terminal_line(stdout, 4, "# %u passed, %u failed, %u skipped, %s", counts[TEST_PASSED],
		      counts[TEST_FAILED], counts[TEST_SKIPPED], about);
	fflush(stdout);
}

int tally_status(void)
{
	if (counts[TEST_FAILED])
		return 1;
	return counts[TEST_PASSED] ? 0 : ALL_SKIPPED;
}
