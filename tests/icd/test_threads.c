/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Eight threads import, enqueue and release, on a common context and queue.  The thread sanitizer
 * finds races; without the sanitizer, the tests check the kernels' results.
 */
#include "fixture.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

#define THREADS 8
#define ROUNDS 100
#define HELD 64
#define SIZE 8192

static atomic_int wrong; /* EXPECT works only in the thread of the tests */

#define CHECK(condition) worker_check(condition, __LINE__)

static void worker_check(bool condition, int line)
{
	if (!condition && atomic_fetch_add(&wrong, 1) < 5)
		printf("# %s:%d\n", __FILE__, line);
}

struct worker {
	pthread_t thread;
	int number;
	int fd;
	unsigned char *memory, *seen;
	cl_command_queue queue;
};

static void worker_run_kernel(struct worker *w, cl_command_queue queue, cl_mem mem)
{
	const size_t one = 1;
	cl_event done;
	cl_int err;
	cl_kernel kernel = cl.clCreateKernel(fix.program, "increment", &err);

	CHECK(!err);
	CHECK(!cl.clSetKernelArg(kernel, 0, sizeof(mem), &mem));
	CHECK(!cl.clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &one, NULL, 0, NULL, &done));
	CHECK(!cl.clFlush(queue));
	if (w->number & 1)
		CHECK(!cl.clWaitForEvents(1, &done));
	CHECK(!cl.clFinish(queue));
	CHECK(!cl.clReleaseEvent(done));
	CHECK(!cl.clReleaseKernel(kernel));
}

/* Allowed and forbidden uses of an import, while other threads create and release imports. */
static void worker_use(struct worker *w, cl_mem mem, const unsigned char *byte)
{
	const cl_buffer_region region = { 4096, 1024 };
	unsigned char before = *byte, scratch = 0;
	cl_mem_flags flags = 0;
	cl_int err;
	cl_mem sub = cl.clCreateSubBuffer(mem, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &err);

	CHECK(!err);
	CHECK(cl.clEnqueueReadBuffer(w->queue, mem, CL_TRUE, 0, 1, &scratch, 0, NULL, NULL) ==
	      CL_INVALID_OPERATION);
	CHECK(!cl.clGetMemObjectInfo(sub, CL_MEM_FLAGS, sizeof(flags), &flags, NULL));
	CHECK(flags == CL_MEM_READ_WRITE);
	worker_run_kernel(w, w->number & 2 ? fix.queue : w->queue, mem);
	CHECK(*byte == (unsigned char)(before + 1));
	CHECK(!cl.clRetainMemObject(mem));
	CHECK(!cl.clReleaseMemObject(mem));
	CHECK(!cl.clReleaseMemObject(sub));
}

static void worker_import_and_use(struct worker *w, bool of_dmabuf)
{
	cl_int err = 1;
	cl_mem mem;

	if (of_dmabuf)
		mem = fix.import(fix.context, 0, fixture_dma_buf, &w->fd, SIZE, &err);
	else
		mem = fix.import(fix.context, 0, NULL, w->memory + w->number % 3, SIZE - 64, &err);
	CHECK(!err);
	if (!err)
		worker_use(w, mem, of_dmabuf ? w->seen : w->memory + w->number % 3);
	CHECK(!cl.clReleaseMemObject(mem));
}

/* Ordinary objects get the addresses of recently released imports. */
static void worker_use_other(struct worker *w)
{
	unsigned char byte = 3;
	cl_int err;
	cl_mem mem = cl.clCreateBuffer(fix.context, 0, 64, NULL, &err);

	CHECK(!err);
	CHECK(!cl.clEnqueueWriteBuffer(w->queue, mem, CL_TRUE, 0, 1, &byte, 0, NULL, NULL));
	CHECK(!cl.clEnqueueReadBuffer(w->queue, mem, CL_TRUE, 0, 1, &byte, 0, NULL, NULL));
	CHECK(byte == 3);
	CHECK(!cl.clReleaseMemObject(mem));
}

static void worker_fail_and_ask(struct worker *w)
{
	char text[512];
	cl_int err;

	CHECK(!fix.import(fix.context, 0, NULL, w->memory, 0, &err));
	CHECK(err == CL_INVALID_BUFFER_SIZE);
	CHECK(!cl.clGetDeviceInfo(fix.device[0], CL_DEVICE_EXTENSIONS, sizeof(text), text, NULL));
	CHECK(strstr(text, "cl_arm_import_memory_host"));
}

/* Holds many imports at once: the layer's tables grow while other threads read the tables. */
static void worker_hold_many(struct worker *w)
{
	cl_mem held[HELD];
	cl_int err;

	for (int i = 0; i < HELD; i++) {
		held[i] = fix.import(fix.context, 0, NULL, w->memory, 4096, &err);
		CHECK(!err);
	}
	for (int i = 0; i < HELD; i++)
		CHECK(!cl.clReleaseMemObject(held[i]));
}

static void *worker_run(void *arg)
{
	struct worker *w = arg;

	worker_hold_many(w);
	for (int round = 0; round < ROUNDS; round++) {
		worker_import_and_use(w, (round + w->number) % 2);
		worker_use_other(w);
		worker_fail_and_ask(w);
	}
	return NULL;
}

static void worker_begin(struct worker *w, int number)
{
	char name[16];

	snprintf(name, sizeof(name), "t%d", number);
	w->number = number;
	w->memory = pages_map(3);
	w->fd = fake_dmabuf_create(name, SIZE);
	w->seen = mmap(NULL, SIZE, PROT_READ, MAP_SHARED, w->fd, 0);
	w->queue = fixture_create_queue(number & 4 ? CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE : 0);
	pthread_create(&w->thread, NULL, worker_run, w);
}

static void worker_end(struct worker *w)
{
	pthread_join(w->thread, NULL);
	munmap(w->seen, SIZE);
	close(w->fd);
	cl.clReleaseCommandQueue(w->queue);
}

static void worker_run_all(enum stub_option option, long value)
{
	struct worker workers[THREADS];

	fixture_reset();
	stub_set(option, value);
	fixture_open();
	wrong = 0;
	for (int i = 0; i < THREADS; i++)
		worker_begin(&workers[i], i);
	for (int i = 0; i < THREADS; i++)
		worker_end(&workers[i]);
	EXPECT_EQ(wrong, 0);
	fixture_close();
}

TEST(eight_threads, "Eight threads can import, enqueue and release at the same time.")
{
	worker_run_all(STUB_ADDRESS_REUSE, 0);
}

TEST(reused_addresses,
     "Eight threads can import, enqueue and release while freed addresses are reused at once.")
{
	worker_run_all(STUB_ADDRESS_REUSE, 1);
}

TEST(late_destructors,
     "Eight threads can import, enqueue and release while destructor callbacks run on other "
     "threads.")
{
	worker_run_all(STUB_ASYNC_DESTRUCTOR, 1);
}
