/* SPDX-License-Identifier: Apache-2.0 */
/* DMA_BUF_IOCTL_SYNC around commands: the set of bracketed buffers. */
#include "access.h"

#include <fcntl.h>
#include <unistd.h>

/* The buffers "a" and "b" and a kernel. */
struct two {
	struct buffer a, b;
	cl_kernel kernel;
};

static struct two access_args_open(const char *version, const cl_import_properties_arm *properties)
{
	struct two t;

	fixture_reset();
	if (version)
		setenv("CLIMPORT_VERSION", version, 1);
	fixture_open();
	t.a = buffer_open("a", properties);
	t.b = buffer_open("b", properties);
	t.kernel = fixture_create_increment(t.a.mem);
	return t;
}

static void access_args_close(struct two *t)
{
	cl.clReleaseKernel(t->kernel);
	buffer_close(&t->a);
	buffer_close(&t->b);
	fixture_close();
}

static void access_args_run(cl_kernel kernel)
{
	EXPECT_EQ(fixture_enqueue(fix.queue, kernel, 0, NULL, NULL), CL_SUCCESS);
	EXPECT_EQ(cl.clFinish(fix.queue), CL_SUCCESS);
}

static void set_arg(cl_kernel kernel, cl_uint index, cl_mem mem)
{
	EXPECT_EQ(cl.clSetKernelArg(kernel, index, sizeof(mem), &mem), CL_SUCCESS);
}

TEST(only_arguments, "Only the imports that are arguments of a kernel are bracketed.")
{
	struct two t = access_args_open(NULL, NULL);

	access_args_run(t.kernel);
	expect_bracket("a", "increment");
	expect_no_sync("b");
	access_args_close(&t);
}

TEST(several_arguments, "All imports that are arguments of a kernel are bracketed.")
{
	struct two t = access_args_open(NULL, NULL);
	cl_kernel kernel = fixture_create_kernel("vector_add");

	set_arg(kernel, 0, t.a.mem);
	set_arg(kernel, 1, t.b.mem);
	set_arg(kernel, 2, t.b.mem);
	t.b.seen[0] = 3;
	access_args_run(kernel);
	expect_order("sync START a", "kernel vector_add begin");
	expect_order("sync START b", "kernel vector_add begin");
	expect_order("kernel vector_add end", "sync END a");
	expect_order("kernel vector_add end", "sync END b");
	EXPECT_EQ(stub_trace_count("sync START"), stub_trace_count("sync END"));
	EXPECT_EQ(t.a.seen[0], 6);
	cl.clReleaseKernel(kernel);
	access_args_close(&t);
}

TEST(overwritten,
     "If an argument is replaced by another object, the former object is not bracketed any more.")
{
	struct two t = access_args_open(NULL, NULL);
	cl_mem plain = cl.clCreateBuffer(fix.context, 0, SIZE, NULL, NULL);

	set_arg(t.kernel, 0, t.b.mem);
	access_args_run(t.kernel);
	expect_bracket("b", "increment");
	expect_no_sync("a");
	stub_trace_clear();
	set_arg(t.kernel, 0, plain);
	access_args_run(t.kernel);
	expect_no_sync("b");
	expect_count("kernel increment end", 1);
	cl.clReleaseMemObject(plain);
	access_args_close(&t);
}

TEST(set_by_address,
     "If an argument is set by address, the former object is not bracketed any more.")
{
	struct two t = access_args_open(NULL, NULL);
	unsigned char byte = 4;

	EXPECT_EQ(cl.clSetKernelArgSVMPointer(t.kernel, 7, &byte), CL_INVALID_ARG_INDEX);
	access_args_run(t.kernel);
	expect_bracket("a", "increment");
	stub_trace_clear();
	EXPECT_EQ(cl.clSetKernelArgSVMPointer(t.kernel, 0, &byte), CL_SUCCESS);
	access_args_run(t.kernel);
	expect_no_sync("a");
	EXPECT_EQ(byte, 5);
	access_args_close(&t);
}

TEST(failed_set, "A clSetKernelArg that the driver refuses changes nothing.")
{
	struct two t = access_args_open(NULL, NULL);

	EXPECT_EQ(cl.clSetKernelArg(t.kernel, 7, sizeof(t.b.mem), &t.b.mem), CL_INVALID_ARG_INDEX);
	stub_fail("clSetKernelArg", 1, CL_OUT_OF_RESOURCES);
	EXPECT_EQ(cl.clSetKernelArg(t.kernel, 0, sizeof(t.b.mem), &t.b.mem), CL_OUT_OF_RESOURCES);
	access_args_run(t.kernel);
	expect_bracket("a", "increment");
	expect_no_sync("b");
	access_args_close(&t);
}

