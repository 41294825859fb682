/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "arguments.h"
#include "bench.h"
#include "diag.h"
#include "enable.h"
#include "environment.h"
#include "info.h"
#include "paths.h"
#include "terminal.h"

enum status {
	NOT_RUNNABLE = 126, /* as env(1) and shells have it */
	NOT_FOUND = 127,
};

static int climport_start(const char *file, char **argv)
{
	int error;

	execvp(file, argv);
	error = errno;
	terminal_line(stderr, 4, "climport: %s: %s", file, strerror(error));
	return error == ENOENT ? NOT_FOUND : NOT_RUNNABLE;
}

static int run_set_version(struct arguments *a)
{
	const char *version = option_value(a);

	if (!version)
		return WRONG_USAGE;
	if (strcmp(version, "1.0.0") && strcmp(version, "1.1.0"))
		return fail_usage("run: --version is 1.0.0 or 1.1.0, not %s", version);
	return setenv("CLIMPORT_VERSION", version, 1) ? 1 : 0;
}

static int tool_run(int argc, char **argv)
{
	struct arguments a = { "run", argc, argv, 1, NULL };
	int status = 0;

	setenv("CLIMPORT_LOG", "error", 0);
	while (!status && option_next(&a)) {
		if (option_is(&a, "--version"))
			status = run_set_version(&a);
		else if (option_is(&a, "--image2d"))
			setenv("CLIMPORT_IMAGE2D_FROM_BUFFER", "1", 1);
		else if (option_is(&a, "--verbose"))
			setenv("CLIMPORT_LOG", "debug", 1);
		else if (option_is(&a, "--quiet"))
			unsetenv("CLIMPORT_LOG");
		else
			status = fail_option(&a);
	}
	if (status)
		return status;
	if (a.next == argc || !*argv[a.next])
		return fail_usage("run: no program is named");
	environment_check();
	return enable_layer() && enable_symbol() ? climport_start(argv[a.next], argv + a.next) : 1;
}

/* The program climport-conform parses the options, and takes the layers away with --native. */
static int tool_conform(int argc, char **argv)
{
	const char *program = path_conform();

	(void)argc;
	if (!program || (!arguments_have(argv, "--native") && !enable_layer()))
		return 1;
	argv[0] = (char *)program;
	return climport_start(program, argv);
}

static int tool_diag(int argc, char **argv)
{
	struct arguments a = { "diag", argc, argv, 1, NULL };
	const char *root = "";
	bool json = false;
	int folder;

	environment_check();
	while (option_next(&a)) {
		if (option_is(&a, "--json"))
			json = true;
		else if (!option_is(&a, "--sysfs"))
			return fail_option(&a);
		else if (!(root = option_value(&a)))
			return WRONG_USAGE;
	}
	folder = open(*root ? root : "/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (folder < 0)
		return fail_usage("diag: --sysfs %s: %s", root, strerror(errno));
	close(folder);
	if (a.next + 1 < argc)
		return fail_usage("diag takes one address, and not %s as well", argv[a.next + 1]);
	return diag_command(root, a.next < argc ? argv[a.next] : NULL, json, stdout);
}

/* The table needs no driver. */
static int tool_info(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "--env"))
		return environment_print();
	environment_check();
	return enable_layer() ? info_command(argc, argv) : 1;
}

static int tool_bench(int argc, char **argv)
{
	environment_check();
	return enable_layer() ? bench_command(argc, argv, NULL) : 1;
}

static int tool_help(int argc, char **argv);
static int tool_version(int argc, char **argv);

/* Text begins in column 28. */
#define INDENT "                           "

