/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu.h"

static int gpu_print_usage(void)
{
	fputs("Usage: test_gpu [--platform NAME] [--describe | --list | TEST...]\n"
	      "Tests the layer and libclimport on NVIDIA's OpenCL, or on the first platform with\n"
	      "NAME in its name, with the layer in OPENCL_LAYERS.  See tests/gpu/run.\n",
	      stderr);
	return 2;
}

int main(int argc, char **argv)
{
	const char *platform = "NVIDIA";

	if (argc > 2 && !strcmp(argv[1], "--platform")) {
		platform = argv[2];
		argv[2] = argv[0];
		argv += 2;
		argc -= 2;
	}
	if (argc > 1 && !strcmp(argv[1], "--list"))
		return test_main(argc, argv);
	if (argc > 1 && argv[1][0] == '-' && strcmp(argv[1], "--describe") != 0)
		return gpu_print_usage();
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (!gpu_choose(platform))
		return 1;
	if (argc < 2 || strcmp(argv[1], "--describe") != 0)
		return test_main(argc, argv);
	gpu_describe();
	return 0;
}
