/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The real PoCL, under the loader, on fake dma-bufs: which commands the property
 * CL_IMPORT_DMA_BUF_DATA_CONSISTENCY_WITH_HOST_ARM brackets, in the version of CLIMPORT_VERSION.  Each
 * START and END notes the first byte of the memory: START has to come before the command's work, END
 * behind.  Also contexts of PoCL's sub-devices and of its two devices.
 */
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>
#include <CL/cl_ext.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fake_dmabuf.h"
#include "harness.h"

#define SIZE 8192
#define NAME "pocl"

enum { MAX_NOTES = 256 };

/* A START or END of the dma-buf. */
struct sync_note {
	bool is_end;
	unsigned char value; /* the first byte of the memory, at the time */
};

static struct sync_note notes[MAX_NOTES]; /* with the variables below: under notes_lock */
static size_t num_notes, num_cleans;
static volatile unsigned char *seen;
static pthread_mutex_t notes_lock = PTHREAD_MUTEX_INITIALIZER;

static void notes_add(const char *edge, const char *name)
{
	pthread_mutex_lock(&notes_lock);
	if (seen && !strcmp(name, NAME) && !strcmp(edge, "CLEAN"))
		num_cleans++;
	else if (seen && !strcmp(name, NAME) && num_notes < MAX_NOTES)
		notes[num_notes++] = (struct sync_note){ !strcmp(edge, "END"), *seen };
	pthread_mutex_unlock(&notes_lock);
}

static size_t notes_count(bool is_end)
{
	size_t count = 0;

	pthread_mutex_lock(&notes_lock);
	for (size_t i = 0; i < num_notes; i++)
		count += notes[i].is_end == is_end;
	pthread_mutex_unlock(&notes_lock);
	return count;
}

static void notes_watch(volatile unsigned char *memory)
{
	pthread_mutex_lock(&notes_lock);
	seen = memory;
	num_notes = num_cleans = 0;
	pthread_mutex_unlock(&notes_lock);
}

/* One START, which saw @before, and one END, which saw @behind; or neither.  What is in cache is written back first. */
static void notes_expect(bool is_bracketed, unsigned char before, unsigned char behind)
{
	EXPECT_EQ(num_cleans, is_bracketed);
	EXPECT_EQ(notes_count(false), is_bracketed);
	EXPECT_EQ(notes_count(true), is_bracketed);
	if (!is_bracketed)
		return;
	EXPECT(!notes[0].is_end && notes[1].is_end);
	EXPECT_EQ(notes[0].value, before);
	EXPECT_EQ(notes[1].value, behind);
}

/* PoCL's device of several threads, and the device basic, where PoCL has both. */
static struct real {
	cl_platform_id platform;
	cl_device_id device, basic;
	cl_device_id ids[2]; /* of the context */
	cl_uint count;
	cl_context context;
	cl_command_queue queues[2];
	cl_program program;
	char notice[256];
	int fd;
	unsigned char *bytes;
	cl_mem mem;
} real;

typedef cl_mem(CL_API_CALL *import_fn)(cl_context, cl_mem_flags, const cl_import_properties_arm *,
				       void *, size_t, cl_int *);

static import_fn real_import_function(void)
{
	import_fn import = (import_fn)clGetExtensionFunctionAddressForPlatform(real.platform,
									       "clImportMemoryARM");

	EXPECT(import);
	return import;
}

static cl_platform_id real_find_platform(void)
{
	cl_platform_id platforms[16];
	cl_uint count = 0;
	char name[128];

	clGetPlatformIDs(16, platforms, &count);
	for (cl_uint i = 0; i < count && i < 16; i++)
		if (!clGetPlatformInfo(platforms[i], CL_PLATFORM_NAME, sizeof(name), name, NULL) &&
		    strstr(name, "Portable Computing Language"))
			return platforms[i];
	test_skip("PoCL is not installed");
}

static void real_find_devices(void)
{
	cl_device_id ids[8];
	cl_uint count = 0;
	char name[256];

	setenv("OPENCL_LAYERS", getenv("TEST_LAYER") ? getenv("TEST_LAYER") : LAYER_PATH, 1);
	setenv("POCL_DEVICES", "pthread basic", 1);
	memset(&real, 0, sizeof(real));
	fake_dmabuf_reset();
	fake_dmabuf_observe(notes_add);
	real.platform = real_find_platform();
	EXPECT_EQ(clGetDeviceIDs(real.platform, CL_DEVICE_TYPE_ALL, 8, ids, &count), CL_SUCCESS);
	for (cl_uint i = 0; i < count; i++) {
		EXPECT_EQ(clGetDeviceInfo(ids[i], CL_DEVICE_NAME, sizeof(name), name, NULL),
			  CL_SUCCESS);
		if (!strncmp(name, "basic", 5))
			real.basic = ids[i];
		else
			real.device = ids[i];
	}
	if (!real.device)
		test_skip("PoCL has the device basic alone");
}

