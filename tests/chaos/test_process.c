/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operations of programs on their own process.  Each test runs alone (--alone), on PoCL, with the
 * layer and without the layer: a program must work with the layer if the program works without.
 */
#include <CL/cl_ext.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "folder.h"
#include "harness.h"

enum { PAGE = 4096, SIZE = 16 * PAGE };

static const char source[] = "kernel void increment(global uchar *a) { a[get_global_id(0)]++; }\n"
			     "kernel void spin(global uchar *a, ulong rounds)\n"
			     "{ for (volatile ulong i = 0; i < rounds; i++) a[0] = i; }\n";

/* NULL if the layer is not loaded */
static __typeof__(&clImportMemoryARM) import_memory;
static cl_context context;
static cl_command_queue queue;
static cl_program program;

static cl_platform_id session_query(void)
{
	cl_platform_id platform;
	char extensions[4096];

	EXPECT_EQ(clGetPlatformIDs(1, &platform, NULL), CL_SUCCESS);
	EXPECT_EQ(clGetPlatformInfo(platform, CL_PLATFORM_EXTENSIONS, sizeof(extensions),
				    extensions, NULL),
		  CL_SUCCESS);
	return platform;
}

static cl_device_id session_query_device(void)
{
	cl_device_id device;
	char extensions[4096];

	EXPECT_EQ(clGetDeviceIDs(session_query(), CL_DEVICE_TYPE_ALL, 1, &device, NULL),
		  CL_SUCCESS);
	EXPECT_EQ(
		clGetDeviceInfo(device, CL_DEVICE_EXTENSIONS, sizeof(extensions), extensions, NULL),
		CL_SUCCESS);
	return device;
}

