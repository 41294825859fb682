/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program forks while threads call libclimport and the layer, on the stub, with and without a
 * libcuda.  CLIMPORT_FORKS is the number of forks; the default is 500.
 */
#include "harness.h"

#include <CL/climport.h>
#include <dlfcn.h>
#include <fake_dmabuf.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef WITH_CUDA
#include <fake_cuda.h>
#endif

#define THREADS 8
#define PAGE ((size_t)sysconf(_SC_PAGESIZE))

static void *loader;
static cl_device_id device;
static cl_context context;

#define CL(name) ((__typeof__(&(name)))dlsym(loader, #name))

/* In any thread, and in children. */
#define CHECK(condition)                                                                  \
	do {                                                                              \
		if (!(condition)) {                                                       \
			fprintf(stderr, "# %s:%d: %s\n", __FILE__, __LINE__, #condition); \
			_exit(1);                                                         \
		}                                                                         \
	} while (0)

/* The objects of a thread. */
struct caller {
	cl_command_queue queue;
	cl_kernel kernel;
	unsigned char *pages;
	int dmabuf;
	void *gpu[2]; /* memory of the fake libcuda */
};

static void fork_open_loader(void)
{
	cl_platform_id platform;

	setenv("OCL_ICD_VENDORS", STUB_VENDORS, 1);
	setenv("OPENCL_LAYERS", LAYER_PATH, 1);
	loader = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
	CHECK(loader);
	CHECK(!CL(clGetPlatformIDs)(1, &platform, NULL));
	CHECK(!CL(clGetDeviceIDs)(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL));
}

static void fork_open_context(void)
{
	cl_int err;

	context = CL(clCreateContext)(NULL, 1, &device, NULL, NULL, &err);
	CHECK(context && !err);
}

static void caller_init(struct caller *c)
{
	const char *source = "kernel void increment(global uchar *a) { a[0]++; }";
	cl_program program;
	cl_int err;

	c->queue = CL(clCreateCommandQueueWithProperties)(context, device, NULL, &err);
	CHECK(!err);
	program = CL(clCreateProgramWithSource)(context, 1, &source, NULL, &err);
	CHECK(!CL(clBuildProgram)(program, 1, &device, NULL, NULL, NULL));
	c->kernel = CL(clCreateKernel)(program, "increment", &err);
	CHECK(!err);
	CL(clReleaseProgram)(program);
	c->pages = aligned_alloc(PAGE, 4 * PAGE);
	memset(c->pages, 0, 4 * PAGE);
	c->dmabuf = fake_dmabuf_create("fork", 4 * PAGE);
	CHECK(c->dmabuf >= 0);
#ifdef WITH_CUDA
	for (int i = 0; i < 2; i++)
		c->gpu[i] = (void *)fake_cuda_alloc(0, 2 * PAGE);
#endif
}

static void use_buffer(struct caller *c, cl_mem mem)
{
	const size_t one = 1;
	size_t size = 0;

	CHECK(!CL(clGetMemObjectInfo)(mem, CL_MEM_SIZE, sizeof(size), &size, NULL));
	CHECK(!CL(clRetainMemObject)(mem));
	CHECK(!CL(clSetKernelArg)(c->kernel, 0, sizeof(mem), &mem));
	CHECK(!CL(clEnqueueNDRangeKernel)(c->queue, c->kernel, 1, NULL, &one, NULL, 0, NULL, NULL));
	CHECK(!CL(clFinish)(c->queue));
	CHECK(!CL(clReleaseMemObject)(mem));
	CHECK(!CL(clReleaseMemObject)(mem));
}

static void use_host_import(struct caller *c)
{
	const cl_buffer_region half = { 0, PAGE };
	cl_int err = -1;
	cl_mem part, mem = clImportMemoryARM(context, 0, NULL, c->pages + 64, 2 * PAGE, &err);

	CHECK(mem && !err);
	part = CL(clCreateSubBuffer)(mem, 0, CL_BUFFER_CREATE_TYPE_REGION, &half, &err);
	CHECK(part && !err);
	use_buffer(c, part);
	use_buffer(c, mem);
}

static void use_dmabuf_import(struct caller *c)
{
	const cl_import_properties_arm type[] = { CL_IMPORT_TYPE_ARM, CL_IMPORT_TYPE_DMA_BUF_ARM,
						  0 };
	const struct climport_dmabuf part = { .fd = c->dmabuf, .offset = PAGE, .size = PAGE };
	cl_int err = -1;
	cl_mem mem = clImportMemoryARM(context, 0, type, &c->dmabuf, 2 * PAGE, &err);

	CHECK(mem && !err);
	use_buffer(c, mem);
	mem = climport_create_buffer(context, 0, NULL, &part, &err);
	CHECK(mem && !err);
	use_buffer(c, mem);
}

/* Ignores errors, because neither CUDA nor the kernel module need be present. */
static void use_exports(struct caller *c)
{
	const unsigned int flags[] = { 0, CLIMPORT_READ_ONLY, CLIMPORT_KEEP, CLIMPORT_MAPPABLE };
	void *const addresses[] = { c->pages, c->gpu[0], c->gpu[1] };
	struct climport_dmabuf d;

	for (size_t i = 0; i < 3; i++) {
		for (size_t f = 0; f < sizeof(flags) / sizeof(*flags); f++)
			if (!climport_export_dmabuf(addresses[i], PAGE, flags[f], &d, sizeof(d)))
				close(d.fd);
		climport_invalidate(addresses[i], PAGE);
	}
	climport_set_limits(CLIMPORT_DEVICE, UINT64_MAX, UINT64_MAX);
}

static void use_memory(void)
{
	static const unsigned char uuid[CLIMPORT_UUID_SIZE] = {
		0xa0, 0xa0, 0xa0, 0xa0, 0xa0, 0xa0, 0xa0, 0xa0,
		0xa0, 0xa0, 0xa0, 0xa0, 0xa0, 0xa0, 0xa0, 0xa0,
	};
	struct climport_stats stats;
	void *address;

	CHECK(!climport_alloc(CLIMPORT_HOST, 1000, 0, NULL, &address));
	climport_free(address);
	for (unsigned int kind = CLIMPORT_HOST; kind <= CLIMPORT_DEVICE; kind++)
		if (!climport_alloc(kind, 1000, 0, uuid, &address))
			climport_free(address);
	climport_get_stats(&stats, sizeof(stats));
}

static void use_everything(struct caller *c)
{
	use_host_import(c);
	use_exports(c);
	use_dmabuf_import(c);
	use_memory();
}

/* Runs @run in a new process, because the loader and the stub read the environment once. */
static void expect_apart(void (*run)(void))
{
	int status = -1;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		run();
		_exit(0);
	}
	EXPECT_EQ(waitpid(pid, &status, 0), pid);
	EXPECT_EQ(status, 0);
}

