/* SPDX-License-Identifier: Apache-2.0 */
/* Sub-buffers and images of imports by the method opaque_fd, and the method's refusals. */
#include "opaque_fixture.h"

#include <CL/climport.h>
#include <string.h>
#include <unistd.h>

static bool are_memories(void *count)
{
	return fake_rm_held().memories == *(int *)count;
}

TEST(not_at_page, "An import at an aligned address within a page shows no parent and no offset.")
{
	unsigned char *p;
	cl_mem mem, sub;

	opaque_reset();
	opaque_begin();
	p = pages_map(2);
	mem = fixture_import_host(CL_MEM_READ_WRITE, p + 3 * ALIGN, 1000);
	p[3 * ALIGN] = 1;
	fixture_increment(mem);
	EXPECT_EQ(p[3 * ALIGN], 2);
	EXPECT_EQ(p[3 * ALIGN - 1], 0);
	EXPECT_EQ(opaque_query_size(mem, CL_MEM_OFFSET), 0);
	EXPECT_EQ(opaque_query_size(mem, CL_MEM_SIZE), 1000);
	EXPECT_EQ(opaque_query_size(mem, CL_MEM_ASSOCIATED_MEMOBJECT), 0);
	EXPECT_EQ(opaque_query_size(mem, CL_MEM_FLAGS), CL_MEM_READ_WRITE);
	EXPECT_EQ(opaque_query_size(mem, CL_MEM_HOST_PTR), 0);
	sub = fixture_create_sub_buffer(mem, 2 * ALIGN, 100);
	EXPECT_EQ(opaque_query_size(sub, CL_MEM_OFFSET), 2 * ALIGN);
	EXPECT_EQ(opaque_query_size(sub, CL_MEM_ASSOCIATED_MEMOBJECT), (size_t)mem);
	p[5 * ALIGN] = 50;
	fixture_increment(sub);
	EXPECT_EQ(p[5 * ALIGN], 51);
	EXPECT(fixture_is_import(sub) && fixture_is_import(mem));
	cl.clReleaseMemObject(mem);
	fixture_increment(sub);
	EXPECT_EQ(p[5 * ALIGN], 52);
	cl.clReleaseMemObject(sub);
	fixture_close();
}

static void CL_CALLBACK opaque_trace_destroyed(cl_mem mem, void *unused)
{
	(void)mem;
	(void)unused;
	stub_trace("destroyed import");
}

TEST(destructor_of_part,
     "An import's destructor callback comes after the last kernel that uses a sub-buffer of the "
     "import.")
{
	cl_kernel kernel;
	cl_mem mem, sub;
	cl_event go;

	opaque_reset();
	opaque_begin();
	mem = fixture_import_host(CL_MEM_READ_WRITE, pages_map(2) + 3 * ALIGN, 1000);
	EXPECT_EQ(cl.clSetMemObjectDestructorCallback(mem, opaque_trace_destroyed, NULL),
		  CL_SUCCESS);
	sub = fixture_create_sub_buffer(mem, 2 * ALIGN, 100);
	kernel = fixture_create_increment(sub);
	go = cl.clCreateUserEvent(fix.context, NULL);
	EXPECT_EQ(fixture_enqueue(fix.queue, kernel, 1, &go, NULL), CL_SUCCESS);
	cl.clReleaseKernel(kernel);
	cl.clReleaseMemObject(sub);
	cl.clReleaseMemObject(mem);
	EXPECT_EQ(stub_trace_count("destroyed import"), 0);
	EXPECT_EQ(cl.clSetUserEventStatus(go, CL_COMPLETE), CL_SUCCESS);
	EXPECT_EQ(cl.clFinish(fix.queue), CL_SUCCESS);
	cl.clReleaseEvent(go);
	fixture_close();
	EXPECT_EQ(stub_trace_count("destroyed import"), 1);
}

TEST(sub_buffer_errors, "A sub-buffer of an import within a page ends where the import ends.")
{
	const cl_buffer_region outside = { ALIGN, 1000 }, before = { (size_t)-ALIGN, ALIGN },
			       crooked = { 1, 10 };
	unsigned char *p;
	cl_int err;
	cl_mem mem;

	opaque_reset();
	fixture_open();
	p = pages_map(2);
	mem = fixture_import_host(0, p + ALIGN, 1000);
	cl.clCreateSubBuffer(mem, 0, CL_BUFFER_CREATE_TYPE_REGION, &outside, &err);
	EXPECT_EQ(err, CL_INVALID_VALUE);
	cl.clCreateSubBuffer(mem, 0, CL_BUFFER_CREATE_TYPE_REGION, &before, &err);
	EXPECT_EQ(err, CL_INVALID_VALUE);
	cl.clCreateSubBuffer(mem, 0, CL_BUFFER_CREATE_TYPE_REGION, &crooked, &err);
	EXPECT_EQ(err, CL_MISALIGNED_SUB_BUFFER_OFFSET);
	cl.clCreateSubBuffer(mem, 0, CL_BUFFER_CREATE_TYPE_REGION, NULL, &err);
	EXPECT_EQ(err, CL_INVALID_VALUE);
	cl.clReleaseMemObject(mem);
	fixture_close();
}

