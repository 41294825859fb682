/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "choose.h"
#include "list.h"
#include "runner.h"
#include "tools/terminal.h"
#include "watch.h"

enum { WRONG_USAGE = 2, TEST_SECONDS = 60, TOTAL_SECONDS = 3600 };

/* The column of what an option means. */
#define UNDER_OPTIONS 28

static const struct {
	const char *option, *meaning;
} conform_help[] = {
	{ "--native", "the driver's own implementation: without layers" },
	{ "--library FILE", "OpenCL's library, or a driver that is one (libOpenCL.so.1)" },
	{ "--platform NAME",
	  "the first platform with an extension, and this number or part of a name" },
	{ "--device NAME", "its device by number, or by a part of the name; 0 without the option" },
	{ "--protected-heap FILE", "a dma-buf heap of protected memory: /dev/dma_heap/NAME" },
	{ "--shuffle SEED", "in an order that depends on the number SEED" },
	{ "--timeout S", "seconds for a test (60)" },
	{ "--total S", "seconds for all tests (3600)" },
	{ "--together", "all tests in one process, until a test dies: quicker" },
	{ "--afresh", "together until a test fails, which counts if it fails alone, too" },
	{ "--list", "the sentences of the text, their tests, and why some have none" },
	{ "--help", "this text" },
};

/* A paragraph.  Where there is no terminal, lines have a width, too. */
static void conform_print_paragraph(const char *text)
{
	const int width = terminal_width(stdout);

	terminal_wrap(stdout, width ? width : 80, 0, text);
}

static void conform_print_help(void)
{
	terminal_line(stdout, 4, "Usage: climport-conform [OPTION]... [TEST]...");
	conform_print_paragraph(
		"Tests an implementation of the OpenCL extensions cl_arm_import_memory and "
		"cl_khr_external_memory_dma_buf, as far as the device has them, against the text "
		"of "
		"Arm's, revision 6 and where it differs revision 12, and of Khronos': this "
		"project's "
		"layer, or a driver's own.  Prints TAP.  TEST is a name, or a pattern: 'hole_*', "
		"or "
		"'external_*' for Khronos'.");
	putchar('\n');
	for (size_t i = 0; i < sizeof(conform_help) / sizeof(conform_help[0]); i++)
		terminal_line(stdout, UNDER_OPTIONS, "  %-*s %s", UNDER_OPTIONS - 3,
			      conform_help[i].option, conform_help[i].meaning);
	puts("\nEnvironment:");
	terminal_line(stdout, UNDER_OPTIONS,
		      "  CLIMPORT_CONFORM_EXACT=1  where the text is open, only what climport does "
		      "is right; also makes calls that may crash elsewhere");
	putchar('\n');
	conform_print_paragraph(
		"Exit status: 0 if tests passed and none failed; 1 if a test failed, or the driver "
		"ended the run; 77 if none passed and none failed; 2 for bad usage, or if OpenCL's "
		"library cannot be used, or the results cannot be written.");
}

struct options {
	struct run run;
	bool list, help, shuffle;
	unsigned int seed;
};

static bool parse_number(const char *text, unsigned int most, unsigned int *number)
{
	char *end;
	unsigned long value = strtoul(text, &end, 10);

	*number = value;
	return *text >= '0' && *text <= '9' && !*end && value <= most;
}

/* False if the option or its value is wrong. */
static bool option_read(int c, struct options *o)
{
	switch (c) {
	case 'n':
		return !unsetenv("OPENCL_LAYERS");
	case 'L':
		o->run.library = optarg;
		return true;
	case 'p':
		o->run.platform = optarg;
		return true;
	case 'd':
		o->run.device = optarg;
		return true;
	case 'P':
		o->run.protected_heap = optarg;
		return true;
	case 's':
		o->shuffle = true;
		return parse_number(optarg, UINT_MAX, &o->seed);
	case 't':
		return parse_number(optarg, INT_MAX, &o->run.seconds) && o->run.seconds;
	case 'T':
		return parse_number(optarg, INT_MAX, &o->run.total_seconds) && o->run.total_seconds;
	case 'a':
		o->run.afresh = true;
		o->run.together = true;
		return true;
	case 'g':
		o->run.together = true;
		return true;
	case 'l':
		o->list = true;
		return true;
	case 'h':
		o->help = true;
		return true;
	}
	return false;
}

static bool options_read(int argc, char **argv, struct options *o)
{
	static const struct option known[] = {
		{ "native", no_argument, NULL, 'n' },
		{ "library", required_argument, NULL, 'L' },
		{ "platform", required_argument, NULL, 'p' },
		{ "device", required_argument, NULL, 'd' },
		{ "protected-heap", required_argument, NULL, 'P' },
		{ "shuffle", required_argument, NULL, 's' },
		{ "timeout", required_argument, NULL, 't' },
		{ "total", required_argument, NULL, 'T' },
		{ "together", no_argument, NULL, 'g' },
		{ "afresh", no_argument, NULL, 'a' },
		{ "list", no_argument, NULL, 'l' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	int c, i = 0;

	opterr = 0; /* getopt_long() would print the word as it is */
	while ((c = getopt_long(argc, argv, ":", known, &i)) != -1)
		if (!option_read(c, o)) {
			if (c == '?' || c == ':')
				terminal_line(stderr, 4, "climport-conform: %s %s",
					      argv[optind - 1],
					      c == ':' ? "needs a value" : "is no option");
			else
				terminal_line(stderr, 4, "climport-conform: --%s cannot be %s",
					      known[i].name, optarg ? optarg : "used");
			return false;
		}
	return true;
}

static int conform_run(const struct options *o, int count, char **patterns)
{
	struct test **tests = NULL;
	size_t chosen = choose_tests(count, patterns, &tests);
	int status = WRONG_USAGE;

	if (chosen) {
		if (o->shuffle)
			tests_shuffle(tests, chosen, o->seed);
		status = run_tests(&o->run, tests, chosen);
	}
	free(tests);
	return status;
}

/* The status, if everything that was printed is written. */
static int conform_end(int status)
{
	const int failed = fflush(stdout) || ferror(stdout), error = errno;

	watch_finish();
	if (!failed)
		return status;
	terminal_line(stderr, 4, "climport-conform: the results cannot be written: %s",
		      strerror(error));
	return WRONG_USAGE;
}

int main(int argc, char **argv)
{
	struct options options = { .run = { .seconds = TEST_SECONDS,
					    .total_seconds = TOTAL_SECONDS } };

	terminal_open_files();
	if (!options_read(argc, argv, &options)) {
		fprintf(stderr, "climport-conform: wrong arguments (see --help)\n");
		return WRONG_USAGE;
	}
	if (options.help) {
		conform_print_help();
		return conform_end(0);
	}
	if (options.list && optind < argc) {
		terminal_line(stderr, 4, "climport-conform: --list takes no argument %s",
			      argv[optind]);
		return WRONG_USAGE;
	}
	if (options.list)
		return conform_end(print_list());
	return conform_end(conform_run(&options, argc - optind, argv + optind));
}