TEST(cloned,
     "A cloned kernel has the arguments of its source, and later changes of the source do not "
     "reach the clone.")
{
	struct two t = access_args_open(NULL, NULL);
	cl_int err;
	cl_kernel clone = cl.clCloneKernel(t.kernel, &err);

	EXPECT_EQ(err, CL_SUCCESS);
	set_arg(t.kernel, 0, t.b.mem);
	access_args_run(clone);
	expect_bracket("a", "increment");
	expect_no_sync("b");
	stub_trace_clear();
	access_args_run(t.kernel);
	expect_bracket("b", "increment");
	expect_no_sync("a");
	cl.clReleaseKernel(clone);
	access_args_close(&t);
}

TEST(reused_kernel_address,
     "A kernel at the address of a released kernel has none of the released kernel's arguments.")
{
	struct two t = access_args_open(NULL, NULL);
	cl_mem plain = cl.clCreateBuffer(fix.context, 0, SIZE, NULL, NULL);
	cl_kernel freed = fixture_create_kernel("vector_add");

	for (cl_uint i = 0; i < 3; i++)
		set_arg(freed, i, t.a.mem);
	cl.clReleaseKernel(t.kernel);
	stub_set(STUB_ADDRESS_REUSE, 1);
	cl.clReleaseKernel(freed);
	t.kernel = fixture_create_kernel("increment");
	EXPECT(t.kernel == freed); /* the test's premise */
	set_arg(t.kernel, 0, plain);
	access_args_run(t.kernel);
	expect_no_sync("a");
	stub_set(STUB_ADDRESS_REUSE, 0);
	cl.clReleaseMemObject(plain);
	access_args_close(&t);
}

TEST(reused_while_queued,
     "A kernel at the address of one that was released while queued has none of its arguments.")
{
	struct two t = access_args_open(NULL, NULL);
	cl_mem plain = cl.clCreateBuffer(fix.context, 0, SIZE, NULL, NULL);
	cl_event go = user_event_create();
	cl_kernel freed = t.kernel, others[16];
	size_t count = 0;

	EXPECT_EQ(fixture_enqueue(fix.queue, freed, 1, &go, NULL), CL_SUCCESS);
	stub_set(STUB_ADDRESS_REUSE, 1);
	cl.clReleaseKernel(freed);
	fixture_complete_event(go, CL_COMPLETE);
	EXPECT_EQ(cl.clFinish(fix.queue), CL_SUCCESS);
	stub_trace_clear();
	while ((t.kernel = fixture_create_kernel("increment")) != freed) {
		EXPECT(count < 16); /* the test's premise */
		others[count++] = t.kernel;
	}
	set_arg(t.kernel, 0, plain);
	access_args_run(t.kernel);
	expect_no_sync("a");
	stub_set(STUB_ADDRESS_REUSE, 0);
	while (count)
		cl.clReleaseKernel(others[--count]);
	cl.clReleaseEvent(go);
	cl.clReleaseMemObject(plain);
	access_args_close(&t);
}

TEST(retained_kernel, "A kernel that is retained and released once keeps its arguments.")
{
	struct two t = access_args_open(NULL, NULL);

	cl.clRetainKernel(t.kernel);
	cl.clReleaseKernel(t.kernel);
	access_args_run(t.kernel);
	expect_bracket("a", "increment");
	access_args_close(&t);
}

