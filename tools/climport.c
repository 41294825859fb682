/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"
#include "diag.h"
#include "info.h"
#include "paths.h"

static const char usage[] =
	"Usage: climport COMMAND\n"
	"\n"
	"  info                     what every OpenCL device can import, how, or why not\n"
	"  run [OPTIONS] [--] PROGRAM [ARGUMENTS]\n"
	"                           start a program with clImportMemoryARM on every driver\n"
	"      --version 1.1.0      let the host access imports as well (default 1.0.0)\n"
	"      --image2d            report cl_khr_image2d_from_buffer (FFmpeg asks for it)\n"
	"      --quiet              do not print why an import fails\n"
	"  conform [OPTIONS] [TEST ...]\n"
	"                           test a driver against the extension's text\n"
	"      --native             the driver's own implementation, without the layer\n"
	"      --platform NAME, --device N, --list: see climport conform --help\n"
	"  bench [OPTIONS]          measure what importing is worth here, about a minute\n"
	"      --platform NAME, --device N: the default is a GPU, if there is one\n"
	"      --size MAX           the largest memory (default 1G)\n"
	"      --quick              about 10 seconds, up to 64M\n"
	"      --json FILE, --svg FILE: the figures, and plots of them\n"
	"  diag [--sysfs DIR] [PEER]\n"
	"                           what would stop PCI devices, or the one at this address, from\n"
	"                           reaching GPU memory\n"
	"  --version, --help\n";

static int fail_usage(const char *what, const char *argument)
{
	fprintf(stderr, "climport: %s%s%s\nTry 'climport --help'.\n", what, argument ? " " : "",
		argument ? argument : "");
	return 2;
}

static int start(char **argv)
{
	execvp(argv[0], argv);
	fprintf(stderr, "climport: %s: %m\n", argv[0]);
	return 127;
}

static int run(int argc, char **argv)
{
	int i = 1;

	setenv("CLIMPORT_LOG", "error", 0);
	for (; i < argc && argv[i][0] == '-'; i++) {
		if (!strcmp(argv[i], "--")) {
			i++;
			break;
		}
		if (!strcmp(argv[i], "--version") && i + 1 < argc)
			setenv("CLIMPORT_VERSION", argv[++i], 1);
		else if (!strcmp(argv[i], "--image2d"))
			setenv("CLIMPORT_IMAGE2D_FROM_BUFFER", "1", 1);
		else if (!strcmp(argv[i], "--quiet"))
			unsetenv("CLIMPORT_LOG");
		else
			return fail_usage("run: unknown option", argv[i]);
	}
	if (i == argc)
		return fail_usage("run: no program is named", NULL);
	return enable_layer() ? start(argv + i) : 1;
}

static int conform(int argc, char **argv)
{
	const char *program = path_conform();
	int native = argc > 1 && !strcmp(argv[1], "--native");

	if (!program || (!native && !enable_layer()))
		return 1;
	argv += native;
	argv[0] = (char *)program;
	return start(argv);
}

static int run_diag(int argc, char **argv)
{
	const char *root = "";
	int i = 1;

	for (; i < argc && argv[i][0] == '-'; i++) {
		if (strcmp(argv[i], "--sysfs") || i + 1 == argc)
			return fail_usage("diag: unknown option, or no argument:", argv[i]);
		root = argv[++i];
	}
	if (i + 1 < argc)
		return fail_usage("diag takes one address:", argv[i + 1]);
	return diag(root, i < argc ? argv[i] : NULL, stdout);
}

/* Bytes, with K, M or G; 0 if it is no such thing. */
static size_t parse_size(const char *text)
{
	static const char units[] = "KMG";
	char *end;
	unsigned long long size = strtoull(text, &end, 10);
	const char *unit = *end ? strchr(units, *end) : NULL;
	int shift = unit ? 10 * (int)(unit - units + 1) : 0;

	if (*text < '0' || *text > '9' || (*end && (!unit || end[1])) || size > SIZE_MAX >> shift)
		return 0;
	return size << shift;
}

static int parse_bench(int argc, char **argv, struct bench_options *options)
{
	for (int i = 1; i < argc; i++) {
		const char *value = i + 1 < argc ? argv[i + 1] : NULL;

		if (!strcmp(argv[i], "--quick")) {
			options->quick = true;
			continue;
		}
		if (value && !strcmp(argv[i], "--platform"))
			options->platform = value;
		else if (value && !strcmp(argv[i], "--device") && *value >= '0' && *value <= '9')
			options->device = atoi(value);
		else if (value && !strcmp(argv[i], "--size") && parse_size(value) >= BENCH_SMALLEST)
			options->size = parse_size(value);
		else if (value && !strcmp(argv[i], "--json"))
			options->json = value;
		else if (value && !strcmp(argv[i], "--svg"))
			options->svg = value;
		else
			return fail_usage("bench: unknown option, or a wrong argument:", argv[i]);
		i++;
	}
	return 0;
}

static int run_bench(int argc, char **argv)
{
	struct bench_options options = { .device = -1 };
	int status = parse_bench(argc, argv, &options);

	return status ? status : bench(&options);
}

static int run_info(int argc, char **argv)
{
	return argc == 1 ? info() : fail_usage("info takes no argument:", argv[1]);
}

/* The loader reads OPENCL_LAYERS once, so the program starts itself anew with the layer in it. */
static int with_layer(int argc, char **argv, int (*command)(int, char **))
{
	static char self[] = "/proc/self/exe";

	if (is_layer_enabled())
		return command(argc - 1, argv + 1);
	argv[0] = self;
	return enable_layer() ? start(argv) : 1;
}

int main(int argc, char **argv)
{
	if (argc < 2 || !strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")) {
		fputs(usage, argc < 2 ? stderr : stdout);
		return argc < 2 ? 2 : 0;
	}
	if (!strcmp(argv[1], "--version")) {
		puts("climport " CLIMPORT_RELEASE);
		return 0;
	}
	if (!strcmp(argv[1], "info"))
		return with_layer(argc, argv, run_info);
	if (!strcmp(argv[1], "bench")) {
		setenv("CLIMPORT_LOG", "error", 0);
		return with_layer(argc, argv, run_bench);
	}
	if (!strcmp(argv[1], "run"))
		return run(argc - 1, argv + 1);
	if (!strcmp(argv[1], "conform"))
		return conform(argc - 1, argv + 1);
	if (!strcmp(argv[1], "diag"))
		return run_diag(argc - 1, argv + 1);
	return fail_usage("unknown command", argv[1]);
}