static void CL_CALLBACK real_note(const char *message, const void *data, size_t size,
				  void *user_data)
{
	(void)data;
	(void)size;
	snprintf(user_data, sizeof(real.notice), "%s", message);
}

static void real_create_context(cl_uint count, const cl_device_id *ids)
{
	const char *source = "kernel void add(global uchar *a) { a[get_global_id(0)]++; }";
	cl_int err;

	real.count = count;
	memcpy(real.ids, ids, count * sizeof(ids[0]));
	real.context = clCreateContext(NULL, count, ids, real_note, real.notice, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	for (cl_uint i = 0; i < count; i++) {
		real.queues[i] = clCreateCommandQueue(real.context, ids[i], 0, &err);
		EXPECT_EQ(err, CL_SUCCESS);
	}
	real.program = clCreateProgramWithSource(real.context, 1, &source, NULL, &err);
	EXPECT_EQ(clBuildProgram(real.program, count, ids, "", NULL, NULL), CL_SUCCESS);
}

static void real_create_dmabuf(void)
{
	real.fd = fake_dmabuf_create(NAME, SIZE);
	real.bytes = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, real.fd, 0);
	EXPECT(real.bytes != MAP_FAILED);
}

static void real_import(const cl_import_properties_arm *properties)
{
	cl_int err = 1;

	real.mem = real_import_function()(real.context, 0, properties, &real.fd, SIZE, &err);
	if (err)
		printf("# %s\n", real.notice);
	EXPECT_EQ(err, CL_SUCCESS);
}

/* A context of one device, and an import of a dma-buf, whose first byte is 1. */
static void real_open(const cl_import_properties_arm *properties)
{
	real_find_devices();
	real_create_context(1, &real.device);
	real_create_dmabuf();
	real_import(properties);
	real.bytes[0] = 1;
	notes_watch(real.bytes);
}

static void real_close(void)
{
	notes_watch(NULL);
	if (real.mem)
		EXPECT_EQ(clReleaseMemObject(real.mem), CL_SUCCESS);
	clReleaseProgram(real.program);
	for (cl_uint i = 0; i < real.count; i++)
		clReleaseCommandQueue(real.queues[i]);
	clReleaseContext(real.context);
	if (real.bytes) {
		munmap(real.bytes, SIZE);
		close(real.fd);
	}
	EXPECT_EQ(fake_dmabuf_open_brackets(), 0);
}

/* A kernel that adds 1 to the first byte of @mem, without waiting. */
static void real_add(cl_uint queue, cl_mem mem, cl_event *event)
{
	const size_t one = 1;
	cl_int err;
	cl_kernel kernel = clCreateKernel(real.program, "add", &err);

	EXPECT_EQ(err, CL_SUCCESS);
	EXPECT_EQ(clSetKernelArg(kernel, 0, sizeof(mem), &mem), CL_SUCCESS);
	EXPECT_EQ(clEnqueueNDRangeKernel(real.queues[queue], kernel, 1, NULL, &one, NULL, 0, NULL,
					 event),
		  CL_SUCCESS);
	clReleaseKernel(kernel);
}

static bool is_1_1(void)
{
	const char *version = getenv("CLIMPORT_VERSION");

	return version && !strcmp(version, "1.1.0");
}

#define DMA_BUF CL_IMPORT_TYPE_ARM, CL_IMPORT_TYPE_DMA_BUF_ARM
#define CONSISTENCY CL_IMPORT_DMA_BUF_DATA_CONSISTENCY_WITH_HOST_ARM

/* The property, and the default: CL_TRUE in 1.0.0, CL_FALSE in 1.1.0. */
static const struct consistency {
	const char *name;
	cl_import_properties_arm properties[6];
} consistencies[] = {
	{ "default", { DMA_BUF } },
	{ "true", { DMA_BUF, CONSISTENCY, CL_TRUE } },
	{ "true_first", { CONSISTENCY, CL_TRUE, DMA_BUF } },
	{ "false", { DMA_BUF, CONSISTENCY, CL_FALSE } },
};

TEST_EACH(kernel, struct consistency, consistencies,
	  "A kernel has one START before and one END behind, whatever the property says.")
{
	real_open(row->properties);
	real_add(0, real.mem, NULL);
	EXPECT_EQ(clFinish(real.queues[0]), CL_SUCCESS);
	EXPECT_EQ(real.bytes[0], 2);
	notes_expect(true, 1, 2);
	real_close();
}

