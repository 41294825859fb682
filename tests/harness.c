/* SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

static struct test *tests, **tail = &tests;
static jmp_buf done;
static pid_t judge; /* the process that called setjmp() */
/* The failed check, or the reason for the skip. */
static char reason[512];

enum { PASS = TEST_PASSED, FAIL = TEST_FAILED, SKIP = TEST_SKIPPED };

void test_register(struct test *test)
{
	*tail = test;
	tail = &test->next;
}

void test_register_row(struct test *test, const char *name, const char *row_name)
{
	size_t size = strlen(name) + 1 + strlen(row_name) + 1;
	char *full_name = malloc(size);

	if (!full_name)
		abort();
	snprintf(full_name, size, "%s%s%s", name, *name ? "_" : "", row_name);
	test->name = full_name;
	test_register(test);
}

struct test *test_first(void)
{
	return tests;
}

void test_call(const struct test *test)
{
	if (test->run_row)
		test->run_row(test->row);
	else
		test->run();
}

/* A child that a test has forked runs none of the other tests. */
__attribute__((noreturn)) static void test_end(int result)
{
	if (getpid() == judge)
		longjmp(done, result);
	printf("# %s\n", reason);
	fflush(stdout);
	_exit(result);
}

void test_fail(const char *file, int line, const char *expr, long long got, long long want)
{
	snprintf(reason, sizeof(reason), "%s:%d: %s is %lld, expected %lld", file, line, expr, got,
		 want);
	test_end(FAIL);
}

void test_skip(const char *why, ...)
{
	va_list args;

	va_start(args, why);
	vsnprintf(reason, sizeof(reason), why, args);
	va_end(args);
	test_end(SKIP);
}

enum test_result test_judge(const struct test *test, const char **why)
{
	int result = setjmp(done);

	judge = getpid();
	if (!result) {
		reason[0] = 0;
		test_call(test);
	}
	*why = reason;
	return result;
}

/* A part of a test, in a child. */
static int test_run_body(void (*body)(const void *arg), const void *arg)
{
	int result = setjmp(done);

	judge = getpid();
	if (!result)
		body(arg);
	else
		printf("# %s\n", reason);
	fflush(stdout);
	return result;
}

static void test_call_body(const void *body)
{
	(*(void (*const *)(void))body)();
}

static void test_judge_child(int status)
{
	if (WIFEXITED(status) && WEXITSTATUS(status) == SKIP)
		test_skip("the child skipped the test");
	if (status)
		test_fail(__FILE__, __LINE__, "the child's status", status, 0);
}

void test_in_child(void (*body)(void))
{
	int status;
	pid_t child;

	fflush(stdout);
	child = fork();
	if (!child)
		_exit(test_run_body(test_call_body, &body));
	if (child < 0 || waitpid(child, &status, 0) != child)
		test_fail(__FILE__, __LINE__, "waitpid()", -1, child);
	test_judge_child(status);
}

static void *test_run_child(void *body)
{
	int status = -1;

	waitpid(test_start_child(test_call_body, body), &status, 0);
	return (void *)(intptr_t)status;
}

void test_in_child_of_thread(void (*body)(void))
{
	void *status = NULL;
	pthread_t thread;

	if (pthread_create(&thread, NULL, test_run_child, &body) || pthread_join(thread, &status))
		test_fail(__FILE__, __LINE__, "pthread_create()", -1, 0);
	test_judge_child((int)(intptr_t)status);
}

int test_start_child(void (*body)(const void *arg), const void *arg)
{
	pid_t child;

	fflush(stdout);
	child = fork();
	if (child)
		return child;
	_exit(test_run_body(body, arg));
}

static int test_run(const struct test *t, int n)
{
	const char *why;
	int result = test_judge(t, &why);

	if (result == FAIL)
		printf("# %s\n", why);
	printf("%s %d - %s", result == FAIL ? "not ok" : "ok", n, t->name);
	if (result == SKIP)
		printf(" # SKIP %s", why);
	printf("\n");
	fflush(stdout);
	return result;
}