static void session_create(void)
{
	const char *text = source;
	cl_platform_id platform = session_query();
	cl_device_id device;
	cl_int err;

	EXPECT_EQ(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL), CL_SUCCESS);
	import_memory = (__typeof__(import_memory))clGetExtensionFunctionAddressForPlatform(
		platform, "clImportMemoryARM");
	EXPECT(import_memory || !getenv("OPENCL_LAYERS"));
	context = clCreateContext(NULL, 1, &device, NULL, NULL, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	queue = clCreateCommandQueueWithProperties(context, device, NULL, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	program = clCreateProgramWithSource(context, 1, &text, NULL, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	EXPECT_EQ(clBuildProgram(program, 0, NULL, NULL, NULL, NULL), CL_SUCCESS);
}

static cl_mem session_create_buffer(void *at, cl_int *err)
{
	return import_memory ? import_memory(context, CL_MEM_READ_WRITE, NULL, at, SIZE, err)
			     : clCreateBuffer(context, CL_MEM_USE_HOST_PTR, SIZE, at, err);
}

static void session_increment(cl_mem mem)
{
	const size_t size = SIZE;
	cl_int err;
	cl_kernel kernel = clCreateKernel(program, "increment", &err);

	EXPECT_EQ(err, CL_SUCCESS);
	EXPECT_EQ(clSetKernelArg(kernel, 0, sizeof(mem), &mem), CL_SUCCESS);
	EXPECT_EQ(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &size, NULL, 0, NULL, NULL),
		  CL_SUCCESS);
	EXPECT_EQ(clFinish(queue), CL_SUCCESS);
	clReleaseKernel(kernel);
}

/* Runs a kernel that increments each byte of new memory. */
static void use_opencl(void)
{
	unsigned char *at = aligned_alloc(PAGE, SIZE);
	cl_int err = 1;
	cl_mem mem;

	memset(at, 5, SIZE);
	mem = session_create_buffer(at, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	session_increment(mem);
	for (int i = 0; i < SIZE; i++)
		EXPECT_EQ(at[i], 6);
	clReleaseMemObject(mem);
	free(at);
}

/* The wait status of a child that runs @run.  SIGALRM kills a hanging child. */
static int status_of_child(void (*run)(void))
{
	int status;
	pid_t child;

	fflush(stdout);
	child = fork();
	EXPECT(child >= 0);
	if (!child) {
		alarm(TEST_HANG_S);
		run();
		exit(0);
	}
	EXPECT_EQ(waitpid(child, &status, 0), child);
	return status;
}

static void session_expect_child(void (*run)(void))
{
	EXPECT_EQ(status_of_child(run), 0);
}

static void session_in_child(void)
{
	session_create();
	use_opencl();
	_exit(0);
}

TEST(fork_after_platform_query, "A child can use OpenCL after the parent has queried the platform.")
{
	alarm(TEST_HANG_S);
	session_query();
	session_expect_child(session_in_child);
	session_expect_child(session_in_child);
	session_create();
	use_opencl();
}

static void exec_in_child(void)
{
	execlp("true", "true", NULL);
	_exit(127);
}

TEST(exec_after_use, "A program that uses OpenCL can start other programs.")
{
	alarm(TEST_HANG_S);
	session_create();
	use_opencl();
	for (int i = 0; i < 10; i++)
		session_expect_child(exec_in_child);
	use_opencl();
}

static void spin_and_exit(void)
{
	const size_t one = 1;
	const cl_ulong rounds = 20000000;
	unsigned char *at = aligned_alloc(PAGE, SIZE);
	cl_kernel kernel;
	cl_mem mem;

	session_create();
	mem = session_create_buffer(at, NULL);
	EXPECT(mem);
	kernel = clCreateKernel(program, "spin", NULL);
	clSetKernelArg(kernel, 0, sizeof(mem), &mem);
	clSetKernelArg(kernel, 1, sizeof(rounds), &rounds);
	EXPECT_EQ(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &one, NULL, 0, NULL, NULL),
		  CL_SUCCESS);
	clFlush(queue);
	exit(0);
}

/*
 * PoCL 3.1 itself crashes in one of 30 runs: PoCL's threads use objects that exit() has destroyed.
 */
TEST(exit_while_a_kernel_runs, "A program that exits while a kernel runs does not hang.")
{
	alarm(TEST_HANG_S);
	for (int i = 0; i < 5; i++) {
		int status = status_of_child(spin_and_exit);

		EXPECT(!WIFSIGNALED(status) || WTERMSIG(status) != SIGALRM);
	}
}

TEST(descriptors_closed, "A program can close every descriptor above 2 and still use OpenCL.")
{
	alarm(TEST_HANG_S);
	session_create();
	use_opencl();
	closefrom(3);
	use_opencl();
	use_opencl();
}

TEST(closed_before_use, "A daemon can close every descriptor after the first query.")
{
	alarm(TEST_HANG_S);
	session_query_device();
	closefrom(3);
	session_create();
	use_opencl();
}

static volatile sig_atomic_t children;

static void on_child(int number)
{
	int saved = errno;

	(void)number;
	children++;
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
	errno = saved;
}

/* Sets an empty cache, so that earlier results do not help. */
static void forget_verdicts(void)
{
	char folder[64];

	folder_path("cache-XXXXXX", folder, sizeof(folder));
	EXPECT(mkdtemp(folder));
	if (!getenv("POCL_CACHE_DIR"))
		setenv("POCL_CACHE_DIR", "/tmp", 1);
	setenv("XDG_CACHE_HOME", folder, 1);
}

TEST(child_handler, "A program whose SIGCHLD handler waits for every child can use OpenCL.")
{
	const struct sigaction action = { .sa_handler = on_child };

	alarm(TEST_HANG_S);
	forget_verdicts();
	EXPECT_EQ(sigaction(SIGCHLD, &action, NULL), 0);
	session_query_device();
	session_create();
	use_opencl();
}

TEST(child_signal, "A query sends no SIGCHLD to the program.")
{
	const struct sigaction action = { .sa_handler = on_child };

	alarm(TEST_HANG_S);
	forget_verdicts();
	EXPECT_EQ(sigaction(SIGCHLD, &action, NULL), 0);
	session_query_device();
	EXPECT_EQ(children, 0);
}

TEST(children_ignored, "A program that ignores SIGCHLD can use OpenCL.")
{
	alarm(TEST_HANG_S);
	forget_verdicts();
	signal(SIGCHLD, SIG_IGN);
	session_query_device();
	session_create();
	use_opencl();
}

TEST(waits_for_any_child,
     "waitpid(-1) waits for the program's own child, and finds no other child.")
{
	int status;
	pid_t child;

	alarm(TEST_HANG_S);
	forget_verdicts();
	child = fork();
	if (!child)
		_exit(7);
	EXPECT(child > 0);
	session_query_device();
	EXPECT_EQ(waitpid(-1, &status, 0), child);
	EXPECT_EQ(WEXITSTATUS(status), 7);
	EXPECT_EQ(waitpid(-1, &status, 0), -1);
	EXPECT_EQ(errno, ECHILD);
}

/* The lowest free descriptor. */
static rlim_t lowest_free(void)
{
	int fd = dup(0);

	EXPECT(fd >= 0);
	close(fd);
	return (rlim_t)fd;
}

static void session_limit_descriptors(rlim_t limit, rlim_t max)
{
	const struct rlimit limits = { limit, max };

	EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &limits), 0);
}

