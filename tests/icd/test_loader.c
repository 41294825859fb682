/* SPDX-License-Identifier: Apache-2.0 */
/* The layer in the system's loader, over the stub as an ICD.  Each test runs in a new process. */
#include "fake_dmabuf.h"
#include "harness.h"
#include "text.h"

#include <CL/cl.h>
#include <CL/cl_ext.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

typedef __typeof__(&clImportMemoryARM) import_function;

static int loader_fail_at(int line)
{
	printf("# %s:%d\n", __FILE__, line);
	return 1;
}

typedef cl_int(CL_API_CALL *edge_function)(cl_command_queue, cl_uint, const cl_mem *, cl_uint,
					   const cl_event *, cl_event *);

/* A dma-buf by cl_khr_external_memory, whose functions came with OpenCL 3.0. */
static int external_in(cl_platform_id platform, cl_context context, cl_command_queue queue)
{
	const int fd = fake_dmabuf_create("external", 8192);
	const cl_mem_properties list[] = { CL_EXTERNAL_MEMORY_HANDLE_DMA_BUF_KHR,
					   (cl_mem_properties)fd, 0 };
	const cl_image_format format = { CL_RGBA, CL_UNSIGNED_INT8 };
	const cl_image_desc desc = { .image_type = CL_MEM_OBJECT_IMAGE2D,
				     .image_width = 4,
				     .image_height = 4 };
	edge_function acquire = (edge_function)clGetExtensionFunctionAddressForPlatform(
		platform, "clEnqueueAcquireExternalMemObjectsKHR");
	edge_function release = (edge_function)clGetExtensionFunctionAddressForPlatform(
		platform, "clEnqueueReleaseExternalMemObjectsKHR");
	unsigned char byte = 9;
	cl_int err[2];
	cl_mem mem[] = { clCreateBufferWithProperties(context, list, 0, 8192, NULL, &err[0]),
			 clCreateImageWithProperties(context, list, 0, &format, &desc, NULL,
						     &err[1]) };

	if (err[0] || err[1] || !acquire || !release)
		return loader_fail_at(__LINE__);
	if (acquire(queue, 2, mem, 0, NULL, NULL) ||
	    clEnqueueReadBuffer(queue, mem[0], CL_TRUE, 0, 1, &byte, 0, NULL, NULL) || byte ||
	    release(queue, 2, mem, 0, NULL, NULL) || clFinish(queue))
		return loader_fail_at(__LINE__);
	close(fd);
	return clReleaseMemObject(mem[0]) || clReleaseMemObject(mem[1]);
}

static int import_in(cl_platform_id platform, cl_device_id device)
{
	static unsigned char memory[8192];
	unsigned char byte = 7;
	import_function import = (import_function)clGetExtensionFunctionAddressForPlatform(
		platform, "clImportMemoryARM");
	cl_int err;
	cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &err);
	cl_command_queue queue = clCreateCommandQueue(context, device, 0, &err);
	cl_mem mem = import ? import(context, 0, NULL, memory, sizeof(memory), &err) : NULL;

	if (!mem || err)
		return loader_fail_at(__LINE__);
	if (clEnqueueReadBuffer(queue, mem, CL_TRUE, 0, 1, &byte, 0, NULL, NULL) !=
	    CL_INVALID_OPERATION)
		return loader_fail_at(__LINE__);
	if (byte != 7 || clReleaseMemObject(mem))
		return loader_fail_at(__LINE__);
	mem = clCreateBuffer(context, 0, 64, NULL, &err);
	if (clEnqueueReadBuffer(queue, mem, CL_TRUE, 0, 1, &byte, 0, NULL, NULL) || byte)
		return loader_fail_at(__LINE__);
	if (external_in(platform, context, queue))
		return loader_fail_at(__LINE__);
	return clReleaseMemObject(mem) || clReleaseCommandQueue(queue) || clReleaseContext(context);
}

static int loader_run_program(void)
{
	cl_platform_id platform;
	cl_device_id device;
	char text[1024] = "";

	if (clGetPlatformIDs(1, &platform, NULL))
		return loader_fail_at(__LINE__);
	if (clGetPlatformInfo(platform, CL_PLATFORM_EXTENSIONS, sizeof(text), text, NULL) ||
	    text_count_word(text, "cl_arm_import_memory_host") != 1)
		return loader_fail_at(__LINE__);
	if (clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL))
		return loader_fail_at(__LINE__);
	if (clGetDeviceInfo(device, CL_DEVICE_EXTENSIONS, sizeof(text), text, NULL) ||
	    text_count_word(text, "cl_arm_import_memory_dma_buf") != 1)
		return loader_fail_at(__LINE__);
	return import_in(platform, device);
}

/*
 * The environment variable TEST_LAYER names a layer to test instead of the layer just built.  A
 * developer sets TEST_LAYER to a faulty layer to see the tests fail.
 */
static const char *loader_layer_path(void)
{
	const char *path = getenv("TEST_LAYER");

	return path ? path : LAYER_PATH;
}

