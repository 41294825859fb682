/* SPDX-License-Identifier: Apache-2.0 */
#include "runner.h"

#include <sys/wait.h>
#include <unistd.h>

static struct test **chosen;
static unsigned int chosen_count;

static unsigned int passed, failed, skipped;

/* The output of a child, without the results. */
struct output {
	const struct target *target;
	bool quiet; /* nothing is printed */
	unsigned int results;
	char about[400]; /* the line about the target */
	char fault[300]; /* of the running test, "" before the first fault */
};

static bool is_named(const char *name, int count, char **names)
{
	for (int i = 0; i < count; i++)
		if (!strcmp(names[i], name))
			return true;
	return !count;
}

static void runner_choose(int count, char **names)
{
	unsigned int all = 0;

	for (struct test *t = test_first(); t; t = t->next)
		all++;
	chosen = calloc(all, sizeof(struct test *));
	for (struct test *t = test_first(); t; t = t->next)
		if (is_named(t->name, count, names))
			chosen[chosen_count++] = t;
}

static int runner_run_child(struct output *out, unsigned int first, unsigned int count);

/* By a signal, or by a sanitizer. */
static bool child_died(const struct output *out, int status, unsigned int count)
{
	return WIFSIGNALED(status) || out->results < count;
}

/* The name between "platform " and ", device ". */
static void child_platform_name(const struct output *out, char *name, size_t room)
{
	const char *start = out->about + strlen("platform ");
	const char *end = strstr(start, ", device ");

	snprintf(name, room, "%.*s", end ? (int)(end - start) : 0, start);
}

/*
 * An OpenCL error instead of CL_SUCCESS.  climport passes the sixteen calls to the driver, so their
 * errors may be the driver's.  For all other calls climport makes up for missing features.
 */
static bool may_be_the_drivers(const char *fault)
{
	const char *exact = getenv("CLIMPORT_CONFORM_EXACT"), *code = strstr(fault, " is -");

	if (!code || !strstr(code, ", expected 0"))
		return false;
	return !exact || strcmp(exact, "1") || strstr(fault, ": row->run(");
}

enum end { FAULT, DEATH };

/* Whether test @i, with the driver's own buffers, ends as in @out. */
static bool plain_does_the_same(const struct output *out, unsigned int i, enum end end)
{
	char name[128];
	struct target target = { name, out->target->device, true };
	struct output plain = { .target = &target, .quiet = true };
	int status;

	if (end == FAULT && !may_be_the_drivers(out->fault))
		return false;
	child_platform_name(out, name, sizeof(name));
	status = runner_run_child(&plain, i, 1);
	if (status == -1 || child_died(&plain, status, 1) != (end == DEATH))
		return false;
	return end == DEATH || !strcmp(plain.fault, out->fault);
}

enum result { PASSED, FAILED, SKIPPED };

static void runner_print_result(enum result result, const char *name, const char *why)
{
	passed += result == PASSED;
	failed += result == FAILED;
	skipped += result == SKIPPED;
	printf("%sok %u - %s%s%s\n", result == FAILED ? "not " : "", passed + failed + skipped,
	       name, *why ? " # SKIP " : "", why);
}

static void report_failure(const struct output *out, enum end end)
{
	unsigned int i = passed + failed + skipped;
	bool same = plain_does_the_same(out, i, end);

	runner_print_result(same ? SKIPPED : FAILED, chosen[i]->name,
			    same ? "the driver does the same with its own buffers" : "");
}

static void runner_relay_result(struct output *out, bool is_good, char *name)
{
	char *why = strstr(name, " # SKIP ");

	out->results++;
	if (out->quiet)
		return;
	if (why)
		*why = 0;
	if (is_good)
		runner_print_result(why ? SKIPPED : PASSED, name, why ? why + 8 : "");
	else
		report_failure(out, FAULT);
	out->fault[0] = 0;
}

/* A line of the child's TAP. */
static void runner_relay_line(struct output *out, char *line)
{
	bool is_good = !strncmp(line, "ok ", 3), is_bad = !strncmp(line, "not ok ", 7);
	char *name = strstr(line, " - ");

	line[strcspn(line, "\n")] = 0;
	if (name && (is_good || is_bad)) {
		runner_relay_result(out, is_good, name + 3);
	} else if (!strncmp(line, "# platform ", 11)) {
		snprintf(out->about, sizeof(out->about), "%s", line + 2);
	} else if (strncmp(line, "1..", 3)) {
		if (strstr(line, ", expected "))
			snprintf(out->fault, sizeof(out->fault), "%s", line);
		if (!out->quiet)
			puts(line);
	}
}

static void runner_relay(struct output *out, int fd)
{
	FILE *from = fdopen(fd, "r");
	char *line = NULL;
	size_t room = 0;

	while (from && getline(&line, &room, from) > 0) {
		runner_relay_line(out, line);
		fflush(stdout);
	}
	free(line);
	if (from)
		fclose(from);
}

/* Returns the child's status as of waitpid(), or -1. */
static int runner_run_child(struct output *out, unsigned int first, unsigned int count)
{
	int ends[2], status = -1;
	pid_t pid;

	fflush(stdout);
	out->results = 0;
	if (pipe(ends))
		return -1;
	pid = fork();
	if (!pid) {
		dup2(ends[1], STDOUT_FILENO);
		close(ends[0]);
		close(ends[1]);
		exit(child_run(out->target, chosen + first, count));
	}
	close(ends[1]);
	runner_relay(out, ends[0]);
	if (pid < 0 || waitpid(pid, &status, 0) < 0)
		return -1;
	return status;
}

/* The child died in the test after the last result. */
static void report_death(const struct output *out, int status)
{
	printf("# %s\n", WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "the program ended");
	if (passed + failed + skipped < chosen_count)
		report_failure(out, DEATH);
	else
		runner_print_result(FAILED, "end_of_the_tests", "");
}

/* A child says 1 for a failed test, which may be the driver's. */
static int runner_exit_status(int child)
{
	if (failed)
		return 1;
	if (child > 1 && child != 77)
		return child;
	return passed ? 0 : 77;
}

/* Returns the last child's exit status. */
static int runner_run_children(struct output *out)
{
	unsigned int left = chosen_count;
	int status = 0;

	while (left) {
		status = runner_run_child(out, chosen_count - left, left);
		if (status == -1)
			return 1;
		if (!child_died(out, status, left))
			return WEXITSTATUS(status);
		report_death(out, status);
		left = chosen_count > passed + failed + skipped
			       ? chosen_count - passed - failed - skipped
			       : 0;
	}
	return 0;
}

int run_tests(const struct target *target, int count, char **names)
{
	struct output out = { .target = target };
	int status;

	runner_choose(count, names);
	status = runner_run_children(&out);
	free(chosen);
	printf("1..%u\n# %u passed, %u failed, %u skipped, %s\n", passed + failed + skipped, passed,
	       failed, skipped, out.about);
	return runner_exit_status(status);
}
