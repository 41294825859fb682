/* SPDX-License-Identifier: Apache-2.0 */
#include <unistd.h>

#include "kernels.h"
#include "runner.h"

enum { TEST_SECONDS = 60 };

/* For the address sanitizer: PoCL loses four bytes with each 1D image made from a buffer. */
const char *__lsan_default_suppressions(void);

__attribute__((visibility("default"))) const char *__lsan_default_suppressions(void)
{
	return "leak:libpocl\n";
}

/*
 * Copies of the tests.  harness.c calls child_run_next() for each test, in order; a test that fails
 * or is skipped does not return to child_run_next().
 */
static struct test *copies;
static unsigned int next_copy;
static const char *nothing_to_test;

static void child_run_next(void)
{
	const struct test *test = &copies[next_copy++];

	undo_all();
	alarm(TEST_SECONDS);
	if (nothing_to_test)
		test_skip("%s", nothing_to_test);
	test_call(test);
	undo_all();
}

static void child_describe(void)
{
	printf("# platform %s, device %s, version %u.%u.%u, %s\n",
	       *spec.platform_name ? spec.platform_name : "none",
	       *spec.device_name ? spec.device_name : "none", CL_VERSION_MAJOR(spec.version),
	       CL_VERSION_MINOR(spec.version), CL_VERSION_PATCH(spec.version),
	       nothing_to_test ? nothing_to_test : spec_implementation());
}

/* Arguments for test_main() with the names of the tests, which now call child_run_next(). */
static char **child_prepare(struct test *const *tests, unsigned int count)
{
	char **argv = calloc(count + 2, sizeof(*argv));

	copies = calloc(count, sizeof(*copies));
	for (unsigned int i = 0; i < count; i++) {
		argv[i + 1] = (char *)(uintptr_t)tests[i]->name;
		copies[i] = *tests[i];
		tests[i]->run = child_run_next;
		tests[i]->run_row = NULL;
	}
	return argv;
}

int child_run(const struct target *target, struct test *const *tests, unsigned int count)
{
	char **argv = child_prepare(tests, count);
	int status;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (target->plain)
		unsetenv("OPENCL_LAYERS");
	nothing_to_test = spec_open(target->platform, target->device, target->plain);
	child_describe();
	status = test_main(count + 1, argv);
	alarm(TEST_SECONDS);
	undo_all();
	kernels_close();
	spec_close();
	free(copies);
	free(argv);
	return status;
}