/* Numbers of descriptors that a program may still open. */
static const struct room {
	const char *name;
	rlim_t descriptors;
} rooms[] = { { "0", 0 }, { "1", 1 }, { "2", 2 }, { "3", 3 }, { "4", 4 }, { "5", 5 } };

TEST_EACH(
	no_descriptors_left, struct room, rooms,
	"An import with few free descriptors works or returns an error, and the next import works.")
{
	struct rlimit limits;
	unsigned char *at = aligned_alloc(PAGE, SIZE);
	cl_int err = 1;
	cl_mem mem;

	alarm(TEST_HANG_S);
	EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &limits), 0);
	session_create();
	session_limit_descriptors(lowest_free() + row->descriptors, limits.rlim_max);
	mem = session_create_buffer(at, &err);
	EXPECT_EQ(mem != NULL, err == CL_SUCCESS);
	EXPECT(err <= 0);
	/* PoCL opens files to run a kernel, and aborts if no file can be opened. */
	session_limit_descriptors(limits.rlim_cur, limits.rlim_max);
	if (mem) {
		session_increment(mem);
		clReleaseMemObject(mem);
	}
	use_opencl();
	free(at);
}

static rlim_t query_room;

static void query_with_room(void)
{
	struct rlimit limits;
	cl_platform_id platform;
	cl_device_id device;
	char extensions[4096];

	getrlimit(RLIMIT_NOFILE, &limits);
	EXPECT_EQ(clGetPlatformIDs(1, &platform, NULL), CL_SUCCESS);
	EXPECT_EQ(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL), CL_SUCCESS);
	session_limit_descriptors(lowest_free() + query_room, limits.rlim_max);
	EXPECT_EQ(clGetPlatformInfo(platform, CL_PLATFORM_EXTENSIONS, sizeof(extensions),
				    extensions, NULL),
		  CL_SUCCESS);
	EXPECT_EQ(
		clGetDeviceInfo(device, CL_DEVICE_EXTENSIONS, sizeof(extensions), extensions, NULL),
		CL_SUCCESS);
	session_limit_descriptors(limits.rlim_cur, limits.rlim_max);
	session_create();
	use_opencl();
	_exit(0);
}

TEST_EACH(query_without_descriptors, struct room, rooms,
	  "A query with few free descriptors succeeds, and imports work afterwards.")
{
	alarm(TEST_HANG_S);
	forget_verdicts();
	query_room = row->descriptors;
	session_expect_child(query_with_room);
}
