/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The way opaque_fd: a discrete device that takes opaque descriptors, of fakes of Vulkan and
 * CUDA.  Self-tests are remembered in a directory of each test's own.
 */
#include "fixture.h"

#include "icd/queries/describe.h"

#include "fake_cuda.h"
#include "fake_vulkan.h"

#include <CL/climport.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096
#define ALIGN 128 /* CL_DEVICE_MEM_BASE_ADDR_ALIGN of the stub, in bytes */

static unsigned char uuid[16];
static char cache_directory[32];

static void remove_cache(void)
{
	char command[64];

	snprintf(command, sizeof(command), "rm -rf %s", cache_directory);
	if (*cache_directory && system(command))
		printf("# %s is left\n", cache_directory);
	*cache_directory = '\0';
}

static struct fake_vulkan *opaque_reset(void)
{
	struct fake_vulkan *vk = fake_vulkan();

	EXPECT(vk);
	fixture_reset();
	remove_cache();
	strcpy(cache_directory, "/tmp/climport-XXXXXX");
	EXPECT(mkdtemp(cache_directory));
	setenv("XDG_CACHE_HOME", cache_directory, 1);
	fake_cuda_reset(1);
	stub_set(STUB_OPAQUE, 1);
	stub_uuid(0, uuid);
	vk->fail_call = 0;
	memcpy(vk->gpu[0].uuid, uuid, sizeof(uuid));
	return vk;
}

typedef cl_int(CL_API_CALL *describe_fn)(cl_device_id device, cl_uint type, const char **way,
					 const char **why);

/* The way that the layer takes. */
static const char *opaque_read_method(cl_uint type)
{
	describe_fn describe = (describe_fn)cl.clGetExtensionFunctionAddress(DESCRIBE_FUNCTION);
	const char *name = "?", *why = "?";

	EXPECT_EQ(describe(fix.device[0], type, &name, &why), CL_SUCCESS);
	if (strcmp(name, "opaque_fd"))
		printf("# %s: %s\n", name, why);
	return name;
}

/* As NVIDIA's devices: they keep what kernels have read of the host's memory. */
static struct fake_vulkan *open_caching(void)
{
	struct fake_vulkan *vk = opaque_reset();

	stub_set(STUB_OPAQUE_CACHED, 1);
	fixture_open();
	EXPECT(!strcmp(opaque_read_method(CL_IMPORT_TYPE_HOST_ARM), "opaque_fd"));
	return vk;
}

static void opaque_close(void)
{
	fixture_close();
	remove_cache();
}

static bool opaque_device_reports(const char *name)
{
	char text[512] = "";

	EXPECT_EQ(cl.clGetDeviceInfo(fix.device[0], CL_DEVICE_EXTENSIONS, sizeof(text), text, NULL),
		  CL_SUCCESS);
	return strstr(text, name);
}

static size_t opaque_query_size(cl_mem mem, cl_mem_info name)
{
	size_t value = 0;

	EXPECT_EQ(cl.clGetMemObjectInfo(mem, name, sizeof(value), &value, NULL), CL_SUCCESS);
	return value;
}

/* The stub's queue lets go of what a command used a moment after clFinish(). */
static bool are_objects(void *count)
{
	return stub_live(STUB_MEM) == *(long *)count;
}

static bool one_memory(void *vk)
{
	return ((struct fake_vulkan *)vk)->memories == 1;
}

TEST(host_pages, "Kernels work in place on any pages of the host.")
{
	unsigned char *p;
	cl_mem mem;

	opaque_reset();
	fixture_open();
	EXPECT(opaque_device_reports("cl_arm_import_memory_host"));
	EXPECT(opaque_device_reports("cl_arm_import_memory_dma_buf"));
	EXPECT(!strcmp(opaque_read_method(CL_IMPORT_TYPE_HOST_ARM), "opaque_fd"));
	EXPECT(!strcmp(opaque_read_method(CL_IMPORT_TYPE_DMA_BUF_ARM), "opaque_fd"));
	p = pages_map(3);
	mem = fixture_import_host(0, p, 3 * PAGE);
	p[0] = 7;
	fixture_increment(mem);
	EXPECT_EQ(p[0], 8);
	cl.clReleaseMemObject(mem);
	opaque_close();
}

