/* SPDX-License-Identifier: Apache-2.0 */
#include "access.h"

#include <sys/mman.h>
#include <unistd.h>

const cl_import_properties_arm runtime_keeps[] = { CL_IMPORT_TYPE_ARM, CL_IMPORT_TYPE_DMA_BUF_ARM,
						   CL_IMPORT_DMA_BUF_DATA_CONSISTENCY_WITH_HOST_ARM,
						   CL_TRUE, 0 };
const cl_import_properties_arm application_keeps[] = {
	CL_IMPORT_DMA_BUF_DATA_CONSISTENCY_WITH_HOST_ARM, CL_FALSE, CL_IMPORT_TYPE_ARM,
	CL_IMPORT_TYPE_DMA_BUF_ARM, 0
};

struct buffer buffer_open(const char *name, const cl_import_properties_arm *properties)
{
	struct buffer buffer = { .fd = fake_dmabuf_create(name, SIZE) };
	cl_int err = 1;

	buffer.mem = fix.import(fix.context, CL_MEM_READ_WRITE,
				properties ? properties : fixture_dma_buf, &buffer.fd, SIZE, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	buffer.seen = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, buffer.fd, 0);
	EXPECT(buffer.seen != MAP_FAILED);
	stub_trace_clear();
	return buffer;
}

void buffer_close(struct buffer *buffer)
{
	cl.clReleaseMemObject(buffer->mem);
	munmap(buffer->seen, SIZE);
	close(buffer->fd);
}

struct run run_open(cl_command_queue_properties properties)
{
	struct run r = { .mapped_before = process_count_mappings("fake-dmabuf") };

	fixture_reset();
	fixture_open();
	r.queue = fixture_create_queue(properties | CL_QUEUE_PROFILING_ENABLE);
	r.a = buffer_open("a", NULL);
	r.kernel = fixture_create_increment(r.a.mem);
	return r;
}

struct run run_open_for_host(cl_command_queue_properties properties)
{
	struct run r = { .mapped_before = process_count_mappings("fake-dmabuf") };

	fixture_reset();
	setenv("CLIMPORT_VERSION", "1.1.0", 1);
	fixture_open();
	r.queue = fixture_create_queue(properties);
	r.a = buffer_open("a", runtime_keeps);
	r.kernel = fixture_create_increment(r.a.mem);
	return r;
}

void run_release(struct run *r)
{
	cl.clReleaseKernel(r->kernel);
	buffer_close(&r->a);
	cl.clReleaseCommandQueue(r->queue);
}

void run_close(struct run *r)
{
	run_release(r);
	fixture_close();
}

void expect_count(const char *what, int count)
{
	if (stub_trace_count(what) != count)
		stub_trace_print();
	EXPECT_EQ(stub_trace_count(what), count);
}

void expect_acquires(int count)
{
	expect_count("acquire", count);
	expect_count("release", count);
	expect_count("acquired twice", 0);
	expect_count("released twice", 0);
	expect_count("used without acquire", 0);
}

void expect_order(const char *before, const char *after)
{
	int first = stub_trace_find(before, 0), second = stub_trace_find(after, 0);

	if (first < 0 || second <= first) {
		printf("# expected: %s, then %s\n", before, after);
		stub_trace_print();
	}
	EXPECT(first >= 0 && second > first);
}

void expect_bracket(const char *name, const char *kernel)
{
	char start[64], end[64], begins[64], ends[64];

	snprintf(start, sizeof(start), "sync START %s ", name);
	snprintf(end, sizeof(end), "sync END %s ", name);
	snprintf(begins, sizeof(begins), "kernel %s begin", kernel);
	snprintf(ends, sizeof(ends), "kernel %s end", kernel);
	expect_order(start, begins);
	expect_order(ends, end);
	expect_count(start, 1);
	expect_count(end, 1);
}

void expect_no_sync(const char *name)
{
	char start[64], end[64];

	snprintf(start, sizeof(start), "sync START %s ", name);
	snprintf(end, sizeof(end), "sync END %s ", name);
	expect_count(start, 0);
	expect_count(end, 0);
}

enqueue_count_fn access_find_count_function(void)
{
	enqueue_count_fn function = (enqueue_count_fn)cl.clGetExtensionFunctionAddressForPlatform(
		fix.platform, "clEnqueueNDCountKernelINTEL");

	EXPECT(function);
	return function;
}

cl_event user_event_create(void)
{
	cl_int err;
	cl_event event = cl.clCreateUserEvent(fix.context, &err);

	EXPECT_EQ(err, CL_SUCCESS);
	return event;
}

void fixture_complete_event(cl_event event, cl_int status)
{
	stub_trace("completed by the application");
	EXPECT_EQ(cl.clSetUserEventStatus(event, status), CL_SUCCESS);
}

void let_others_run(void)
{
	EXPECT(process_settles(process_is_quiet, NULL));
}
