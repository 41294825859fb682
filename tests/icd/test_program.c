/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the layer tells a program that needs cl_khr_image2d_from_buffer for imports.  Each program is
 * a new process, below the system's loader, over the stub.
 */

#include <CL/cl.h>
#include <CL/cl_ext.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness.h"
#include "icd/queries/describe.h"
#include "text.h"

enum { PAGE = 4096 };

static const char image2d[] = "cl_khr_image2d_from_buffer", hint[] = "climport run --image2d";

/* What a program does, besides that it reads the extensions of a device. */
struct program {
	bool is_linked;	  /* to libclimport */
	bool is_idle;	  /* creates no context */
	bool asks;	  /* for the function by its name */
	bool describes;	  /* asks the layer what devices import, as `climport info` does */
	bool imports;	  /* memory */
	bool is_informed; /* the program gets the name */
	bool forks;	  /* a child, which exits */
};

/* In the program's process, where a test cannot end. */
#define NEED(condition) program_need(condition, #condition)

static void program_need(bool condition, const char *text)
{
	if (condition)
		return;
	printf("# %s\n", text);
	fflush(stdout);
	_exit(1);
}

static bool program_has_name(cl_device_id device, const char *name)
{
	char list[4096];

	NEED(!clGetDeviceInfo(device, CL_DEVICE_EXTENSIONS, sizeof(list), list, NULL));
	return text_count_word(list, name);
}

static void program_import(cl_platform_id platform, cl_context context)
{
	static unsigned char memory[2 * PAGE];
	__typeof__(&clImportMemoryARM) import =
		(__typeof__(import))clGetExtensionFunctionAddressForPlatform(platform,
									     "clImportMemoryARM");
	cl_int err;

	NEED(import);
	clReleaseMemObject(import(context, 0, NULL, memory, sizeof(memory), &err));
	NEED(!err);
}

static void program_use(const struct program *p, cl_platform_id platform, cl_device_id device)
{
	cl_int err;
	cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &err);

	NEED(context);
	if (p->imports)
		program_import(platform, context);
	clReleaseContext(context);
}

static void program_main(const struct program *p)
{
	cl_platform_id platform;
	cl_device_id device;

	if (p->is_linked)
		NEED(dlopen(LIBRARY_PATH, RTLD_NOW));
	NEED(!clGetPlatformIDs(1, &platform, NULL));
	NEED(!clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL));
	NEED(program_has_name(device, "cl_arm_import_memory"));
	NEED(program_has_name(device, image2d) == p->is_informed);
	if (p->asks)
		NEED(clGetExtensionFunctionAddressForPlatform(platform, "clImportMemoryARM"));
	if (p->describes)
		NEED(clGetExtensionFunctionAddressForPlatform(platform, DESCRIBE_FUNCTION));
	if (!p->is_idle)
		program_use(p, platform, device);
	if (p->forks && !fork())
		exit(0);
	while (wait(NULL) > 0)
		;
}

static void program_environment(const char *log, const char *asked)
{
	setenv("OCL_ICD_VENDORS", STUB_VENDORS, 1);
	setenv("OPENCL_LAYERS", LAYER_PATH, 1);
	setenv("CLIMPORT_PROBE", "here", 1);
	setenv("XDG_CACHE_HOME", "/proc/nothing", 1);
	setenv("CLIMPORT_LOG", log, 1);
	if (asked)
		setenv("CLIMPORT_IMAGE2D_FROM_BUFFER", asked, 1);
	else
		unsetenv("CLIMPORT_IMAGE2D_FROM_BUFFER");
}

/* How often the program prints the hint. */
static int program_count_hints(const struct program *p, const char *log, const char *asked)
{
	char errors[4096] = "";
	int ends[2], status, count = 0;
	size_t used = 0;
	ssize_t got;
	pid_t child;

	EXPECT_EQ(pipe(ends), 0);
	fflush(stdout);
	child = fork();
	if (!child) {
		dup2(ends[1], STDERR_FILENO);
		close(ends[0]);
		close(ends[1]);
		program_environment(log, asked);
		program_main(p);
		exit(0);
	}
	close(ends[1]);
	while ((got = read(ends[0], errors + used, sizeof(errors) - 1 - used)) > 0)
		used += (size_t)got;
	close(ends[0]);
	EXPECT(waitpid(child, &status, 0) == child && !status);
	for (const char *at = errors; (at = strstr(at, hint)); at++)
		count++;
	return count;
}

TEST(linked, "A program linked to libclimport that imports nothing is told of the missing name.")
{
	EXPECT_EQ(program_count_hints(&(struct program){ .is_linked = true }, "error", NULL), 1);
}

TEST(asks, "A program that asks for clImportMemoryARM and imports nothing is told, too.")
{
	EXPECT_EQ(program_count_hints(&(struct program){ .asks = true }, "error", NULL), 1);
}

TEST(forks, "The program is told once, and no child of fork().")
{
	const struct program p = { .asks = true, .forks = true };

	EXPECT_EQ(program_count_hints(&p, "error", NULL), 1);
}

TEST(ordinary, "A program without clImportMemoryARM is not told.")
{
	EXPECT_EQ(program_count_hints(&(struct program){ 0 }, "error", NULL), 0);
}

TEST(idle, "A program that creates no context, such as one that lists devices, is not told.")
{
	const struct program p = { .is_linked = true, .asks = true, .is_idle = true };

	EXPECT_EQ(program_count_hints(&p, "error", NULL), 0);
}

TEST(imports, "A program that imports is not told.")
{
	const struct program p = { .is_linked = true, .imports = true };

	EXPECT_EQ(program_count_hints(&p, "error", NULL), 0);
}

TEST(describes, "A program that asks the layer itself, such as climport info, is not told.")
{
	const struct program p = { .is_linked = true, .describes = true };

	EXPECT_EQ(program_count_hints(&p, "error", NULL), 0);
}

TEST(silent, "Nothing is printed without CLIMPORT_LOG=error.")
{
	EXPECT_EQ(program_count_hints(&(struct program){ .asks = true }, "off", NULL), 0);
}

TEST(decided, "CLIMPORT_IMAGE2D_FROM_BUFFER says that the user has decided.")
{
	const struct program without = { .asks = true };
	const struct program with = { .asks = true, .is_informed = true };

	EXPECT_EQ(program_count_hints(&without, "error", "0"), 0);
	EXPECT_EQ(program_count_hints(&with, "error", "1"), 0);
}

TEST(driver, "A driver that has the name needs no hint.")
{
	const struct program p = { .asks = true, .is_informed = true };

	setenv("STUB_IMAGE2D_FROM_BUFFER", "1", 1);
	EXPECT_EQ(program_count_hints(&p, "error", NULL), 0);
	unsetenv("STUB_IMAGE2D_FROM_BUFFER");
}

TEST(ffmpeg, "ffmpeg and ffplay get the name without a flag, unless the user has decided.")
{
	const struct program with = { .is_linked = true, .is_informed = true };
	const struct program without = { .is_linked = true };
	char *name = program_invocation_short_name;

	program_invocation_short_name = (char *)"ffplay";
	EXPECT_EQ(program_count_hints(&with, "error", NULL), 0);
	program_invocation_short_name = (char *)"ffmpeg";
	EXPECT_EQ(program_count_hints(&with, "error", NULL), 0);
	EXPECT_EQ(program_count_hints(&without, "error", "0"), 0);
	program_invocation_short_name = name;
}
