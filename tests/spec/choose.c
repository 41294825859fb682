/* SPDX-License-Identifier: Apache-2.0 */
#include "choose.h"

#include <fnmatch.h>
#include <stdbool.h>

#include "tools/terminal.h"

static bool choose_matches_any(const char *pattern)
{
	for (struct test *t = test_first(); t; t = t->next)
		if (!fnmatch(pattern, t->name, 0))
			return true;
	terminal_line(stderr, 4, "climport-conform: no test is called %s", pattern);
	return false;
}

static bool choose_is_wanted(const char *name, int count, char **patterns)
{
	for (int i = 0; i < count; i++)
		if (!fnmatch(patterns[i], name, 0))
			return true;
	return !count;
}

size_t choose_tests(int count, char **patterns, struct test ***chosen)
{
	size_t all = 0, n = 0;

	for (int i = 0; i < count; i++)
		if (!choose_matches_any(patterns[i]))
			return 0;
	for (struct test *t = test_first(); t; t = t->next)
		all++;
	*chosen = calloc(all + 1, sizeof(**chosen));
	if (!*chosen)
		abort();
	for (struct test *t = test_first(); t; t = t->next)
		if (choose_is_wanted(t->name, count, patterns))
			(*chosen)[n++] = t;
	return n;
}
