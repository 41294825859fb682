/* SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"

#include <setjmp.h>
#include <stdarg.h>

static struct test *tests, **tail = &tests;
static jmp_buf done;
static char skip_reason[256];

enum { PASS, FAIL, SKIP };

void test_register(struct test *test)
{
	*tail = test;
	tail = &test->next;
}

struct test *test_first(void)
{
	return tests;
}

void test_fail(const char *file, int line, const char *expr, long long got, long long want)
{
	printf("# %s:%d: %s is %lld, expected %lld\n", file, line, expr, got, want);
	longjmp(done, FAIL);
}

void test_skip(const char *why, ...)
{
	va_list args;

	va_start(args, why);
	vsnprintf(skip_reason, sizeof(skip_reason), why, args);
	va_end(args);
	longjmp(done, SKIP);
}

static int run(const struct test *t, int n)
{
	int result = setjmp(done);

	if (!result)
		t->run();
	printf("%s %d - %s", result == FAIL ? "not ok" : "ok", n, t->name);
	if (result == SKIP)
		printf(" # SKIP %s", skip_reason);
	printf("\n");
	fflush(stdout);
	return result;
}

static int wanted(const struct test *t, int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (!strcmp(argv[i], t->name))
			return 1;
	return argc == 1;
}

int test_main(int argc, char **argv)
{
	int count[3] = { 0 }, n = 0;

	if (argc == 2 && !strcmp(argv[1], "--list")) {
		for (struct test *t = tests; t; t = t->next)
			printf("%-40s %s\n", t->name, t->says);
		return 0;
	}
	for (struct test *t = tests; t; t = t->next)
		if (wanted(t, argc, argv))
			count[run(t, ++n)]++;
	printf("1..%d\n", n);
	if (count[FAIL] || !n)
		return 1;
	return count[SKIP] == n ? 77 : 0;
}
