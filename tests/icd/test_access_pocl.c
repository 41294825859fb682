/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DMA_BUF_IOCTL_SYNC around kernels of the real PoCL, under the loader, on fake dma-bufs whose SYNC
 * fails.  Each test runs in a loop, since the faults to find are races; the environment variable
 * TEST_LOOPS sets the number of rounds.
 */
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>
#include <CL/cl_ext.h>
#include <errno.h>
#include <spawn.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fake_dmabuf.h"
#include "harness.h"

#define SIZE 4096

static struct pocl {
	cl_context context;
	cl_command_queue queue;
	cl_kernel kernel;
	cl_mem mem;
	int fd;
} pocl;

static int pocl_count_loops(void)
{
	const char *count = getenv("TEST_LOOPS");

	return count ? atoi(count) : 50;
}

static cl_platform_id pocl_find(void)
{
	cl_platform_id platforms[16];
	cl_uint count = 0;
	char name[128];

	clGetPlatformIDs(16, platforms, &count);
	for (cl_uint i = 0; i < count; i++)
		if (!clGetPlatformInfo(platforms[i], CL_PLATFORM_NAME, sizeof(name), name, NULL) &&
		    strstr(name, "Portable Computing Language"))
			return platforms[i];
	test_skip("PoCL is not installed");
}

static cl_mem import_fake(cl_platform_id platform)
{
	const cl_import_properties_arm properties[] = {
		CL_IMPORT_TYPE_ARM, CL_IMPORT_TYPE_DMA_BUF_ARM,
		CL_IMPORT_DMA_BUF_DATA_CONSISTENCY_WITH_HOST_ARM, CL_TRUE, 0
	};
	__typeof__(&clImportMemoryARM) import =
		(__typeof__(import))clGetExtensionFunctionAddressForPlatform(platform,
									     "clImportMemoryARM");
	cl_int err = 1;
	cl_mem mem;

	EXPECT(import);
	pocl.fd = fake_dmabuf_create("pocl", SIZE);
	mem = import(pocl.context, CL_MEM_READ_WRITE, properties, &pocl.fd, SIZE, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	return mem;
}

static cl_kernel kernel_build(cl_device_id device)
{
	const char *source = "kernel void add(global int *a) { a[get_global_id(0)]++; }";
	cl_program program = clCreateProgramWithSource(pocl.context, 1, &source, NULL, NULL);
	cl_kernel kernel;

	EXPECT_EQ(clBuildProgram(program, 1, &device, "", NULL, NULL), CL_SUCCESS);
	kernel = clCreateKernel(program, "add", NULL);
	EXPECT(kernel);
	clReleaseProgram(program);
	return kernel;
}

/* Each round has a fresh queue: a failed queue does not reach the next round. */
static void pocl_open(void)
{
	cl_platform_id platform;
	cl_device_id device;

	alarm(TEST_HANG_S);
	fake_dmabuf_reset();
	setenv("OPENCL_LAYERS", getenv("TEST_LAYER") ? getenv("TEST_LAYER") : LAYER_PATH, 1);
	setenv("CLIMPORT_VERSION", "1.1.0", 1);
	platform = pocl_find();
	EXPECT_EQ(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL), CL_SUCCESS);
	if (!pocl.context) {
		pocl.context = clCreateContext(NULL, 1, &device, NULL, NULL, NULL);
		pocl.kernel = kernel_build(device);
		pocl.mem = import_fake(platform);
		EXPECT_EQ(clSetKernelArg(pocl.kernel, 0, sizeof(pocl.mem), &pocl.mem), CL_SUCCESS);
	}
	pocl.queue = clCreateCommandQueue(pocl.context, device, 0, NULL);
	EXPECT(pocl.queue);
}

static void pocl_close(void)
{
	EXPECT_EQ(clFinish(pocl.queue), CL_SUCCESS);
	clReleaseCommandQueue(pocl.queue);
	fake_dmabuf_fail("", 0, 0);
}

static cl_int pocl_enqueue(cl_event *event)
{
	const size_t one = 1;

	return clEnqueueNDRangeKernel(pocl.queue, pocl.kernel, 1, NULL, &one, NULL, 0, NULL, event);
}

/* The edges of a bracket. */
static const struct pocl_edge {
	const char *name;
} pocl_edges[] = { { "START" }, { "END" } };

