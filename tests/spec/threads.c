/* SPDX-License-Identifier: Apache-2.0 */
/* Eight threads import, use and release memory: first memory of each thread, then common memory. */
#include <pthread.h>

#include "kernels.h"

enum { THREADS = 8, TURNS = 100 };

struct worker {
	pthread_t thread;
	cl_command_queue queue;
	cl_kernel add;
	unsigned char *memory;
	bool only_import;
	const char *fault;
};

static const char *worker_use_import(struct worker *w, cl_mem mem)
{
	const size_t one = 1;
	const cl_uint args[] = { 256, 1, 3 };

	spec_fill_memory(w->memory, 256, 1);
	if (clSetKernelArg(w->add, 0, sizeof(mem), &mem))
		return "clSetKernelArg";
	for (cl_uint i = 0; i < 3; i++)
		if (clSetKernelArg(w->add, i + 1, sizeof(args[i]), &args[i]))
			return "clSetKernelArg";
	if (clEnqueueNDRangeKernel(w->queue, w->add, 1, NULL, &one, &one, 0, NULL, NULL) ||
	    clFinish(w->queue))
		return "clEnqueueNDRangeKernel";
	return spec_memory_is(w->memory, 256, 4) ? NULL : "the memory";
}

static void *worker_import_in_turns(void *arg)
{
	struct worker *w = arg;

	for (int turn = 0; turn < TURNS && !w->fault; turn++) {
		cl_int error = 1;
		cl_mem mem = spec.import(spec.context, CL_MEM_READ_WRITE, NULL, w->memory,
					 spec.page, &error);

		if (!mem || error) {
			w->fault = "clImportMemoryARM";
			break;
		}
		if (!w->only_import)
			w->fault = worker_use_import(w, mem);
		if (spec.import(spec.context, CL_MEM_READ_WRITE, NULL, NULL, 1, NULL))
			w->fault = "an import of NULL";
		if (clReleaseMemObject(mem))
			w->fault = "clReleaseMemObject";
	}
	return NULL;
}

static void worker_release(void *arg)
{
	struct worker *w = arg;

	clReleaseKernel(w->add);
	clReleaseCommandQueue(w->queue);
}

static void worker_prepare(struct worker *w, unsigned char *memory, bool only_import)
{
	cl_int error;

	*w = (struct worker){ .memory = memory, .only_import = only_import };
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
	w->queue = clCreateCommandQueue(spec.context, spec.device, 0, &error);
#pragma GCC diagnostic pop
	EXPECT_EQ(error, CL_SUCCESS);
	w->add = kernels_create_plain("add");
	EXPECT(w->add != NULL);
	spec_undo_later(worker_release, w);
}

static void threads_run_workers(struct worker workers[THREADS])
{
	for (int i = 0; i < THREADS; i++)
		EXPECT_EQ(pthread_create(&workers[i].thread, NULL, worker_import_in_turns,
					 &workers[i]),
			  0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(workers[i].thread, NULL);
	for (int i = 0; i < THREADS; i++)
		if (workers[i].fault) {
			spec_note("thread %d: %s", i, workers[i].fault);
			EXPECT(!"a thread failed");
		}
}

TEST(threads_with_their_own_memory,
     "R6-55 This extension produces cl_mem memory objects which are compatible with all other uses "
     "of cl_mem in the standard API, including creating images from the resulting cl_mem and "
     "subject to the restrictions listed in this document.")
{
	static struct worker workers[THREADS];
	unsigned char *memory = spec_map_pages(THREADS);

	need_host();
	kernels_create("add");
	for (size_t i = 0; i < THREADS; i++)
		worker_prepare(&workers[i], memory + i * spec.page, false);
	threads_run_workers(workers);
}

TEST(threads_with_the_same_memory,
     "R6-55 This extension produces cl_mem memory objects which are compatible with all other uses "
     "of cl_mem in the standard API, including creating images from the resulting cl_mem and "
     "subject to the restrictions listed in this document.")
{
	static struct worker workers[THREADS];
	unsigned char *memory = spec_map_pages(1);

	need_host();
	kernels_create("add");
	for (size_t i = 0; i < THREADS; i++)
		worker_prepare(&workers[i], memory, true);
	threads_run_workers(workers);
}