TEST(sub_buffer_of_a_sub_buffer,
     "No driver is asked for a sub-buffer of a sub-buffer: NVIDIA's makes one.")
{
	const cl_buffer_region all = { 0, ALIGN };
	cl_mem mem, sub;
	unsigned long before;
	cl_int err;

	opaque_reset();
	fixture_open();
	mem = fixture_import_host(0, pages_map(1), PAGE);
	sub = cl.clCreateSubBuffer(mem, 0, CL_BUFFER_CREATE_TYPE_REGION, &all, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	before = stub_calls("clCreateSubBuffer");
	EXPECT(!cl.clCreateSubBuffer(sub, 0, CL_BUFFER_CREATE_TYPE_REGION, &all, &err));
	EXPECT_EQ(err, CL_INVALID_MEM_OBJECT);
	EXPECT_EQ(stub_calls("clCreateSubBuffer"), before);
	cl.clReleaseMemObject(sub);
	cl.clReleaseMemObject(mem);
	fixture_close();
}

TEST(sub_buffer_beyond,
     "If the import is the driver's own buffer, a sub-buffer still ends where the import ends.")
{
	const cl_buffer_region beyond = { PAGE, 1 };
	unsigned long before;
	cl_int err;
	cl_mem mem;

	opaque_reset();
	fixture_open();
	mem = fixture_import_host(0, pages_map(1), PAGE);
	before = stub_calls("clCreateSubBuffer");
	EXPECT(!cl.clCreateSubBuffer(mem, 0, CL_BUFFER_CREATE_TYPE_REGION, &beyond, &err));
	EXPECT_EQ(err, CL_INVALID_VALUE);
	EXPECT_EQ(stub_calls("clCreateSubBuffer"), before);
	EXPECT(strstr(fix.notice, "beyond"));
	cl.clReleaseMemObject(mem);
	fixture_close();
}

TEST(unaligned,
     "If the address of an import is not aligned, the import is refused and the message names the "
     "alignment.")
{
	unsigned char *p;

	opaque_reset();
	fixture_open();
	p = pages_map(1);
	EXPECT_EQ(fixture_import_error(fix.context, 0, NULL, p + 1, 100), CL_INVALID_OPERATION);
	EXPECT(strstr(fix.notice, "multiples of 128 bytes"));
	fixture_close();
}

TEST(copying_driver, "If the driver copies, no extension is reported and imports are refused.")
{
	opaque_reset();
	stub_set(STUB_OPAQUE_COPIES, 1);
	stub_set(STUB_COPYING, 1);
	fixture_open();
	EXPECT(!fixture_device_reports(fix.device[0], "cl_arm_import_memory"));
	EXPECT_EQ(fixture_import_error(fix.context, 0, NULL, pages_map(1), PAGE),
		  CL_INVALID_PROPERTY);
	fixture_close();
}

TEST(rm_refuses,
     "If RM refuses in the self-test, only CUDA's memory is imported, and the message for "
     "other memory says why.")
{
	void *address;
	cl_mem mem;

	opaque_reset();
	fake_rm.is_present = false;
	fixture_open();
	EXPECT(fixture_device_reports(fix.device[0], "cl_arm_import_memory_host"));
	EXPECT_EQ(fixture_import_error(fix.context, 0, NULL, pages_map(1), PAGE),
		  CL_INVALID_OPERATION);
	EXPECT(strstr(fix.notice, "nvidiactl"));
	EXPECT_EQ(climport_alloc(CLIMPORT_HOST, PAGE, 0, uuid, &address), 0);
	mem = fixture_import_host(0, address, PAGE);
	fixture_increment(mem);
	cl.clReleaseMemObject(mem);
	climport_free(address);
	fixture_close();
}

TEST(images, "Images on opaque imports are refused, since the driver would refuse their kernels.")
{
	const cl_image_format format = { CL_RGBA, CL_UNSIGNED_INT8 };
	cl_image_desc desc = { .image_type = CL_MEM_OBJECT_IMAGE1D_BUFFER, .image_width = 16 };
	cl_int err;

	opaque_reset();
	fixture_open();
	desc.mem_object = fixture_import_host(0, pages_map(1), PAGE);
	EXPECT(!cl.clCreateImage(fix.context, CL_MEM_READ_WRITE, &format, &desc, NULL, &err));
	EXPECT_EQ(err, CL_INVALID_OPERATION);
	cl.clReleaseMemObject(desc.mem_object);
	fixture_close();
}

TEST(several_devices,
     "A context of several devices refuses imports, since a descriptor is for one device.")
{
	opaque_reset();
	stub_set(STUB_DEVICES, 2);
	fake_rm.gpu_count = 2;
	stub_uuid(1, fake_rm.gpu[1].uuid);
	fixture_open();
	EXPECT_EQ(fixture_import_error(fix.context, 0, NULL, pages_map(1), PAGE),
		  CL_INVALID_OPERATION);
	fixture_close();
}

/* A kernel on a queue of @device, in a context of the test's own. */
static void opaque_increment_on(cl_context context, cl_device_id device, cl_mem mem)
{
	const char *source = "kernel void increment(global uchar *a) { a[get_global_id(0)]++; }";
	cl_int err;
	cl_program program = cl.clCreateProgramWithSource(context, 1, &source, NULL, &err);
	cl_command_queue queue = cl.clCreateCommandQueue(context, device, 0, &err);
	cl_kernel kernel;

	EXPECT_EQ(err, CL_SUCCESS);
	EXPECT_EQ(cl.clBuildProgram(program, 0, NULL, NULL, NULL, NULL), CL_SUCCESS);
	kernel = cl.clCreateKernel(program, "increment", &err);
	EXPECT_EQ(err, CL_SUCCESS);
	EXPECT_EQ(cl.clSetKernelArg(kernel, 0, sizeof(mem), &mem), CL_SUCCESS);
	EXPECT_EQ(fixture_enqueue(queue, kernel, 0, NULL, NULL), CL_SUCCESS);
	EXPECT_EQ(cl.clFinish(queue), CL_SUCCESS);
	cl.clReleaseKernel(kernel);
	cl.clReleaseCommandQueue(queue);
	cl.clReleaseProgram(program);
}

TEST(sub_devices,
     "Sub-devices of one device, and the device beside, import together, and kernels on "
     "each see what the host wrote.")
{
	const cl_device_partition_property halves[] = { CL_DEVICE_PARTITION_EQUALLY, 1, 0 };
	cl_device_id ids[3];
	cl_context context;
	cl_int err = 1;
	unsigned char *p;
	cl_mem mem;

	opaque_reset();
	opaque_begin();
	EXPECT_EQ(cl.clCreateSubDevices(fix.device[0], halves, 2, ids, NULL), CL_SUCCESS);
	ids[2] = fix.device[0];
	context = cl.clCreateContext(NULL, 3, ids, NULL, NULL, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	p = pages_map(1);
	mem = fix.import(context, 0, NULL, p, PAGE, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	for (unsigned char i = 0; i < 6; i++) {
		p[0] = 10 * i;
		opaque_increment_on(context, ids[i % 3], mem);
		EXPECT_EQ(p[0], 10 * i + 1);
	}
	cl.clReleaseMemObject(mem);
	cl.clReleaseContext(context);
	cl.clReleaseDevice(ids[0]);
	cl.clReleaseDevice(ids[1]);
	fixture_close();
}

TEST(nothing_left, "A thousand imports leave no descriptor and no memory.")
{
	int fds, memories;
	unsigned char *p;
	cl_mem mem;

	opaque_reset();
	opaque_begin();
	p = pages_map(4);
	memories = fake_rm_held().memories; /* the process's own */
	mem = fixture_import_host(0, p, PAGE);
	fixture_increment(mem);
	cl.clReleaseMemObject(mem);
	EXPECT(process_settles(are_memories, &memories));
	fds = process_count_descriptors();
	for (int i = 0; i < 1000; i++) {
		mem = fixture_import_host(0, p + i % 3 * PAGE + i % 2 * ALIGN, PAGE);
		if (i % 50 == 0)
			fixture_increment(mem);
		cl.clReleaseMemObject(mem);
	}
	EXPECT(process_settles(process_descriptors_at_most, &fds));
	EXPECT(process_settles(are_memories, &memories));
	fixture_close();
}

TEST(every_failure,
     "If any call of the driver fails, the import fails and leaves no descriptor and no memory.")
{
	for (unsigned long n = 1;; n++) {
		int fds, failed, memories;
		unsigned char *p;
		cl_int err;
		cl_mem mem;

		opaque_reset();
		opaque_begin();
		p = pages_map(1);
		memories = fake_rm_held().memories;
		cl.clReleaseMemObject(fixture_import_host(0, p, PAGE));
		fds = process_count_descriptors();
		stub_fail(NULL, n, CL_OUT_OF_RESOURCES);
		mem = fix.import(fix.context, 0, NULL, p + ALIGN, PAGE - ALIGN, &err);
		failed = stub_failed();
		stub_fail(NULL, 0, 0);
		EXPECT(!mem == !!err);
		if (mem)
			cl.clReleaseMemObject(mem);
		EXPECT(process_settles(process_descriptors_at_most, &fds));
		EXPECT(process_settles(are_memories, &memories));
		fixture_close();
		if (!failed)
			break;
	}
}

TEST(bad_descriptor,
     "If the driver returns an object together with an error, the import is an error.")
{
	cl_mem mem;
	int fds;

	opaque_reset();
	fixture_open();
	mem = fixture_import_host(0, pages_map(1), PAGE);
	cl.clReleaseMemObject(mem);
	fds = process_count_descriptors();
	/* From now on RM makes descriptors for a different device. */
	memset(fake_rm.gpu[0].uuid, 1, 16);
	EXPECT_EQ(fixture_import_error(fix.context, 0, NULL, pages_map(1), PAGE),
		  CL_INVALID_OPERATION);
	EXPECT(process_settles(process_descriptors_at_most, &fds));
	fixture_close();
}