/* The result of a test in a child, which has printed every result but a death. */
static int test_result_of(int status, const struct test *t, int n)
{
	if (WIFEXITED(status) && WEXITSTATUS(status) <= SKIP)
		return WEXITSTATUS(status);
	if (WIFSIGNALED(status))
		printf("# %s\n", strsignal(WTERMSIG(status)));
	else
		printf("# exit status %d after the test\n", WEXITSTATUS(status));
	printf("not ok %d - %s\n", n, t->name);
	return FAIL;
}

static int test_run_alone(const struct test *t, int n)
{
	int status;
	pid_t child;

	fflush(stdout);
	child = fork();
	if (!child)
		exit(test_run(t, n));
	if (child < 0 || waitpid(child, &status, 0) != child) {
		perror("# a process for the test");
		return FAIL;
	}
	return test_result_of(status, t, n);
}

struct options {
	bool list, alone, shuffle;
	unsigned long seed;
	char **names; /* of @count tests; 0: all tests */
	int count;
};

/* False if the arguments are wrong. */
static bool options_parse(struct options *o, int argc, char **argv)
{
	int i = 1;
	char *end;

	memset(o, 0, sizeof(*o));
	for (; i < argc && !strncmp(argv[i], "--", 2); i++) {
		if (!strcmp(argv[i], "--list")) {
			o->list = true;
		} else if (!strcmp(argv[i], "--alone")) {
			o->alone = true;
		} else if (!strcmp(argv[i], "--shuffle") && i + 1 < argc) {
			o->shuffle = true;
			o->seed = strtoul(argv[++i], &end, 10);
			if (*end)
				return false;
		} else {
			return false;
		}
	}
	o->names = argv + i;
	o->count = argc - i;
	return true;
}

static bool test_is_wanted(const struct test *t, const struct options *o)
{
	for (int i = 0; i < o->count; i++)
		if (!strcmp(o->names[i], t->name))
			return true;
	return !o->count;
}

/* The wanted tests, in an array for the whole run. */
static size_t tests_choose(const struct options *o, struct test ***chosen)
{
	size_t count = 0;

	for (struct test *t = tests; t; t = t->next)
		count += test_is_wanted(t, o);
	*chosen = calloc(count + 1, sizeof(**chosen));
	if (!*chosen)
		abort();
	count = 0;
	for (struct test *t = tests; t; t = t->next)
		if (test_is_wanted(t, o))
			(*chosen)[count++] = t;
	return count;
}

/* Knuth's linear congruential generator, and Fisher and Yates. */
void tests_shuffle(struct test **chosen, size_t count, uint64_t state)
{
	for (size_t i = count; i > 1; i--) {
		struct test *last = chosen[i - 1];
		size_t j;

		state = state * 6364136223846793005u + 1442695040888963407u;
		j = (state >> 33) % i;
		chosen[i - 1] = chosen[j];
		chosen[j] = last;
	}
}

static int tests_list(void)
{
	for (struct test *t = tests; t; t = t->next)
		printf("%-40s %s\n", t->name, t->says);
	return 0;
}

int test_main(int argc, char **argv)
{
	int results[3] = { 0 }, n = 0;
	static struct test **chosen;
	struct options o;
	size_t count;

	if (!options_parse(&o, argc, argv)) {
		fprintf(stderr, "Usage: %s [--list | --alone | --shuffle SEED]... [TEST]...\n",
			argv[0]);
		return 2;
	}
	if (o.list)
		return tests_list();
	count = tests_choose(&o, &chosen);
	if (o.shuffle)
		tests_shuffle(chosen, count, o.seed);
	for (size_t i = 0; i < count; i++)
		results[(o.alone ? test_run_alone : test_run)(chosen[i], ++n)]++;
	printf("1..%d\n", n);
	if (results[FAIL] || !n)
		return 1;
	return results[SKIP] == n ? 77 : 0;
}
