/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contexts of several devices, and of sub-devices.  A context of several root devices takes an import if kernels of each
 * see the host's own addresses.
 */
#include "access.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

/* How the stub's devices take memory. */
enum devices_method { HOST_PTR, KHR };

/* A context with a queue on each of its devices. */
static struct several {
	cl_context context;
	cl_uint count;
	cl_device_id ids[4];
	cl_command_queue queues[4];
	cl_program program;
	char notice[256];
} several;

/* Two devices.  By khr, the devices copy host pointers, on a machine that makes dma-bufs. */
static void devices_reset(enum devices_method method)
{
	fixture_reset();
	stub_set(STUB_DEVICES, 2);
	if (method == HOST_PTR)
		return;
	fake_dmabuf_set_udmabuf(FAKE_UDMABUF);
	stub_set(STUB_COPYING, 3);
	stub_set(STUB_GPU, 1);
	stub_set(STUB_NO_NATIVE_KERNEL, 1);
	stub_set(STUB_KHR_DMABUF, STUB_KHR_WORKS);
}

static void CL_CALLBACK devices_note(const char *message, const void *data, size_t size,
				     void *user_data)
{
	(void)data;
	(void)size;
	snprintf(user_data, sizeof(several.notice), "%s", message);
}

static void several_open(cl_uint count, const cl_device_id *ids)
{
	const char *source = "kernel void increment(global uchar *a) { a[get_global_id(0)]++; }";
	cl_int err;

	memset(&several, 0, sizeof(several));
	several.count = count;
	memcpy(several.ids, ids, count * sizeof(ids[0]));
	several.context = cl.clCreateContext(NULL, count, ids, devices_note, several.notice, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	for (cl_uint i = 0; i < count; i++) {
		several.queues[i] = cl.clCreateCommandQueue(several.context, ids[i], 0, &err);
		EXPECT_EQ(err, CL_SUCCESS);
	}
	several.program = cl.clCreateProgramWithSource(several.context, 1, &source, NULL, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	EXPECT_EQ(cl.clBuildProgram(several.program, 0, NULL, NULL, NULL, NULL), CL_SUCCESS);
}

static void several_close(void)
{
	cl.clReleaseProgram(several.program);
	for (cl_uint i = 0; i < several.count; i++)
		cl.clReleaseCommandQueue(several.queues[i]);
	cl.clReleaseContext(several.context);
}

/* An import into the context of several devices; a failure fails the test. */
static cl_mem several_import(const cl_import_properties_arm *properties, void *memory, size_t size)
{
	cl_int err = 1;
	cl_mem mem = fix.import(several.context, 0, properties, memory, size, &err);

	if (err)
		printf("# %s\n", several.notice);
	EXPECT_EQ(err, CL_SUCCESS);
	return mem;
}

/* The error of an import, whose message has the text @says. */
static cl_int several_refuse(const cl_import_properties_arm *properties, void *memory, size_t size,
			     const char *says)
{
	cl_int err = fixture_import_error(several.context, 0, properties, memory, size);

	if (!strstr(several.notice, says))
		printf("# %s\n", several.notice);
	EXPECT(strstr(several.notice, says));
	return err;
}

/* A kernel on a queue of device @i. */
static void several_increment(cl_uint i, cl_mem mem)
{
	cl_int err;
	cl_kernel kernel = cl.clCreateKernel(several.program, "increment", &err);

	EXPECT_EQ(err, CL_SUCCESS);
	EXPECT_EQ(cl.clSetKernelArg(kernel, 0, sizeof(mem), &mem), CL_SUCCESS);
	EXPECT_EQ(fixture_enqueue(several.queues[i], kernel, 0, NULL, NULL), CL_SUCCESS);
	EXPECT_EQ(cl.clFinish(several.queues[i]), CL_SUCCESS);
	cl.clReleaseKernel(kernel);
}

/* Each device in turn works on what the host and the device before have written. */
static void several_expect_shared(cl_mem mem, volatile unsigned char *bytes)
{
	bytes[0] = 40;
	for (cl_uint i = 0; i < several.count; i++) {
		several_increment(i, mem);
		EXPECT_EQ(bytes[0], 41 + i);
	}
	bytes[0] = 90;
	for (cl_uint i = several.count; i-- > 0;)
		several_increment(i, mem);
	EXPECT_EQ(bytes[0], 90 + several.count);
}

/* Memory of two pages, of which every method can make an import. */
static const struct devices_memory {
	const char *name;
	enum devices_method method;
	bool is_dmabuf;
} memories[] = {
	{ "host", HOST_PTR, false },
	{ "dma_buf", HOST_PTR, true },
	{ "khr_host", KHR, false },
	{ "khr_dma_buf", KHR, true },
};

struct devices_bytes {
	unsigned char *at;
	int fd;
};

static struct devices_bytes devices_map(bool is_dmabuf)
{
	struct devices_bytes b;

	b.fd = is_dmabuf ? fake_dmabuf_create("a", 2 * PAGE)
			 : memfd_create("sealed", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	EXPECT(b.fd >= 0);
	if (!is_dmabuf)
		EXPECT(!ftruncate(b.fd, (off_t)2 * PAGE) &&
		       !fcntl(b.fd, F_ADD_SEALS, F_SEAL_SHRINK));
	b.at = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, b.fd, 0);
	EXPECT(b.at != MAP_FAILED);
	return b;
}

static void devices_unmap(struct devices_bytes *b)
{
	munmap(b->at, 2 * PAGE);
	close(b->fd);
}

static cl_mem devices_import(const struct devices_memory *memory, struct devices_bytes *b)
{
	return memory->is_dmabuf ? several_import(fixture_dma_buf, &b->fd, 2 * PAGE)
				 : several_import(NULL, b->at, 2 * PAGE);
}

/* Each kernel has a bracket of its own, or an acquire and a release. */
static void devices_expect_edges(const struct devices_memory *memory, int kernels)
{
	const bool is_khr = memory->method == KHR;
	const int brackets = memory->is_dmabuf && !is_khr ? kernels : 0;

	expect_count("sync START a ", brackets);
	expect_count("sync END a ", brackets);
	expect_count("acquire", is_khr ? kernels : 0);
	expect_count("release", is_khr ? kernels : 0);
}

static const struct devices_memory shared[] = {
	{ "host", HOST_PTR, false },
	{ "dma_buf", HOST_PTR, true },
};

TEST_EACH(each_device, struct devices_memory, shared,
	  "Kernels on each device of a context work on an import in place, each in its bracket.")
{
	struct devices_bytes b;
	cl_mem mem;

	devices_reset(row->method);
	fixture_open();
	several_open(2, fix.device);
	b = devices_map(row->is_dmabuf);
	mem = devices_import(row, &b);
	stub_trace_clear();
	several_expect_shared(mem, b.at);
	devices_expect_edges(row, 4);
	cl.clReleaseMemObject(mem);
	devices_unmap(&b);
	several_close();
	fixture_close();
}

TEST_EACH(sub_devices, struct devices_memory, memories,
	  "Kernels on sub-devices, and on their root device beside, work on an import in place.")
{
	const cl_device_partition_property halves[] = { CL_DEVICE_PARTITION_EQUALLY, 1, 0 };
	cl_device_id ids[3];
	struct devices_bytes b;
	cl_mem mem;

	devices_reset(row->method);
	fixture_open();
	EXPECT_EQ(cl.clCreateSubDevices(fix.device[0], halves, 2, ids, NULL), CL_SUCCESS);
	ids[2] = fix.device[0];
	for (cl_uint count = 1; count <= 3; count++) {
		several_open(count, ids);
		b = devices_map(row->is_dmabuf);
		mem = devices_import(row, &b);
		stub_trace_clear();
		several_expect_shared(mem, b.at);
		devices_expect_edges(row, 2 * (int)count);
		cl.clReleaseMemObject(mem);
		devices_unmap(&b);
		several_close();
	}
	cl.clReleaseDevice(ids[0]);
	cl.clReleaseDevice(ids[1]);
	fixture_close();
}

static unsigned long devices_count_tests(void)
{
	return stub_calls("clEnqueueNativeKernel") + stub_calls("clBuildProgram");
}

TEST_EACH(sub_device_proved, struct devices_memory, memories,
	  "What is proved for a root device needs no test on its sub-devices.")
{
	const cl_device_partition_property halves[] = { CL_DEVICE_PARTITION_EQUALLY, 1, 0 };
	struct devices_bytes b;
	cl_device_id ids[2];
	unsigned long tests;

	devices_reset(row->method);
	fake_dmabuf_set_udmabuf(FAKE_UDMABUF); /* else each import is proved by its address */
	fixture_open();
	b = devices_map(row->is_dmabuf);
	several_open(1, fix.device);
	cl.clReleaseMemObject(devices_import(row, &b));
	several_close();
	EXPECT_EQ(cl.clCreateSubDevices(fix.device[0], halves, 2, ids, NULL), CL_SUCCESS);
	several_open(2, ids);
	tests = devices_count_tests();
	cl.clReleaseMemObject(devices_import(row, &b));
	EXPECT_EQ(devices_count_tests(), tests);
	several_close();
	cl.clReleaseDevice(ids[0]);
	cl.clReleaseDevice(ids[1]);
	devices_unmap(&b);
	fixture_close();
}

TEST_EACH(sub_devices_of_two, struct devices_memory, shared,
	  "A context of sub-devices of different root devices takes imports.")
{
	const cl_device_partition_property halves[] = { CL_DEVICE_PARTITION_EQUALLY, 1, 0 };
	cl_device_id ids[2], others[2];
	struct devices_bytes b;
	cl_mem mem;

	devices_reset(row->method);
	fixture_open();
	EXPECT_EQ(cl.clCreateSubDevices(fix.device[0], halves, 2, ids, NULL), CL_SUCCESS);
	EXPECT_EQ(cl.clCreateSubDevices(fix.device[1], halves, 2, others, NULL), CL_SUCCESS);
	several_open(2, (const cl_device_id[]){ ids[1], others[0] });
	b = devices_map(row->is_dmabuf);
	mem = devices_import(row, &b);
	for (int i = 0; i < 2; i++) { /* the context keeps the sub-devices */
		cl.clReleaseDevice(ids[i]);
		cl.clReleaseDevice(others[i]);
	}
	several_expect_shared(mem, b.at);
	cl.clReleaseMemObject(mem);
	mem = devices_import(row, &b);
	several_expect_shared(mem, b.at);
	cl.clReleaseMemObject(mem);
	devices_unmap(&b);
	several_close();
	fixture_close();
}

static const struct devices_type {
	const char *name;
	const cl_import_properties_arm *properties;
} types[] = { { "host", NULL }, { "dma_buf", fixture_dma_buf } };

TEST_EACH(
	one_copies, struct devices_type, types,
	"If one device of a context copies, imports into the context are refused, and the message "
	"names the device.")
{
	struct devices_bytes b;
	void *memory;

	devices_reset(HOST_PTR);
	stub_set(STUB_COPYING, 2);
	fixture_open();
	b = devices_map(row->properties);
	memory = row->properties ? (void *)&b.fd : b.at;
	several_open(2, fix.device);
	EXPECT_EQ(several_refuse(row->properties, memory, PAGE, "device 1 of the context"),
		  CL_INVALID_PROPERTY);
	several_close();
	several_open(1, &fix.device[1]);
	EXPECT_EQ(several_refuse(row->properties, memory, PAGE, "device 0 of the context"),
		  CL_INVALID_PROPERTY);
	several_close();
	several_open(1, &fix.device[0]);
	cl.clReleaseMemObject(several_import(row->properties, memory, PAGE));
	several_close();
	devices_unmap(&b);
	fixture_close();
}

TEST(different_methods,
     "If the devices of a context take host memory by different methods, host memory is refused.")
{
	struct devices_bytes b;

	devices_reset(KHR);
	stub_set(STUB_COPYING, 2);
	fixture_open();
	several_open(2, fix.device);
	b = devices_map(false);
	EXPECT_EQ(several_refuse(NULL, b.at, PAGE, "different methods"), CL_INVALID_PROPERTY);
	devices_unmap(&b);
	several_close();
	fixture_close();
}

/* Devices that may have a copy each in one context. */
static const struct devices_apart {
	const char *name;
	enum devices_method method;
	bool is_dmabuf;
} aparts[] = {
	{ "host_ptr", HOST_PTR, false },
	{ "khr_host", KHR, false },
	{ "khr_dma_buf", KHR, true },
};

TEST_EACH(
	together, struct devices_apart, aparts,
	"Devices whose kernels see other addresses than the host take imports in contexts of their "
	"own, and a context of several is refused with their names.")
{
	struct devices_bytes b;
	const cl_import_properties_arm *properties = row->is_dmabuf ? fixture_dma_buf : NULL;
	void *memory;

	devices_reset(row->method);
	stub_set(STUB_GPU, 1);
	fixture_open();
	b = devices_map(row->is_dmabuf);
	memory = row->is_dmabuf ? (void *)&b.fd : b.at;
	several_open(2, fix.device);
	EXPECT_EQ(several_refuse(
			  properties, memory, PAGE,
			  "stub device 0 and stub device 1 of the context are not proved to be "
			  "zero copy together"),
		  CL_INVALID_OPERATION);
	several_close();
	for (int i = 0; i < 2; i++) {
		several_open(1, &fix.device[i]);
		cl.clReleaseMemObject(several_import(properties, memory, PAGE));
		several_close();
	}
	devices_unmap(&b);
	fixture_close();
}

TEST(alignments, "The strictest device of a context decides on addresses and sizes.")
{
	struct devices_bytes b;
	cl_mem mem;

	devices_reset(HOST_PTR);
	stub_set(STUB_PAGES_ALONE, 2);
	fixture_open();
	b = devices_map(false);
	several_open(2, fix.device);
	mem = several_import(NULL, b.at + 128, 1001);
	several_expect_shared(mem, b.at + 128);
	EXPECT_EQ(b.at[0], 0);
	cl.clReleaseMemObject(mem);
	EXPECT_EQ(several_refuse(NULL, b.at + 64, 100, "multiples of 128 bytes"),
		  CL_INVALID_OPERATION);
	several_close();
	several_open(1, &fix.device[0]);
	mem = several_import(NULL, b.at + 1, 1001);
	several_expect_shared(mem, b.at + 1);
	cl.clReleaseMemObject(mem);
	several_close();
	devices_unmap(&b);
	fixture_close();
}

static const struct devices_strict {
	const char *name;
	long pages_alone, part_at_page; /* bits of devices */
} stricts[] = {
	{ "first", 1, 1 },
	{ "second", 2, 2 },
	{ "one_each", 2, 1 },
};

TEST_EACH(part_alignments, struct devices_strict, stricts,
	  "An import within pages begins where a sub-buffer may begin on each device of a context.")
{
	struct devices_bytes b;
	char text[64];
	cl_mem mem;

	snprintf(text, sizeof(text), "multiples of %zu bytes", PAGE);
	devices_reset(HOST_PTR);
	stub_set(STUB_PAGES_ALONE, row->pages_alone);
	stub_set(STUB_PART_AT_PAGE, row->part_at_page);
	fixture_open();
	b = devices_map(false);
	several_open(2, fix.device);
	EXPECT_EQ(several_refuse(NULL, b.at + 128, 1001, text), CL_INVALID_OPERATION);
	mem = several_import(NULL, b.at + PAGE, 1001);
	several_expect_shared(mem, b.at + PAGE);
	cl.clReleaseMemObject(mem);
	several_close();
	devices_unmap(&b);
	fixture_close();
}

static const struct devices_parents {
	const char *name;
	enum stub_parents parents;
	bool has_root;
} parents[] = {
	{ "self", STUB_PARENTS_SELF, true },
	{ "cycle", STUB_PARENTS_CYCLE, false },
	{ "none", STUB_PARENTS_NONE, true },
};

TEST_EACH(
	parents, struct devices_parents, parents,
	"A driver's wrong answer for the parent of a device is no endless search: nothing is known "
	"of a device without a root in the platform's list.")
{
	const cl_device_partition_property halves[] = { CL_DEVICE_PARTITION_EQUALLY, 1, 0 };
	cl_device_id ids[2];
	struct devices_bytes b;
	cl_mem mem;

	devices_reset(HOST_PTR);
	stub_set(STUB_PARENTS, row->parents);
	fixture_open();
	EXPECT(fixture_device_reports(fix.device[1], "cl_arm_import_memory_host"));
	EXPECT_EQ(cl.clCreateSubDevices(fix.device[0], halves, 2, ids, NULL), CL_SUCCESS);
	several_open(2, (const cl_device_id[]){ ids[1], fix.device[1] });
	cl.clReleaseDevice(ids[0]);
	cl.clReleaseDevice(ids[1]);
	b = devices_map(false);
	if (row->has_root) {
		mem = several_import(NULL, b.at, PAGE);
		several_expect_shared(mem, b.at);
		cl.clReleaseMemObject(mem);
	} else {
		EXPECT_EQ(several_refuse(NULL, b.at, PAGE, "other devices than this process"),
			  CL_OUT_OF_RESOURCES);
	}
	devices_unmap(&b);
	several_close();
	fixture_close();
}