TEST_EACH(event, struct consistency, consistencies,
	  "The event of a kernel completes behind the END.")
{
	real_open(row->properties);
	for (unsigned char i = 1; i < 4; i++) {
		cl_event done;

		notes_watch(real.bytes);
		real_add(0, real.mem, &done);
		EXPECT_EQ(clWaitForEvents(1, &done), CL_SUCCESS);
		notes_expect(true, i, i + 1);
		clReleaseEvent(done);
	}
	real_close();
}

TEST_EACH(part, struct consistency, consistencies,
	  "A kernel on a sub-buffer is bracketed as on the import.")
{
	const cl_buffer_region region = { 4096, 4096 };
	cl_int err;
	cl_mem part;

	real_open(row->properties);
	part = clCreateSubBuffer(real.mem, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	notes_watch(real.bytes + region.origin);
	real_add(0, part, NULL);
	EXPECT_EQ(clFinish(real.queues[0]), CL_SUCCESS);
	notes_expect(true, 0, 1);
	clReleaseMemObject(part);
	real_close();
}

TEST_EACH(row_of_kernels, struct consistency, consistencies,
	  "Kernels in a row share brackets, and the last END is behind the last kernel.")
{
	enum { KERNELS = 20 };
	size_t starts;

	real_open(row->properties);
	for (int i = 0; i < KERNELS; i++)
		real_add(0, real.mem, NULL);
	EXPECT_EQ(clFinish(real.queues[0]), CL_SUCCESS);
	EXPECT_EQ(real.bytes[0], 1 + KERNELS);
	starts = notes_count(false);
	EXPECT_EQ(notes_count(true), starts);
	EXPECT(starts > 0 && starts <= KERNELS);
	EXPECT_EQ(notes[0].value, 1);
	EXPECT_EQ(notes[2 * starts - 1].value, 1 + KERNELS);
	real_close();
}

static cl_int real_read(void)
{
	unsigned char byte = 0;
	cl_int err =
		clEnqueueReadBuffer(real.queues[0], real.mem, CL_TRUE, 0, 1, &byte, 0, NULL, NULL);

	if (!err)
		EXPECT_EQ(byte, 1);
	return err;
}

static cl_int real_write(void)
{
	static const unsigned char byte = 7; /* also when the command runs */

	return clEnqueueWriteBuffer(real.queues[0], real.mem, CL_TRUE, 0, 1, &byte, 0, NULL, NULL);
}

static cl_int real_write_rect(void)
{
	const size_t origin[3] = { 0 }, region[3] = { 1, 1, 1 };
	static const unsigned char byte = 7; /* also when the command runs */

	return clEnqueueWriteBufferRect(real.queues[0], real.mem, CL_FALSE, origin, origin, region,
					0, 0, 0, 0, &byte, 0, NULL, NULL);
}

static cl_int real_fill(void)
{
	static const unsigned char byte = 7; /* also when the command runs */

	return clEnqueueFillBuffer(real.queues[0], real.mem, &byte, 1, 0, 1, 0, NULL, NULL);
}

/* From or to a buffer of the driver's, whose first byte is 7. */
static cl_int real_copy(bool is_source)
{
	unsigned char byte = 7;
	cl_int err;
	cl_mem other = clCreateBuffer(real.context, CL_MEM_COPY_HOST_PTR, 1, &byte, &err);

	EXPECT_EQ(err, CL_SUCCESS);
	err = clEnqueueCopyBuffer(real.queues[0], is_source ? real.mem : other,
				  is_source ? other : real.mem, 0, 0, 1, 0, NULL, NULL);
	clReleaseMemObject(other);
	return err;
}

static cl_int real_copy_from(void)
{
	return real_copy(true);
}

static cl_int real_copy_to(void)
{
	return real_copy(false);
}

/* @value: of the first byte behind the command. */
static const struct host_command {
	const char *name;
	cl_int (*run)(void);
	unsigned char value;
} host_commands[] = {
	{ "read", real_read, 1 },
	{ "write", real_write, 7 },
	{ "write_rect", real_write_rect, 7 },
	{ "fill", real_fill, 7 },
	{ "copy_from", real_copy_from, 1 },
	{ "copy_to", real_copy_to, 7 },
};

TEST_EACH_PAIR(host_command, struct host_command, host_commands, struct consistency, consistencies,
	       "In version 1.1.0 the host's commands are bracketed as kernels; in 1.0.0 they are "
	       "refused, without a START.")
{
	real_open(column->properties);
	EXPECT_EQ(row->run(), is_1_1() ? CL_SUCCESS : CL_INVALID_OPERATION);
	EXPECT_EQ(clFinish(real.queues[0]), CL_SUCCESS);
	EXPECT_EQ(real.bytes[0], is_1_1() ? row->value : 1);
	notes_expect(is_1_1(), 1, row->value);
	real_close();
}

TEST_EACH(map, struct consistency, consistencies,
	  "In version 1.1.0 a map begins access, and the unmap ends it; in 1.0.0 there is no map.")
{
	unsigned char *mapped;
	cl_int err = 1;

	real_open(row->properties);
	mapped = clEnqueueMapBuffer(real.queues[0], real.mem, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE,
				    0, SIZE, 0, NULL, NULL, &err);
	EXPECT_EQ(err, is_1_1() ? CL_SUCCESS : CL_INVALID_OPERATION);
	if (mapped) {
		EXPECT_EQ(notes_count(false), 1);
		EXPECT_EQ(notes_count(true), 0);
		EXPECT_EQ(mapped[0], 1);
		mapped[0] = 9;
		EXPECT_EQ(clEnqueueUnmapMemObject(real.queues[0], real.mem, mapped, 0, NULL, NULL),
			  CL_SUCCESS);
		EXPECT_EQ(clFinish(real.queues[0]), CL_SUCCESS);
		EXPECT_EQ(real.bytes[0], 9);
	}
	notes_expect(mapped, 1, 9);
	real_close();
}

/*
 * Two sub-devices of the device, which stay.  A thread of PoCL 3.1 uses the sub-device of a command that has ended
 * for a moment longer, and dies if the program has released the sub-device, also without the layer.
 */
static const cl_device_id *real_partition(void)
{
	static cl_device_id parts[3]; /* an odd number of units leaves one */
	cl_device_partition_property halves[] = { CL_DEVICE_PARTITION_EQUALLY, 1, 0 };
	cl_uint units = 0, count = 0;

	if (parts[0])
		return parts;
	EXPECT_EQ(clGetDeviceInfo(real.device, CL_DEVICE_MAX_COMPUTE_UNITS, sizeof(units), &units,
				  NULL),
		  CL_SUCCESS);
	if (units < 2)
		test_skip("a device with one compute unit has no two sub-devices");
	halves[1] = units / 2;
	EXPECT_EQ(clCreateSubDevices(real.device, halves, 0, NULL, &count), CL_SUCCESS);
	EXPECT(count >= 2 && count <= 3);
	EXPECT_EQ(clCreateSubDevices(real.device, halves, count, parts, NULL), CL_SUCCESS);
	return parts;
}

TEST_EACH(sub_devices, struct consistency, consistencies,
	  "Kernels on each sub-device work on a dma-buf in place, each in its bracket.")
{
	real_find_devices();
	real_create_context(2, real_partition());
	real_create_dmabuf();
	real_import(row->properties);
	for (unsigned char i = 0; i < 4; i++) {
		notes_watch(real.bytes);
		real_add(i % 2, real.mem, NULL);
		EXPECT_EQ(clFinish(real.queues[i % 2]), CL_SUCCESS);
		notes_expect(true, i, i + 1);
	}
	EXPECT_EQ(real.bytes[0], 4);
	real_close();
}

TEST(two_devices, "In a context of PoCL's two devices host memory is used in place by both, and "
		  "dma-bufs are refused for the device basic.")
{
	unsigned char *memory;
	cl_device_id both[2];
	cl_int err = 1;
	cl_mem mem;

	real_find_devices();
	if (!real.basic)
		test_skip("PoCL has no device basic");
	both[0] = real.device;
	both[1] = real.basic;
	real_create_context(2, both);
	real_create_dmabuf();
	EXPECT(!real_import_function()(real.context, 0, consistencies[0].properties, &real.fd, SIZE,
				       &err));
	EXPECT_EQ(err, CL_INVALID_PROPERTY);
	EXPECT(strstr(real.notice, "device 1 of the context"));
	memory = aligned_alloc(4096, SIZE);
	EXPECT(memory);
	memset(memory, 0, SIZE);
	mem = real_import_function()(real.context, 0, NULL, memory + 1, 1001, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	for (unsigned char i = 0; i < 4; i++) {
		memory[1] = 10 * i;
		real_add(i % 2, mem, NULL);
		EXPECT_EQ(clFinish(real.queues[i % 2]), CL_SUCCESS);
		EXPECT_EQ(memory[1], 10 * i + 1);
	}
	clReleaseMemObject(mem);
	real_close();
	free(memory);
}