static void call_a_driver_that_forks(void)
{
	struct caller c = { 0 };

	alarm(TEST_HANG_S);
	setenv("STUB_FORKS", "1", 1);
	fork_open_loader();
	fork_open_context();
#ifdef WITH_CUDA
	fake_cuda_reset(1);
	fake_cuda_set_forks(true);
#endif
	caller_init(&c);
	for (int i = 0; i < 2; i++)
		use_everything(&c);
}

TEST(driver_forks, "A driver may fork in any call, as cuInit() does.")
{
	expect_apart(call_a_driver_that_forks);
}

static atomic_bool is_over;

static void *call_on(void *arg)
{
	while (!atomic_load(&is_over))
		use_everything(arg);
	return NULL;
}

/* The child has no thread of the parent's queues, so the child makes new queues. */
static void fork_child_run(void)
{
	const struct rlimit no_core = { 0, 0 };
	struct caller c = { 0 };

	setrlimit(RLIMIT_CORE, &no_core);
	alarm(TEST_HANG_S);
	fork_open_context();
	caller_init(&c);
	use_everything(&c);
	use_everything(&c);
	_exit(0);
}

static int fork_count(void)
{
	const char *value = getenv("CLIMPORT_FORKS");

	return value ? atoi(value) : 500;
}

TEST(loop, "A child of fork() can use every function, whatever the eight threads of the parent do.")
{
	struct caller callers[THREADS] = { 0 };
	pthread_t threads[THREADS];
	int status = -1;
	pid_t pid;

	fork_open_loader();
	fork_open_context();
#ifdef WITH_CUDA
	fake_cuda_reset(1);
#endif
	for (int i = 0; i < THREADS; i++) {
		caller_init(&callers[i]);
		EXPECT_EQ(pthread_create(&threads[i], NULL, call_on, &callers[i]), 0);
	}
	for (int i = 0; i < fork_count(); i++) {
		pid = fork();
		if (!pid)
			fork_child_run();
		EXPECT_EQ(waitpid(pid, &status, 0), pid);
		EXPECT_EQ(status, 0);
	}
	atomic_store(&is_over, true);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
}