TEST(refreshed, "A device that caches sees what the host wrote before each kernel.")
{
	unsigned char *p;
	cl_mem mem;

	open_caching();
	p = pages_map(1);
	mem = fixture_import_host(0, p, PAGE);
	for (int i = 0; i < 5; i++) {
		p[0] = 20 * i;
		fixture_increment(mem);
		EXPECT_EQ(p[0], 20 * i + 1);
	}
	cl.clReleaseMemObject(mem);
	opaque_close();
}

/*
 * A kernel that a user event holds back, by its own wait list or by a marker before it.  Another
 * reads the memory meanwhile, so that a refresh at the enqueue would be too early.
 */
static void expect_late_write_is_seen(bool by_marker)
{
	cl_command_queue other;
	cl_kernel kernel;
	unsigned char *p;
	cl_event gate;
	cl_int err;
	cl_mem mem;

	open_caching();
	other = fixture_create_queue(0);
	p = pages_map(1);
	mem = fixture_import_host(0, p, PAGE);
	fixture_increment(mem);
	kernel = fixture_create_increment(mem);
	gate = cl.clCreateUserEvent(fix.context, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	if (by_marker)
		EXPECT_EQ(cl.clEnqueueMarkerWithWaitList(fix.queue, 1, &gate, NULL), CL_SUCCESS);
	EXPECT_EQ(fixture_enqueue(fix.queue, kernel, !by_marker, by_marker ? NULL : &gate, NULL),
		  CL_SUCCESS);
	EXPECT_EQ(fixture_enqueue(other, kernel, 0, NULL, NULL), CL_SUCCESS);
	EXPECT_EQ(cl.clFinish(other), CL_SUCCESS);
	p[0] = 99;
	EXPECT_EQ(cl.clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
	EXPECT_EQ(cl.clFinish(fix.queue), CL_SUCCESS);
	EXPECT_EQ(p[0], 100);
	cl.clReleaseCommandQueue(other);
	cl.clReleaseEvent(gate);
	cl.clReleaseKernel(kernel);
	cl.clReleaseMemObject(mem);
	opaque_close();
}

TEST(refreshed_late,
     "A device that caches sees what the host wrote before a user event that the kernel waits for.")
{
	expect_late_write_is_seen(false);
}

TEST(refreshed_behind,
     "A command behind one that a user event holds back sees what the host wrote in between.")
{
	expect_late_write_is_seen(true);
}

TEST(refreshed_at_once,
     "Without wait list and user events no marker and no event is made for a refresh.")
{
	unsigned long markers, events;
	unsigned char *p;
	cl_event gate;
	cl_int err;
	cl_mem mem;

	open_caching();
	p = pages_map(1);
	mem = fixture_import_host(0, p, PAGE);
	markers = stub_calls("clEnqueueMarkerWithWaitList");
	events = stub_calls("clCreateUserEvent");
	fixture_increment(mem);
	EXPECT_EQ(stub_calls("clEnqueueMarkerWithWaitList"), markers);
	EXPECT_EQ(stub_calls("clCreateUserEvent"), events);
	gate = cl.clCreateUserEvent(fix.context, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	fixture_increment(mem);
	EXPECT(stub_calls("clEnqueueMarkerWithWaitList") > markers);
	EXPECT_EQ(cl.clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
	markers = stub_calls("clEnqueueMarkerWithWaitList");
	fixture_increment(mem);
	EXPECT_EQ(stub_calls("clEnqueueMarkerWithWaitList"), markers);
	cl.clReleaseEvent(gate);
	cl.clReleaseMemObject(mem);
	opaque_close();
}

TEST(refreshed_once, "One refresh serves all imports that are a kernel's arguments.")
{
	unsigned long before;
	cl_mem mem[3];
	cl_kernel kernel;
	unsigned char *p;

	open_caching();
	p = pages_map(3);
	kernel = fixture_create_kernel("vector_add");
	for (cl_uint i = 0; i < 3; i++) {
		mem[i] = fixture_import_host(0, p + i * PAGE, PAGE);
		EXPECT_EQ(cl.clSetKernelArg(kernel, i, sizeof(cl_mem), &mem[i]), CL_SUCCESS);
	}
	EXPECT_EQ(fixture_enqueue(fix.queue, kernel, 0, NULL, NULL), CL_SUCCESS);
	EXPECT_EQ(cl.clFinish(fix.queue), CL_SUCCESS);
	before = stub_calls("clCreateBufferWithProperties");
	EXPECT_EQ(fixture_enqueue(fix.queue, kernel, 0, NULL, NULL), CL_SUCCESS);
	EXPECT_EQ(cl.clFinish(fix.queue), CL_SUCCESS);
	EXPECT_EQ(stub_calls("clCreateBufferWithProperties") - before, 1);
	for (int i = 0; i < 3; i++)
		cl.clReleaseMemObject(mem[i]);
	cl.clReleaseKernel(kernel);
	opaque_close();
}

TEST(allocated, "Memory of climport_alloc() needs no refresh, and no import by Vulkan.")
{
	struct fake_vulkan *vk = opaque_reset();
	unsigned int imports;
	unsigned long before;
	void *address;
	cl_mem mem;

	fixture_open();
	cl.clReleaseMemObject(
		fixture_import_host(0, pages_map(1), PAGE)); /* the self-test has been */
	imports = vk->imports;
	EXPECT_EQ(climport_alloc(CLIMPORT_HOST, 3000, 0, uuid, &address), 0);
	mem = fixture_import_host(0, address, 3000);
	EXPECT_EQ(vk->imports, imports);
	before = stub_calls("clCreateBufferWithProperties");
	*(unsigned char *)address = 5;
	fixture_increment(mem);
	EXPECT_EQ(*(unsigned char *)address, 6);
	EXPECT_EQ(stub_calls("clCreateBufferWithProperties"), before);
	cl.clReleaseMemObject(mem);
	climport_free(address);
	opaque_close();
}

TEST(one_root,
     "Imports of parts of an allocation share one buffer of the driver, until it is freed.")
{
	unsigned long before;
	unsigned char *p;
	void *address;
	cl_mem a, b;
	long live;

	opaque_reset();
	fixture_open();
	cl.clReleaseMemObject(
		fixture_import_host(0, pages_map(1), PAGE)); /* the self-test has been */
	EXPECT_EQ(climport_alloc(CLIMPORT_HOST, 16 * PAGE, 0, uuid, &address), 0);
	live = stub_live(STUB_MEM);
	before = stub_calls("clCreateBufferWithProperties");
	p = address;
	a = fixture_import_host(0, p, PAGE);
	b = fixture_import_host(0, p + PAGE, 2 * PAGE);
	EXPECT_EQ(stub_calls("clCreateBufferWithProperties") - before, 1);
	p[0] = 1;
	p[PAGE] = 2;
	fixture_increment(a);
	fixture_increment(b);
	EXPECT(p[0] == 2 && p[PAGE] == 3);
	cl.clReleaseMemObject(a);
	cl.clReleaseMemObject(b);
	cl.clReleaseMemObject(fixture_import_host(0, p + 3 * PAGE, PAGE));
	EXPECT_EQ(stub_calls("clCreateBufferWithProperties") - before, 1);
	live++;
	EXPECT(process_settles(are_objects, &live));
	climport_free(address);
	live--;
	EXPECT(process_settles(are_objects, &live));
	opaque_close();
}

TEST(flags_apart, "Imports with other flags have another buffer.")
{
	void *address;
	cl_mem a, b;

	opaque_reset();
	fixture_open();
	EXPECT_EQ(climport_alloc(CLIMPORT_HOST, 2 * PAGE, 0, uuid, &address), 0);
	a = fixture_import_host(CL_MEM_READ_WRITE, address, PAGE);
	b = fixture_import_host(CL_MEM_READ_ONLY, address, PAGE);
	EXPECT_EQ(opaque_query_size(a, CL_MEM_FLAGS), CL_MEM_READ_WRITE);
	EXPECT_EQ(opaque_query_size(b, CL_MEM_FLAGS), CL_MEM_READ_ONLY);
	cl.clReleaseMemObject(a);
	cl.clReleaseMemObject(b);
	climport_free(address);
	opaque_close();
}

TEST(many_roots,
     "Of many allocations the driver's buffers are given up, the least recently used first.")
{
	enum { COUNT = 70, KEPT = 64 };
	void *address[COUNT];
	unsigned long before;
	long live;

	opaque_reset();
	fixture_open();
	cl.clReleaseMemObject(fixture_import_host(0, pages_map(1), PAGE));
	live = stub_live(STUB_MEM);
	for (int i = 0; i < COUNT; i++) {
		EXPECT_EQ(climport_alloc(CLIMPORT_HOST, 2 << 20, 0, uuid, &address[i]), 0);
		cl.clReleaseMemObject(fixture_import_host(0, address[i], PAGE));
	}
	EXPECT_EQ(stub_live(STUB_MEM), live + KEPT);
	before = stub_calls("clCreateBufferWithProperties");
	cl.clReleaseMemObject(fixture_import_host(0, address[COUNT - 1], PAGE));
	cl.clReleaseMemObject(fixture_import_host(0, address[COUNT - KEPT], PAGE));
	EXPECT_EQ(stub_calls("clCreateBufferWithProperties"), before);
	cl.clReleaseMemObject(fixture_import_host(0, address[0], PAGE));
	EXPECT_EQ(stub_calls("clCreateBufferWithProperties"), before + 1);
	for (int i = 0; i < COUNT; i++)
		climport_free(address[i]);
	EXPECT_EQ(stub_live(STUB_MEM), live);
	opaque_close();
}

TEST(context_retained, "A context that lives on after a release goes on as before.")
{
	unsigned char *p;
	void *address;
	cl_mem mem;

	open_caching();
	p = pages_map(1);
	mem = fixture_import_host(0, p, PAGE);
	fixture_increment(mem);
	EXPECT_EQ(climport_alloc(CLIMPORT_HOST, PAGE, 0, uuid, &address), 0);
	cl.clReleaseMemObject(fixture_import_host(0, address, PAGE));
	EXPECT_EQ(cl.clRetainContext(fix.context), CL_SUCCESS);
	EXPECT_EQ(cl.clReleaseContext(fix.context), CL_SUCCESS);
	p[0] = 40;
	fixture_increment(mem);
	EXPECT_EQ(p[0], 41);
	cl.clReleaseMemObject(mem);
	mem = fixture_import_host(0, address, PAGE);
	fixture_increment(mem);
	cl.clReleaseMemObject(mem);
	climport_free(address);
	opaque_close();
}

TEST(device_memory, "A device's memory goes in by the dma-buf that was made of it.")
{
	struct climport_dmabuf d;
	unsigned char *memory;
	void *address;
	cl_mem mem;
	cl_int err;

	opaque_reset();
	fixture_open();
	EXPECT_EQ(climport_alloc(CLIMPORT_DEVICE, 8192, 0, uuid, &address), 0);
	EXPECT_EQ(climport_export_dmabuf(address, 8192, 0, &d), 0);
	mem = fixture_import_dmabuf(d.fd, 8192);
	close(d.fd);
	memory = fake_cuda_memory((uintptr_t)address);
	memory[0] = 30;
	fixture_increment(mem);
	EXPECT_EQ(memory[0], 31);
	cl.clReleaseMemObject(mem);
	climport_free(address);
	(void)err;
	opaque_close();
}

TEST(mapped_dma_buf,
     "A dma-buf goes in by its CPU mapping, and is refreshed, whoever keeps it consistent.")
{
	static const char *const versions[] = { "1.0.0", "1.1.0" };

	for (int v = 0; v < 2; v++) {
		struct fake_vulkan *vk = opaque_reset();
		unsigned char *seen;
		cl_mem mem;
		int fd;

		vk->gpu[0].no_dmabuf = true;
		stub_set(STUB_OPAQUE_CACHED, 1);
		setenv("CLIMPORT_VERSION", versions[v], 1);
		fixture_open();
		fd = fake_dmabuf_create("frame", PAGE);
		seen = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		EXPECT(seen != MAP_FAILED);
		mem = fixture_import_dmabuf(fd, PAGE);
		close(fd);
		stub_trace_clear();
		for (int i = 0; i < 4; i++) {
			seen[0] = 30 * i;
			fixture_increment(mem);
			EXPECT_EQ(seen[0], 30 * i + 1);
		}
		EXPECT_EQ(stub_trace_count("sync START"), v == 0 ? 4 : 0);
		cl.clReleaseMemObject(mem);
		munmap(seen, PAGE);
		unsetenv("CLIMPORT_VERSION");
		opaque_close();
	}
}

TEST(not_at_page, "An aligned address within a page looks like the root buffer that it is not.")
{
	unsigned char *p;
	cl_mem mem, sub;

	open_caching();
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
	opaque_close();
}

static void CL_CALLBACK opaque_trace_destroyed(cl_mem mem, void *unused)
{
	(void)mem;
	(void)unused;
	stub_trace("destroyed import");
}

TEST(destructor_of_part,
     "The import's destructor callback comes when no kernel uses a part of it any more.")
{
	cl_kernel kernel;
	cl_mem mem, sub;
	cl_event go;

	open_caching();
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
	opaque_close();
	EXPECT_EQ(stub_trace_count("destroyed import"), 1);
}

TEST(sub_buffer_errors, "Sub-buffers of such an import end where it ends.")
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
	opaque_close();
}

TEST(sub_buffer_beyond,
     "A sub-buffer ends where the import ends also if the import is the driver's own buffer.")
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
	opaque_close();
}

TEST(unaligned, "Finer alignment is refused, with the alignment in the message.")
{
	unsigned char *p;

	opaque_reset();
	fixture_open();
	p = pages_map(1);
	EXPECT_EQ(fixture_import_error(fix.context, 0, NULL, p + 1, 100), CL_INVALID_OPERATION);
	EXPECT(strstr(fix.notice, "multiples of 128 bytes"));
	opaque_close();
}

TEST(copying_driver, "Where the driver copies, nothing is reported and imports are refused.")
{
	opaque_reset();
	stub_set(STUB_OPAQUE_COPIES, 1);
	stub_set(STUB_COPYING, 1);
	fixture_open();
	EXPECT(!opaque_device_reports("cl_arm_import_memory"));
	EXPECT_EQ(fixture_import_error(fix.context, 0, NULL, pages_map(1), PAGE),
		  CL_INVALID_PROPERTY);
	opaque_close();
}

TEST(vulkan_refuses,
     "Where Vulkan refuses, only CUDA's memory goes in; other memory is refused with the reason.")
{
	struct fake_vulkan *vk = opaque_reset();
	void *address;
	cl_mem mem;

	vk->fail_name = "vkAllocateMemory";
	vk->fail_result = -1000072003; /* VK_ERROR_INVALID_EXTERNAL_HANDLE */
	vk->fail_times = 1u << 30;
	vk->matched = 0;
	vk->fail_call = 1;
	fixture_open();
	EXPECT(opaque_device_reports("cl_arm_import_memory_host"));
	EXPECT_EQ(fixture_import_error(fix.context, 0, NULL, pages_map(1), PAGE),
		  CL_INVALID_OPERATION);
	EXPECT(strstr(fix.notice, "Vulkan refuses"));
	EXPECT_EQ(climport_alloc(CLIMPORT_HOST, PAGE, 0, uuid, &address), 0);
	mem = fixture_import_host(0, address, PAGE);
	fixture_increment(mem);
	cl.clReleaseMemObject(mem);
	climport_free(address);
	opaque_close();
}

TEST(images, "Images on opaque imports are refused: the driver would refuse the kernels.")
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
	opaque_close();
}

TEST(several_devices, "A context of several devices takes none: a descriptor is for one.")
{
	struct fake_vulkan *vk = opaque_reset();

	stub_set(STUB_DEVICES, 2);
	vk->gpu_count = 2;
	stub_uuid(1, vk->gpu[1].uuid);
	fixture_open();
	EXPECT_EQ(fixture_import_error(fix.context, 0, NULL, pages_map(1), PAGE),
		  CL_INVALID_OPERATION);
	vk->gpu_count = 1;
	opaque_close();
}

TEST(remembered, "The self-test runs once for a device and driver, not in each program.")
{
	struct fake_vulkan *vk = opaque_reset();
	unsigned int imports;

	fixture_open();
	EXPECT(opaque_device_reports("cl_arm_import_memory_host"));
	EXPECT(vk->imports);
	fixture_close();
	imports = vk->imports;
	fixture_open(); /* another copy of the layer: as another program */
	EXPECT(opaque_device_reports("cl_arm_import_memory_host"));
	EXPECT_EQ(vk->imports, imports);
	opaque_close();
}

TEST(not_remembered, "Where the cache cannot be written, the self-test runs and all works.")
{
	cl_mem mem;

	opaque_reset();
	setenv("XDG_CACHE_HOME", "/proc/nothing", 1);
	fixture_open();
	mem = fixture_import_host(0, pages_map(1), PAGE);
	fixture_increment(mem);
	cl.clReleaseMemObject(mem);
	opaque_close();
}

static bool are_as_many(void *fds)
{
	return process_count_descriptors() <= *(int *)fds;
}

TEST(nothing_left, "A thousand imports leave no descriptor and no memory.")
{
	struct fake_vulkan *vk = open_caching();
	unsigned char *p = pages_map(4);
	cl_mem mem;
	int fds;

	mem = fixture_import_host(0, p, PAGE);
	fixture_increment(mem);
	cl.clReleaseMemObject(mem);
	EXPECT(process_settles(one_memory, vk)); /* what refreshes this context */
	fds = process_count_descriptors();
	for (int i = 0; i < 1000; i++) {
		mem = fixture_import_host(0, p + i % 3 * PAGE + i % 2 * ALIGN, PAGE);
		if (i % 50 == 0)
			fixture_increment(mem);
		cl.clReleaseMemObject(mem);
	}
	EXPECT(process_settles(are_as_many, &fds));
	EXPECT(process_settles(one_memory, vk));
	opaque_close();
	EXPECT_EQ(vk->memories, 0);
}

TEST(every_failure, "Whatever call of the driver fails, the import fails and nothing is left.")
{
	for (unsigned long n = 1;; n++) {
		struct fake_vulkan *vk = open_caching();
		unsigned char *p = pages_map(1);
		cl_int err;
		cl_mem mem;
		int fds, failed;

		cl.clReleaseMemObject(fixture_import_host(0, p, PAGE));
		fds = process_count_descriptors();
		stub_fail(NULL, n, CL_OUT_OF_RESOURCES);
		mem = fix.import(fix.context, 0, NULL, p + ALIGN, PAGE - ALIGN, &err);
		failed = stub_failed();
		stub_fail(NULL, 0, 0);
		EXPECT(!mem == !!err);
		if (mem)
			cl.clReleaseMemObject(mem);
		EXPECT(process_settles(are_as_many, &fds));
		opaque_close();
		EXPECT_EQ(vk->memories, 0);
		if (!failed)
			break;
	}
}

TEST(bad_descriptor,
     "A refusal by the driver, with an object and an error of its own, is an error.")
{
	struct fake_vulkan *vk = opaque_reset();
	cl_mem mem;
	int fds;

	fixture_open();
	mem = fixture_import_host(0, pages_map(1), PAGE);
	cl.clReleaseMemObject(mem);
	fds = process_count_descriptors();
	memset(vk->gpu[0].uuid, 1, 16); /* what it makes is for another device from now on */
	vk->gpu_count = 1;
	EXPECT_EQ(fixture_import_error(fix.context, 0, NULL, pages_map(1), PAGE),
		  CL_INVALID_OPERATION);
	EXPECT(process_settles(are_as_many, &fds));
	opaque_close();
}
