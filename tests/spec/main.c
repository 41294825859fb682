/* SPDX-License-Identifier: Apache-2.0 */
#include <getopt.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness.h"
#include "list.h"
#include "runner.h"

/* Names the unknown test; harness.c would run no test and exit with status 1. */
static bool all_known(int argc, char **argv)
{
	for (int i = 0; i < argc; i++) {
		struct test *t = test_first();

		while (t && strcmp(t->name, argv[i]))
			t = t->next;
		if (!t) {
			fprintf(stderr, "climport-conform: no test is called %s\n", argv[i]);
			return false;
		}
	}
	return true;
}

static void conform_print_help(void)
{
	puts("Usage: climport-conform [OPTION]... [TEST]...\n"
	     "Tests an implementation of the OpenCL extension cl_arm_import_memory against the\n"
	     "text of the extension, revision 6 and where it differs revision 12: this project's\n"
	     "layer, or a driver's own.  Prints TAP.\n"
	     "\n"
	     "  --platform NAME  the first platform with NAME in its name and the extension\n"
	     "  --device N       its device with this index, 0 without the option\n"
	     "  --list           the sentences of the text, their tests, and why some have none\n"
	     "  --help           this text\n"
	     "\n"
	     "Environment:\n"
	     "  CLIMPORT_CONFORM_EXACT=1  where the text is open, only what climport does is\n"
	     "                            right; also makes calls that may crash elsewhere\n"
	     "\n"
	     "Exit status: 0, 1 when a test failed, 77 when all were skipped, 2 for bad usage.");
}

struct options {
	struct target target;
	bool list, help;
};

static bool parse_number(const char *text, unsigned int *number)
{
	char *end;
	unsigned long value = strtoul(text, &end, 10);

	*number = value;
	return *text >= '0' && *text <= '9' && !*end && value < 64;
}

static bool options_read(int argc, char **argv, struct options *o)
{
	static const struct option known[] = {
		{ "platform", required_argument, NULL, 'p' },
		{ "device", required_argument, NULL, 'd' },
		{ "list", no_argument, NULL, 'l' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	int c;

	while ((c = getopt_long(argc, argv, "", known, NULL)) != -1) {
		if (c == 'p')
			o->target.platform = optarg;
		else if (c == 'l')
			o->list = true;
		else if (c == 'h')
			o->help = true;
		else if (c != 'd' || !parse_number(optarg, &o->target.device))
			return false;
	}
	return true;
}

/* Asks in a child process, because a driver may crash.  A driver that crashes is present. */
static bool is_there(const struct target *target)
{
	int status = 0;
	pid_t pid = fork();

	if (!pid)
		_exit(spec_lacks(target->platform, target->device) ? 2 : 0);
	if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status) ||
	    WEXITSTATUS(status) != 2)
		return true;
	fprintf(stderr,
		"climport-conform: no OpenCL platform has '%s' in its name and a device %u\n",
		target->platform, target->device);
	return false;
}

int main(int argc, char **argv)
{
	struct options options = { .target = { .platform = "" } };

	if (!options_read(argc, argv, &options)) {
		fprintf(stderr, "climport-conform: wrong arguments (see --help)\n");
		return 2;
	}
	if (options.help) {
		conform_print_help();
		return 0;
	}
	if (options.list)
		return print_list();
	if (!all_known(argc - optind, argv + optind) || !is_there(&options.target))
		return 2;
	return run_tests(&options.target, argc - optind, argv + optind);
}
