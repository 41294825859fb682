/* SPDX-License-Identifier: Apache-2.0 */
#include "list.h"

#include <limits.h>

#include "harness.h"
#include "tools/terminal.h"
#include "untested.h"

enum { SENTENCES_MAX = 1024 };

/* A test, or a reason. */
struct row {
	const char *says;
	const struct test *test;
	const struct untested *untested;
};

static struct row rows[SENTENCES_MAX];
static size_t row_count;

static void list_add_row(struct row row)
{
	if (row_count < SENTENCES_MAX)
		rows[row_count++] = row;
}

/* Arm's revisions, and then Khronos' extension. */
static int list_number(const char *says)
{
	int revision = 0, number = 0;

	if (sscanf(says, "R%d-%d", &revision, &number) != 2) {
		sscanf(says, "K-%d", &number);
		revision = INT_MAX / 2000;
	}
	return revision * 1000 + number;
}

/* By extension, revision, number, and for the sixteen calls by name; tests stay in their order. */
static int list_compare_rows(const void *a, const void *b)
{
	const struct row *left = a, *right = b;
	int names;

	if (list_number(left->says) != list_number(right->says))
		return list_number(left->says) - list_number(right->says);
	names = strcmp(left->says, right->says);
	if (names)
		return names;
	return (left > right) - (left < right);
}

static void list_collect(void)
{
	for (const struct test *t = test_first(); t; t = t->next)
		list_add_row((struct row){ t->says, t, NULL });
	for (const struct untested *u = untested; u->says; u++)
		list_add_row((struct row){ u->says, NULL, u });
	qsort(rows, row_count, sizeof(rows[0]), list_compare_rows);
}

static int same_id(const char *a, const char *b)
{
	size_t len = strcspn(a, " ");

	return len == strcspn(b, " ") && !strncmp(a, b, len);
}

/* Whether the row at @i contradicts the row before. */
static int list_row_contradicts(size_t i)
{
	if (!i || !same_id(rows[i].says, rows[i - 1].says))
		return 0;
	return strcmp(rows[i].says, rows[i - 1].says) || !rows[i].test || !rows[i - 1].test;
}

static void list_print_row(const struct row *row)
{
	if (row->test)
		terminal_line(stdout, 10, "        tested by %s", row->test->name);
	else
		terminal_line(stdout, 10, "        %s: %s",
			      row->untested->is_missing ? "not tested" : "no test is possible",
			      row->untested->why);
}

int print_list(void)
{
	size_t sentences = 0, tests = 0, missing = 0, impossible = 0;
	int status = 0;

	list_collect();
	for (size_t i = 0; i < row_count; i++) {
		if (!i || strcmp(rows[i].says, rows[i - 1].says)) {
			terminal_line(stdout, 4, "%s", rows[i].says);
			sentences++;
		}
		list_print_row(&rows[i]);
		tests += !!rows[i].test;
		missing += rows[i].untested && rows[i].untested->is_missing;
		impossible += rows[i].untested && !rows[i].untested->is_missing;
		if (list_row_contradicts(i)) {
			terminal_line(stdout, 10, "        contradicts the sentence before");
			status = 1;
		}
	}
	terminal_line(stdout, 2,
		      "# %zu sentences: %zu tested by %zu tests, %zu not tested, %zu not testable",
		      sentences, sentences - missing - impossible, tests, missing, impossible);
	return status;
}