TEST_EACH(sync_fails, struct pocl_edge, pocl_edges,
	  "If START or END of a kernel fails, the kernel's event fails.")
{
	for (int i = 0; i < pocl_count_loops(); i++) {
		cl_event done;

		pocl_open();
		fake_dmabuf_fail(row->name, EIO, 1);
		EXPECT_EQ(pocl_enqueue(&done), CL_SUCCESS);
		EXPECT(clWaitForEvents(1, &done) < 0);
		clReleaseEvent(done);
		pocl_close();
	}
}

TEST_EACH(fails_unseen, struct pocl_edge, pocl_edges,
	  "A START or END that fails for a kernel without an event does not stop clFinish.")
{
	for (int i = 0; i < pocl_count_loops(); i++) {
		pocl_open();
		fake_dmabuf_fail(row->name, EIO, 1);
		EXPECT_EQ(pocl_enqueue(NULL), CL_SUCCESS);
		EXPECT_EQ(clFinish(pocl.queue), CL_SUCCESS);
		pocl_close();
	}
}

TEST_EACH(blocking_read, struct pocl_edge, pocl_edges,
	  "If START or END of a blocking read fails, the read returns an error.")
{
	for (int i = 0; i < pocl_count_loops(); i++) {
		int value;

		pocl_open();
		fake_dmabuf_fail(row->name, EIO, 1);
		EXPECT_EQ(clEnqueueReadBuffer(pocl.queue, pocl.mem, CL_TRUE, 0, sizeof(value),
					      &value, 0, NULL, NULL),
			  CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
		pocl_close();
	}
}

TEST(blocking_map, "If START of a blocking map fails, the map returns an error and no pointer.")
{
	for (int i = 0; i < pocl_count_loops(); i++) {
		cl_int err = 1;

		pocl_open();
		fake_dmabuf_fail("START", EIO, 1);
		EXPECT(!clEnqueueMapBuffer(pocl.queue, pocl.mem, CL_TRUE, CL_MAP_READ, 0, 64, 0,
					   NULL, NULL, &err));
		EXPECT_EQ(err, CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
		pocl_close();
	}
}

TEST(works, "A run without failures leaves no bracket open, and loses no kernel.")
{
	volatile int *value;
	int before;
	cl_int err;

	pocl_open();
	value = clEnqueueMapBuffer(pocl.queue, pocl.mem, CL_TRUE, CL_MAP_READ, 0, 64, 0, NULL, NULL,
				   &err);
	EXPECT_EQ(err, CL_SUCCESS);
	before = *value;
	EXPECT_EQ(clEnqueueUnmapMemObject(pocl.queue, pocl.mem, (void *)(uintptr_t)value, 0, NULL,
					  NULL),
		  CL_SUCCESS);
	for (int i = 0; i < 10 * pocl_count_loops(); i++) {
		EXPECT_EQ(pocl_enqueue(NULL), CL_SUCCESS);
		if (i % 7 == 0)
			EXPECT_EQ(clFinish(pocl.queue), CL_SUCCESS);
	}
	EXPECT_EQ(clFinish(pocl.queue), CL_SUCCESS);
	EXPECT_EQ(fake_dmabuf_open_brackets(), 0);
	EXPECT_EQ(*value, before + 10 * pocl_count_loops());
	pocl_close();
}

/* The test below runs row_at_exit in child processes, which exit in the middle of the row. */
TEST(row_at_exit, "A process may exit while a row of kernels is open.")
{
	pocl_open();
	for (int i = 0; i < 20; i++)
		EXPECT_EQ(pocl_enqueue(NULL), CL_SUCCESS);
	if (getenv("TEST_CHILD")) /* time: noise, the exit comes at any point of the row */
		usleep((useconds_t)atoi(getenv("TEST_CHILD")));
	else
		pocl_close();
}

TEST(exits, "A process that exits does not crash, whatever the layer's idle thread does.")
{
	char program[] = "test_access_pocl", name[] = "row_at_exit", value[32];
	char *const argv[] = { program, name, NULL };

	pocl_open();
	pocl_close();
	for (int i = 0; i < pocl_count_loops() / 5; i++) {
		int status;
		pid_t child;

		snprintf(value, sizeof(value), "%d", i * 100 % 3000);
		setenv("TEST_CHILD", value, 1);
		EXPECT_EQ(posix_spawn(&child, "/proc/self/exe", NULL, NULL, argv, environ), 0);
		EXPECT_EQ(waitpid(child, &status, 0), child);
		EXPECT_EQ(status, 0);
	}
	unsetenv("TEST_CHILD");
}
