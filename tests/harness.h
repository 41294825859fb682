/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TEST(name, "sentence of the specification") { ... }
 *
 * TEST_EACH(name, struct row, rows, "sentence") { ... row ... }
 *
 * A test for each row of the array @rows.  The member name of a row is the end of the test's name:
 * name_ROW.  TEST_EACH_AS(id, "name", ...) names the tests likewise, or ROW if "name" is empty.
 *
 * The program runs all tests, or the tests named on the command line, and prints TAP; --list
 * prints the table of sentences.  The first failed check ends a test.  Exit status: 0, 1, or 77
 * when all tests were skipped.
 *
 * Tests run in the order of the file.  --shuffle SEED takes an order that depends on the seed
 * alone.  --alone runs each test in a new process, so no test depends on an earlier test.
 */
#ifndef TESTS_HARNESS_H
#define TESTS_HARNESS_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * For alarm(2): the limit on a hang, in seconds.  More than ten times what any test takes, and less than
 * ctest's limits for the suites that use it, so the program that hangs is the one that is ended.
 */
#define TEST_HANG_S 300

struct test {
	const char *name;
	const char *says;
	void (*run)(void);
	void (*run_row)(const void *row); /* instead of run */
	const void *row;
	struct test *next;
};

void test_register(struct test *test);
void test_register_row(struct test *test, const char *name, const char *row_name);

/* The first registered test; test->next is the next test. */
struct test *test_first(void);

/* Calls the function of the test, with its row if the test has one. */
void test_call(const struct test *test);

/* Runs the tests in argv; for programs with their own main(). */
int test_main(int argc, char **argv);

enum test_result { TEST_PASSED, TEST_FAILED, TEST_SKIPPED };

/*
 * Runs a test in the calling process, for programs that print results in their own way.  *@why is the
 * failed check or the reason for the skip, until the next test.
 */
enum test_result test_judge(const struct test *test, const char **why);

/* Puts the tests into an order that depends on @seed alone. */
void tests_shuffle(struct test **tests, size_t count, uint64_t seed);

_Noreturn void test_fail(const char *file, int line, const char *expr, long long got,
			 long long want);

/* @why is printed as the TAP skip reason. */
_Noreturn void test_skip(const char *why, ...) __attribute__((format(printf, 1, 2)));

/* Runs the rest of a test in a child, if the rest changes the process: limits, mounts. */
void test_in_child(void (*body)(void));

/* Likewise, in a child of a new thread of the test's. */
void test_in_child_of_thread(void (*body)(void));

/*
 * Starts a part of a test that runs in a child, beside the test: returns the child's process id.  The
 * child's exit status is 0 if every check of @body holds.
 */
int test_start_child(void (*body)(const void *arg), const void *arg);

#define TEST(id, sentence)                                                                    \
	static void test_##id(void);                                                          \
	__attribute__((constructor)) static void register_##id(void)                          \
	{                                                                                     \
		static struct test t = { .name = #id, .says = (sentence), .run = test_##id }; \
		test_register(&t);                                                            \
	}                                                                                     \
	static void test_##id(void)

#define TEST_EACH(id, type, rows, sentence) TEST_EACH_AS(id, #id, type, rows, sentence)

#define TEST_EACH_AS(id, beginning, type, rows, sentence)                    \
	static void test_##id(const type *row);                              \
	static void run_##id(const void *row)                                \
	{                                                                    \
		test_##id(row);                                              \
	}                                                                    \
	__attribute__((constructor)) static void register_##id(void)         \
	{                                                                    \
		static struct test t[sizeof(rows) / sizeof(*(rows))];        \
		for (size_t i = 0; i < sizeof(t) / sizeof(*t); i++) {        \
			t[i] = (struct test){ .says = (sentence),            \
					      .run_row = run_##id,           \
					      .row = &(rows)[i] };           \
			test_register_row(&t[i], beginning, (rows)[i].name); \
		}                                                            \
	}                                                                    \
	static void test_##id(const type *row)

#define EXPECT_EQ(got, want)                                                  \
	do {                                                                  \
		long long got_ = (long long)(got), want_ = (long long)(want); \
		if (got_ != want_)                                            \
			test_fail(__FILE__, __LINE__, #got, got_, want_);     \
	} while (0)

#define EXPECT(condition) EXPECT_EQ(!!(condition), 1)

/* A row and a column of TEST_EACH_PAIR(). */
struct test_pair {
	const void *row, *column;
};

/*
 * TEST_EACH_PAIR(name, struct row, rows, struct column, columns, "sentence") { ... row, column ... }
 *
 * A test for each row of the array @rows with each row of the array @columns.  Both members name
 * are the end of the test's name: name_ROW_COLUMN.
 */
#define TEST_EACH_PAIR(id, row_type, rows, column_type, columns, sentence)                    \
	static void test_##id(const row_type *row, const column_type *column);                \
	static void run_##id(const void *pair)                                                \
	{                                                                                     \
		const struct test_pair *of = pair;                                            \
		test_##id(of->row, of->column);                                               \
	}                                                                                     \
	__attribute__((constructor)) static void register_##id(void)                          \
	{                                                                                     \
		enum { WIDTH_OF_##id = sizeof(columns) / sizeof(*(columns)) };                \
		static struct test_pair p[sizeof(rows) / sizeof(*(rows)) * WIDTH_OF_##id];    \
		static struct test t[sizeof(p) / sizeof(*p)];                                 \
		for (size_t i = 0; i < sizeof(t) / sizeof(*t); i++) {                         \
			char name[128];                                                       \
			p[i].row = &(rows)[i / WIDTH_OF_##id];                                \
			p[i].column = &(columns)[i % WIDTH_OF_##id];                          \
			snprintf(name, sizeof(name), "%s_%s", (rows)[i / WIDTH_OF_##id].name, \
				 (columns)[i % WIDTH_OF_##id].name);                          \
			t[i] = (struct test){ .says = (sentence),                             \
					      .run_row = run_##id,                            \
					      .row = &p[i] };                                 \
			test_register_row(&t[i], #id, name);                                  \
		}                                                                             \
	}                                                                                     \
	static void test_##id(const row_type *row, const column_type *column)

#endif
