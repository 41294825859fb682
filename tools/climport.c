/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

/* The loader reads OPENCL_LAYERS once, so the program starts itself anew with the layer in it. */
static int info_with_layer(char **argv)
{
	const char *before = getenv("OPENCL_LAYERS"), *layer = path_layer();

	if (!layer)
		return 1;
	if (before && strstr(before, layer))
		return info();
	return enable_layer() ? start(argv) : 1;
}

int main(int argc, char **argv)
{
	char *again[] = { (char *)"/proc/self/exe", (char *)"info", NULL };

	if (argc < 2 || !strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")) {
		fputs(usage, argc < 2 ? stderr : stdout);
		return argc < 2 ? 2 : 0;
	}
	if (!strcmp(argv[1], "--version")) {
		puts("climport " CLIMPORT_RELEASE);
		return 0;
	}
	if (!strcmp(argv[1], "info"))
		return argc == 2 ? info_with_layer(again)
				 : fail_usage("info takes no argument:", argv[2]);
	if (!strcmp(argv[1], "run"))
		return run(argc - 1, argv + 1);
	if (!strcmp(argv[1], "conform"))
		return conform(argc - 1, argv + 1);
	if (!strcmp(argv[1], "diag"))
		return run_diag(argc - 1, argv + 1);
	return fail_usage("unknown command", argv[1]);
}