/*
 * Runs @run in a child; @settings has pairs of names and values for the environment, and ends with
 * NULL.
 */
static void expect_runs(int (*run)(void), const char *const *settings)
{
	int status = -1;
	pid_t child;

	fflush(stdout);
	child = fork();
	if (!child) {
		setenv("OCL_ICD_VENDORS", STUB_VENDORS, 1);
		setenv("OPENCL_LAYERS", loader_layer_path(), 1);
		for (; *settings; settings += 2)
			setenv(settings[0], settings[1], 1);
		exit(run());
	}
	EXPECT(waitpid(child, &status, 0) == child);
	EXPECT_EQ(status, 0);
}

static void loader_expect_works(const char *const *settings)
{
	expect_runs(loader_run_program, settings);
}

TEST(loader, "The layer works in this system's loader.")
{
	loader_expect_works((const char *const[]){ NULL });
}

TEST(old_driver, "The layer works over an OpenCL 1.2 driver, whose dispatch table ends early.")
{
	loader_expect_works((const char *const[]){ "STUB_CL12", "1", NULL });
}

TEST(twice, "If OPENCL_LAYERS lists the layer twice, the layer takes part once.")
{
	char both[4096];

	snprintf(both, sizeof(both), "%s:%s", loader_layer_path(), loader_layer_path());
	loader_expect_works((const char *const[]){ "OPENCL_LAYERS", both, NULL });
}

static cl_device_id handler_device; /* NULL: OpenCL is not in use yet */
static int handler_calls;

/* OpenCL calls in a program's fork handlers, for example to give up a device before a fork. */
static void use_in_handler(void)
{
	cl_context context;
	cl_int err;

	if (!handler_device)
		return;
	context = clCreateContext(NULL, 1, &handler_device, NULL, NULL, &err);
	if (!err && !clReleaseContext(context))
		handler_calls++;
}

/*
 * The program registers handlers before the loader loads the layer, which registers handlers too.
 */
static int program_with_handlers(void)
{
	cl_platform_id platform;
	int status = -1;
	pid_t child;

	pthread_atfork(use_in_handler, use_in_handler, use_in_handler);
	if (clGetPlatformIDs(1, &platform, NULL) ||
	    clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &handler_device, NULL))
		return loader_fail_at(__LINE__);
	alarm(TEST_HANG_S);
	child = fork();
	if (!child) {
		alarm(TEST_HANG_S);
		use_in_handler();
		_exit(handler_calls != 3); /* before fork(), in the child's handler, and here */
	}
	if (waitpid(child, &status, 0) != child || status)
		return loader_fail_at(__LINE__);
	use_in_handler();
	return handler_calls == 3 ? 0 : loader_fail_at(__LINE__);
}

TEST(fork_handlers,
     "Fork handlers that an application registered before the layer was loaded can call OpenCL.")
{
	if (*SANITIZER)
		test_skip("PoCL does not run with sanitizers, and the stub has fork handlers of "
			  "its own");
	expect_runs(program_with_handlers,
		    (const char *const[]){ "OCL_ICD_VENDORS", "/etc/OpenCL/vendors", NULL });
}

static pthread_mutex_t handler_mutex = PTHREAD_MUTEX_INITIALIZER;

static void handler_lock(void)
{
	pthread_mutex_lock(&handler_mutex);
}

static void handler_unlock(void)
{
	pthread_mutex_unlock(&handler_mutex);
}

static void *use_in_thread(void *unused)
{
	cl_context context;
	cl_int err;

	(void)unused;
	for (;;) {
		pthread_mutex_lock(&handler_mutex);
		context = clCreateContext(NULL, 1, &handler_device, NULL, NULL, &err);
		if (!err)
			clReleaseContext(context);
		pthread_mutex_unlock(&handler_mutex);
	}
	return NULL;
}

/* The usual fork handlers, which take a lock of the application before a fork. */
static int program_with_mutex(void)
{
	cl_platform_id platform;
	pthread_t thread;
	int status = -1;

	pthread_atfork(handler_lock, handler_unlock, handler_unlock);
	if (clGetPlatformIDs(1, &platform, NULL) ||
	    clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &handler_device, NULL) ||
	    pthread_create(&thread, NULL, use_in_thread, NULL))
		return loader_fail_at(__LINE__);
	alarm(TEST_HANG_S);
	for (int i = 0; i < 200; i++) {
		pid_t child = fork();

		if (!child)
			_exit(0);
		if (waitpid(child, &status, 0) != child || status)
			_exit(loader_fail_at(__LINE__));
	}
	_exit(0); /* the thread is still busy */
}

TEST(fork_handlers_lock,
     "An application's fork handlers can take a lock while the lock's owner is in an OpenCL call.")
{
	if (*SANITIZER)
		test_skip("PoCL does not run with sanitizers, and the stub has fork handlers of "
			  "its own");
	expect_runs(program_with_mutex,
		    (const char *const[]){ "OCL_ICD_VENDORS", "/etc/OpenCL/vendors", NULL });
}