static const struct command {
	const char *name, *arguments;
	const char *help; /* lines; the first line continues the name's line if it has room */
	int (*start)(int argc, char **argv);
} commands[] = {
	{ "info", "[OPTIONS]",
	  "print what each OpenCL device can import, and how\n"
	  "      --platform NAME      only this platform: its number, or a part of its name\n"
	  "      --device NAME        only this device, likewise\n"
	  "      --json               print for programs\n"
	  "      --env                print the environment variables that climport reads\n",
	  tool_info },
	{ "run", "[OPTIONS] [--] PROGRAM [ARGUMENTS]",
	  "start a program with clImportMemoryARM on any driver\n"
	  "      --version 1.1.0      allow host access to imports (default 1.0.0)\n"
	  "      --image2d            report cl_khr_image2d_from_buffer, which ffmpeg and\n"
	  "                           ffplay get without this option\n"
	  "      --verbose            print decisions, too: what each device takes, and why\n"
	  "      --quiet              do not print why an import fails\n",
	  tool_run },
	{ "conform", "[OPTIONS] [TEST ...]",
	  "test a driver against the extension's text\n"
	  "      --native             test the driver's own extension, without the layer\n"
	  "      --platform NAME      test this platform: its number, or a part of its name\n"
	  "                           (default: the first with the extension)\n"
	  "      --device NAME        test this device, likewise (default 0)\n"
	  "      --list               print the sentences of the text, and their tests\n"
	  "      --help               print all options\n",
	  tool_conform },
	{ "bench", "[OPTIONS]",
	  "measure from which size on importing wins here\n"
	  "                           (half a minute, if the machine does nothing else)\n"
	  "      --platform NAME      on this platform: its number, or a part of its name\n"
	  "      --device NAME        likewise (default: a GPU, if there is one)\n"
	  "      --size MAX           the largest memory (default 256M)\n"
	  "      --quick              about 10 seconds, up to 64M\n"
	  "      --json FILE          write the figures for programs\n",
	  tool_bench },
	{ "diag", "[OPTIONS] [PEER]",
	  "say what stops PCI devices from reaching GPU memory\n"
	  "      --json               print for programs\n"
	  "      PEER                 judge only the device at this PCI address\n"
	  "      --sysfs DIR          read another machine's files below this folder\n",
	  tool_diag },
	{ "enable", "[OPTIONS]",
	  "turn the layer on for every program, as root\n"
	  "      --user               for your own programs alone\n"
	  "      --root DIR           write the files of a container's image, below DIR\n"
	  "      --environment        set OPENCL_LAYERS, too, for older OpenCL loaders\n",
	  enable_start },
	{ "disable", "[--user] [--root DIR]", "turn off what `enable` has turned on\n",
	  enable_start },
	{ "help", "[COMMAND]", "print the commands, or the options of a command\n", tool_help },
	{ "version", "", "print the version\n", tool_version },
};
#define NUM_COMMANDS (sizeof(commands) / sizeof(commands[0]))

static const struct command *command_find(const char *name)
{
	for (size_t i = 0; i < NUM_COMMANDS; i++)
		if (!strcmp(commands[i].name, name))
			return &commands[i];
	return NULL;
}

static void print_lines(FILE *out, const char *lines)
{
	for (size_t length; *lines; lines += length + 1) {
		length = strcspn(lines, "\n");
		terminal_line(out, (int)strlen(INDENT), "%.*s", (int)length, lines);
	}
}

/* The first of @help's lines goes behind @head if there is room. */
static void print_command(FILE *out, const char *head, const char *help)
{
	const size_t first = strcspn(help, "\n");

	if (strlen(head) >= strlen(INDENT)) {
		terminal_line(out, (int)strlen(INDENT), "%s", head);
		head = "";
	}
	terminal_line(out, (int)strlen(INDENT), "%-*s%.*s", (int)strlen(INDENT), head, (int)first,
		      help);
	print_lines(out, help + first + 1);
}

static void print_usage(FILE *out)
{
	char head[128];

	fputs("Usage: climport COMMAND\n\n", out);
	for (size_t i = 0; i < NUM_COMMANDS; i++) {
		snprintf(head, sizeof(head), "  %s %s", commands[i].name, commands[i].arguments);
		print_command(out, head, commands[i].help);
	}
}

static int print_help(const struct command *c)
{
	terminal_line(stdout, 4, "Usage: climport %s %s", c->name, c->arguments);
	putchar('\n');
	print_lines(stdout, c->help);
	return 0;
}

static bool is_help(const char *word)
{
	return !strcmp(word, "--help") || !strcmp(word, "-h");
}

/* The words after "--", or after a word that is no option, are a program's. */
static bool asks_for_help(char **argv)
{
	for (; *argv && **argv == '-' && strcmp(*argv, "--"); argv++)
		if (is_help(*argv))
			return true;
	return false;
}

static int tool_help(int argc, char **argv)
{
	const struct command *c = argc > 1 ? command_find(argv[1]) : NULL;

	if (argc > 1 && !c)
		return fail_usage("unknown command %s", argv[1]);
	if (c)
		return print_help(c);
	print_usage(stdout);
	return 0;
}

static int tool_version(int argc, char **argv)
{
	if (argc > 1)
		return fail_usage("version takes no argument %s", argv[1]);
	puts("climport " CLIMPORT_RELEASE);
	return 0;
}

/* The status, if everything that was printed is written. */
static int climport_end(int status)
{
	const int failed = fflush(stdout);

	if (!failed && !ferror(stdout))
		return status;
	terminal_line(stderr, 4, "climport: what is printed cannot be written%s%s",
		      failed ? ": " : "", failed ? strerror(errno) : "");
	return WRONG_USAGE;
}

static int climport_command(int argc, char **argv)
{
	const struct command *c;

	if (argc < 1) {
		print_usage(stderr);
		return WRONG_USAGE;
	}
	if (is_help(argv[0]))
		return tool_help(argc, argv);
	if (!strcmp(argv[0], "--version") || !strcmp(argv[0], "-v"))
		return tool_version(argc, argv);
	c = command_find(argv[0]);
	if (!c)
		return fail_usage("unknown command %s", argv[0]);
	if (c->start != tool_conform && asks_for_help(argv + 1))
		return print_help(c);
	return c->start(argc, argv);
}

int main(int argc, char **argv)
{
	terminal_open_files();
	return climport_end(climport_command(argc - 1, argv + 1));
}
