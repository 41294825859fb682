/* SPDX-License-Identifier: Apache-2.0 */
#include "runner.h"

#include <sys/mman.h>

#include "child.h"
#include "tally.h"
#include "tools/terminal.h"
#include "verdict.h"

#define DRIVERS "the driver does the same with its own buffers"

enum { FAILURE = 1, WRONG_USAGE = 2 };

/* Tests that run in one process. */
struct batch {
	const struct run *run;
	struct test *const *tests;
	size_t count, next; /* tests without a result that is printed */
	const char *before; /* how the first test failed behind others, in an earlier process */
	bool is_quiet;	    /* a comparison, of which nothing is printed */
	struct verdict verdict;
	struct watch_result end;
};

/* What the first process found. */
struct finding {
	char platform[512], about[512], nothing[512];
	int kind; /* enum nothing; -1: there is something to test */
};

static void runner_run_body(void *arg)
{
	struct batch *b = arg;

	child_run(b->run, b->tests, b->count);
}

static void runner_run_batch(struct batch *b);

/* Whether the test ends in the same way on the driver's own buffers. */
static bool runner_driver_does_the_same(const struct batch *b)
{
	static struct batch plain;
	struct run run = *b->run;

	if (!verdict_may_be_the_drivers(&b->verdict))
		return false;
	run.plain = true;
	plain = (struct batch){
		.run = &run, .tests = &b->tests[b->next], .count = 1, .is_quiet = true
	};
	runner_run_batch(&plain);
	return verdict_is_the_drivers(&b->verdict, &plain.verdict);
}

/* A test that may have failed because of the tests before it: their process is not used any more. */
static bool runner_is_repeated(const struct batch *b)
{
	return b->run->afresh && b->next && b->verdict.result == TEST_FAILED;
}

/* What a test that passes alone did behind other tests. */
static void runner_describe_repetition(const struct batch *b, char *text, size_t room)
{
	size_t used = strlen(text);

	if (b->before && !b->next && b->verdict.result != TEST_FAILED)
		snprintf(text + used, room - used, "behind other tests: %s\n", b->before);
}

/* The verdict on the test b->tests[b->next] is complete. */
static void runner_report(struct batch *b)
{
	static char details[2 * DETAILS_SIZE];
	const struct verdict *v = &b->verdict;
	bool is_drivers;

	if (b->is_quiet)
		return;
	if (runner_is_repeated(b))
		return;
	is_drivers = runner_driver_does_the_same(b);
	verdict_describe(v, details, sizeof(details));
	runner_describe_repetition(b, details, sizeof(details));
	tally_add(b->tests[b->next], is_drivers ? TEST_SKIPPED : v->result,
		  is_drivers ? DRIVERS : v->why, details);
	b->next++;
	b->verdict = (struct verdict){ 0 };
}

static void runner_take_message(void *arg, const struct message *message)
{
	struct batch *b = arg;

	if (message->kind == MESSAGE_BEGIN) {
		if (b->verdict.has_result)
			runner_report(b);
		watch_restart();
	}
	verdict_take_message(&b->verdict, message);
}

static void runner_take_output(void *arg, const char *text, size_t length)
{
	verdict_take_output(&((struct batch *)arg)->verdict, text, length);
}

/* Reports the tests of the process, with the last one's end.  Tests behind a death are left. */
static void runner_run_batch(struct batch *b)
{
	const struct watch_events events = { runner_take_message, runner_take_output, b };
	struct opencl_note *outer = opencl_note;

	opencl_note = mmap(NULL, sizeof(*outer), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			   -1, 0);
	if (opencl_note == MAP_FAILED)
		abort();
	b->end = watch_run(runner_run_body, b, b->run->seconds, &events);
	verdict_take_end(&b->verdict, &b->end, opencl_note);
	munmap(opencl_note, sizeof(*outer));
	opencl_note = outer;
	runner_report(b);
}

static void runner_find_message(void *arg, const struct message *message)
{
	struct finding *found = arg;

	if (message->kind == MESSAGE_PLATFORM)
		snprintf(found->platform, sizeof(found->platform), "%s", message->text);
	if (message->kind == MESSAGE_ABOUT)
		snprintf(found->about, sizeof(found->about), "%s", message->text);
	if (message->kind != MESSAGE_NOTHING)
		return;
	snprintf(found->nothing, sizeof(found->nothing), "%s", message->text);
	found->kind = message->value;
}

static void runner_ignore_output(void *arg, const char *text, size_t length)
{
	(void)arg;
	(void)text;
	(void)length;
}

static struct watch_result runner_find(const struct run *run, struct finding *found)
{
	const struct watch_events events = { runner_find_message, runner_ignore_output, found };
	struct batch none = { .run = run };

	return watch_run(runner_run_body, &none, run->seconds, &events);
}

/* OpenCL's first calls did not end as they should. */
static int runner_bail_out(const struct watch_result *end, const char *when)
{
	struct verdict v = { 0 };

	verdict_take_end(&v, end, opencl_note);
	terminal_line(stdout, 4, "Bail out! %s%s", when, v.why);
	return FAILURE;
}

static int runner_skip_all(struct test *const *tests, size_t count, const char *why)
{
	for (size_t i = 0; i < count; i++)
		tally_add(tests[i], TEST_SKIPPED, why, "");
	tally_print(tests, count, why);
	return tally_status();
}

static int runner_run_all(const struct run *run, struct test *const *tests, size_t count,
			  const char *about)
{
	static struct batch b;
	static char before[sizeof(b.verdict.why)];

	for (size_t done = 0; done < count; done += b.next) {
		snprintf(before, sizeof(before), "%s", b.verdict.why);
		b = (struct batch){ .run = run,
				    .tests = tests + done,
				    .count = count - done,
				    .before = *before ? before : NULL };
		runner_run_batch(&b);
		if (b.end.end == WATCH_TOTAL)
			return runner_bail_out(&b.end, "");
	}
	tally_print(tests, count, about);
	return tally_status();
}

int run_tests(const struct run *run, struct test *const *tests, size_t count)
{
	struct finding found = { .kind = -1 };
	struct run named = *run;
	struct watch_result end;

	watch_limit_total(run->total_seconds);
	end = runner_find(run, &found);
	if (end.end != WATCH_EXITED || end.value || (found.kind < 0 && !*found.about))
		return runner_bail_out(&end, "Before the first test, ");
	if (found.kind == NOTHING_TO_TEST)
		return runner_skip_all(tests, count, found.nothing);
	if (found.kind >= 0) {
		terminal_line(stderr, 4, "climport-conform: %s", found.nothing);
		return WRONG_USAGE;
	}
	named.platform = found.platform;
	return runner_run_all(&named, tests, count, found.about);
}