TEST(derived, "Sub-buffers and images of an import are bracketed like the import.")
{
	const cl_image_format format = { CL_RGBA, CL_UNSIGNED_INT8 };
	const cl_buffer_region region = { 4096, 4096 };
	struct two t = access_args_open(NULL, NULL);
	cl_image_desc desc = {
		.image_type = CL_MEM_OBJECT_IMAGE2D,
		.image_width = 4,
		.image_height = 4,
	};
	const cl_uint side = 4;
	cl_mem sub, image;
	cl_kernel kernel;
	cl_int err;

	sub = cl.clCreateSubBuffer(t.a.mem, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &err);
	set_arg(t.kernel, 0, sub);
	access_args_run(t.kernel);
	expect_bracket("a", "increment");
	EXPECT_EQ(t.a.seen[4096], 1);
	stub_trace_clear();
	desc.mem_object = sub;
	image = cl.clCreateImage(fix.context, 0, &format, &desc, NULL, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	kernel = fixture_create_kernel("image_to_buffer");
	set_arg(kernel, 0, image);
	set_arg(kernel, 1, t.b.mem);
	cl.clSetKernelArg(kernel, 2, sizeof(side), &side);
	cl.clSetKernelArg(kernel, 3, sizeof(side), &side);
	access_args_run(kernel);
	expect_bracket("a", "image_to_buffer");
	expect_bracket("b", "image_to_buffer");
	EXPECT_EQ(t.b.seen[0], 1);
	cl.clReleaseKernel(kernel);
	cl.clReleaseMemObject(image);
	cl.clReleaseMemObject(sub);
	access_args_close(&t);
}

TEST(task, "clEnqueueTask brackets the imports that its kernel uses.")
{
	struct two t = access_args_open(NULL, NULL);

	EXPECT_EQ(cl.clEnqueueTask(fix.queue, t.kernel, 0, NULL, NULL), CL_SUCCESS);
	EXPECT_EQ(cl.clFinish(fix.queue), CL_SUCCESS);
	expect_bracket("a", "increment");
	access_args_close(&t);
}

TEST(count_kernel, "clEnqueueNDCountKernelINTEL brackets the imports that its kernel uses.")
{
	struct two t = access_args_open(NULL, NULL);
	enqueue_count_fn enqueue_count = access_find_count_function();
	const size_t one = 1;

	EXPECT_EQ(enqueue_count(NULL, t.kernel, 1, NULL, &one, &one, 0, NULL, NULL),
		  CL_INVALID_COMMAND_QUEUE);
	EXPECT_EQ(enqueue_count(fix.queue, t.kernel, 1, NULL, &one, &one, 0, NULL, NULL),
		  CL_SUCCESS);
	EXPECT_EQ(cl.clFinish(fix.queue), CL_SUCCESS);
	expect_bracket("a", "increment");
	access_args_close(&t);
}

static void CL_CALLBACK access_args_run_native(void *args)
{
	unsigned char *memory = *(unsigned char **)args;

	stub_trace("kernel native begin");
	memory[0] += 5;
	stub_trace("kernel native end");
}

TEST(native_kernel_of_many,
     "A command that uses more than 64 dma-bufs is CL_OUT_OF_RESOURCES, with a sentence.")
{
	struct two t = access_args_open(NULL, runtime_keeps);
	void *args = NULL;
	const void *locations[65];
	cl_mem mems[65];

	for (int i = 0; i < 65; i++) {
		mems[i] = fixture_import_dmabuf(t.a.fd, SIZE);
		locations[i] = &args;
	}
	EXPECT_EQ(cl.clEnqueueNativeKernel(fix.queue, access_args_run_native, &args, sizeof(args),
					   65, mems, locations, 0, NULL, NULL),
		  CL_OUT_OF_RESOURCES);
	EXPECT(strstr(fix.notice, "a command uses more than 64 dma-bufs"));
	expect_no_sync("a");
	for (int i = 0; i < 65; i++)
		cl.clReleaseMemObject(mems[i]);
	access_args_close(&t);
}

TEST(native_kernel, "clEnqueueNativeKernel brackets each import in its list of objects.")
{
	struct two t = access_args_open(NULL, NULL);
	void *args = NULL;
	const void *location = &args;

	EXPECT_EQ(cl.clEnqueueNativeKernel(fix.queue, access_args_run_native, &args, sizeof(args),
					   1, &t.a.mem, &location, 0, NULL, NULL),
		  CL_SUCCESS);
	EXPECT_EQ(cl.clFinish(fix.queue), CL_SUCCESS);
	expect_bracket("a", "native");
	expect_no_sync("b");
	EXPECT_EQ(t.a.seen[0], 5);
	access_args_close(&t);
}

static const struct keeper {
	const char *name, *version;
	const cl_import_properties_arm *properties;
} keepers[] = {
	{ "runtime", NULL, NULL },
	{ "application", NULL, application_keeps },
	{ "application_1_1", "1.1.0", NULL },
	{ "runtime_1_1", "1.1.0", runtime_keeps },
};

TEST_EACH(
	keeper, struct keeper, keepers,
	"Whoever keeps the memory consistent, a kernel is bracketed, and what was written without "
	"DMA_BUF_IOCTL_SYNC is written back before START.")
{
	struct two t = access_args_open(row->version, row->properties);

	access_args_run(t.kernel);
	expect_bracket("a", "increment");
	expect_count("sync CLEAN a w", 1);
	expect_order("sync CLEAN a w", "sync START a ");
	access_args_close(&t);
}

TEST(host_imports, "Imports of host memory are not bracketed.")
{
	unsigned char *memory;
	int markers;
	cl_mem mem;

	fixture_reset();
	fixture_open();
	memory = pages_map(1);
	mem = fixture_import_host(0, memory, 4096);
	markers = stub_calls("clEnqueueMarkerWithWaitList"); /* the calls of the self-test */
	fixture_increment(mem);
	EXPECT_EQ(memory[0], 1);
	expect_count("sync", 0);
	EXPECT_EQ(stub_calls("clEnqueueMarkerWithWaitList"), markers);
	cl.clReleaseMemObject(mem);
	fixture_close();
}

TEST(read_only, "An import that devices only read is begun and ended for reading.")
{
	struct two t = access_args_open(NULL, NULL);
	int read_only = fake_dmabuf_reopen(t.a.fd, O_RDONLY);
	cl_kernel kernel = fixture_create_kernel("vector_add");
	cl_int err;
	cl_mem mem =
		fix.import(fix.context, CL_MEM_READ_WRITE, fixture_dma_buf, &read_only, SIZE, &err);

	EXPECT_EQ(err, CL_SUCCESS);
	set_arg(kernel, 0, t.b.mem);
	set_arg(kernel, 1, mem);
	set_arg(kernel, 2, mem);
	access_args_run(kernel);
	EXPECT(stub_trace_count("sync START a r") > 0);
	expect_count("sync START a rw", 0);
	expect_count("sync START b rw", 1);
	cl.clReleaseKernel(kernel);
	cl.clReleaseMemObject(mem);
	close(read_only);
	access_args_close(&t);
}

TEST(host_access,
     "From version 1.1.0 on, reads and writes of imports that the runtime keeps consistent are "
     "bracketed.")
{
	struct two t = access_args_open("1.1.0", runtime_keeps);
	unsigned char byte = 0;

	t.a.seen[9] = 77;
	EXPECT_EQ(cl.clEnqueueReadBuffer(fix.queue, t.a.mem, CL_TRUE, 9, 1, &byte, 0, NULL, NULL),
		  CL_SUCCESS);
	EXPECT_EQ(byte, 77);
	expect_count("sync START a", 1);
	expect_count("sync END a", 1);
	byte = 78;
	EXPECT_EQ(cl.clEnqueueWriteBuffer(fix.queue, t.a.mem, CL_TRUE, 9, 1, &byte, 0, NULL, NULL),
		  CL_SUCCESS);
	EXPECT_EQ(t.a.seen[9], 78);
	expect_count("sync START a", 2);
	expect_count("sync END a", 2);
	EXPECT_EQ(cl.clEnqueueCopyBuffer(fix.queue, t.a.mem, t.b.mem, 9, 0, 1, 0, NULL, NULL),
		  CL_SUCCESS);
	EXPECT_EQ(cl.clFinish(fix.queue), CL_SUCCESS);
	EXPECT_EQ(t.b.seen[0], 78);
	expect_count("sync END a", 3);
	expect_count("sync END b", 1);
	access_args_close(&t);
}

TEST(map, "A map begins access, and the unmap ends access.")
{
	struct two t = access_args_open("1.1.0", runtime_keeps);
	unsigned char *mapped;
	cl_event done;
	cl_int err;

	mapped = cl.clEnqueueMapBuffer(fix.queue, t.a.mem, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0,
				       4096, 0, NULL, NULL, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	expect_count("sync START a", 1);
	expect_count("sync END a", 0);
	mapped[1] = 9;
	EXPECT_EQ(cl.clEnqueueUnmapMemObject(fix.queue, t.a.mem, mapped, 0, NULL, &done),
		  CL_SUCCESS);
	EXPECT_EQ(cl.clWaitForEvents(1, &done), CL_SUCCESS);
	expect_count("sync START a", 1);
	expect_count("sync END a", 1);
	EXPECT_EQ(t.a.seen[1], 9);
	cl.clReleaseEvent(done);
	access_args_close(&t);
}
