/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "folder.h"

struct _cl_icd_dispatch cl;
struct fixture fix;

const cl_import_properties_arm fixture_dma_buf[] = { CL_IMPORT_TYPE_ARM, CL_IMPORT_TYPE_DMA_BUF_ARM,
						     0 };

static pthread_mutex_t notice_lock = PTHREAD_MUTEX_INITIALIZER; /* fix.notices and fix.notice */
static long alive_before;
static char last_copy[64]; /* the copy's file stays, for the sanitizers' reports */

static const char source[] =
	"kernel void increment(global uchar *a) { a[get_global_id(0)]++; }"
	"kernel void vector_add(global uint *out, global const uint *a, global const uint *b) {}"
	"kernel void copy(global const uchar *from, global uchar *to, uint size) {}"
	"kernel void image_to_buffer(read_only image2d_t from, global uchar *to, uint w, uint h) {}"
	"kernel void buffer_to_image(global const uchar *from, write_only image2d_t to, uint w, "
	"uint h) {}"
	"kernel void image1d_to_buffer(read_only image1d_buffer_t from, global uchar *to, uint w) "
	"{}";

static void layer_remove_copy(void)
{
	if (*last_copy)
		unlink(last_copy);
	*last_copy = 0;
}

/*
 * The environment variable TEST_LAYER names a layer to test instead of the layer just built.  A
 * developer sets TEST_LAYER to a faulty layer to see the tests fail.
 */
static const char *fixture_layer_path(void)
{
	const char *path = getenv("TEST_LAYER");

	return path ? path : LAYER_PATH;
}

/*
 * Each copy of the library's file has a new inode, so dlopen() loads each copy as a separate
 * library with separate variables.
 */
void *layer_copy(void)
{
	int from = open(fixture_layer_path(), O_RDONLY | O_CLOEXEC), to;
	static bool registered;
	struct stat st;
	void *handle;

	if (!registered)
		atexit(layer_remove_copy);
	registered = true;
	layer_remove_copy();
	folder_path("layer-XXXXXX", last_copy, sizeof(last_copy));
	to = mkstemp(last_copy);
	EXPECT(from >= 0 && to >= 0 && !fstat(from, &st));
	EXPECT_EQ(sendfile(to, from, NULL, (size_t)st.st_size), st.st_size);
	close(from);
	close(to);
	handle = dlopen(last_copy, RTLD_NOW | RTLD_LOCAL);
	if (!handle)
		printf("# %s\n", dlerror());
	EXPECT(handle);
	return handle;
}

/* Merges the tables as the loaders do: an empty slot of the layer gets the target's function. */
void layer_init(void *copy, const struct _cl_icd_dispatch *target, struct _cl_icd_dispatch *merged)
{
	pfn_clInitLayer init = (pfn_clInitLayer)dlsym(copy, "clInitLayer");
	const struct _cl_icd_dispatch *layer;
	void *ours[TABLE_ENTRIES], *below[TABLE_ENTRIES];
	cl_uint count = 0;

	EXPECT(init);
	EXPECT_EQ(init(TABLE_ENTRIES, target, &count, &layer), CL_SUCCESS);
	EXPECT(count <= TABLE_ENTRIES);
	memcpy(ours, layer, count * sizeof(void *));
	memcpy(below, target, sizeof(below));
	for (size_t i = 0; i < TABLE_ENTRIES; i++)
		if (i >= count || !ours[i])
			ours[i] = below[i];
	memcpy(merged, ours, sizeof(ours));
}

/* The function's name stands before the sentence, and not in front of it once more. */
static void fixture_expect_one_prefix(const char *message)
{
	const size_t prefix = strcspn(message, ":") + strlen(": ");

	if (strlen(message) >= 2 * prefix && !strncmp(message, message + prefix, prefix))
		test_fail(__FILE__, __LINE__, message, 2, 1);
}

static void CL_CALLBACK fixture_note(const char *message, const void *data, size_t size,
				     void *user_data)
{
	(void)data;
	(void)size;
	(void)user_data;
	fixture_expect_one_prefix(message);
	pthread_mutex_lock(&notice_lock);
	fix.notices++;
	snprintf(fix.notice, sizeof(fix.notice), "%s", message);
	pthread_mutex_unlock(&notice_lock);
}

void fixture_reset(void)
{
	stub_reset();
	fake_dmabuf_reset();
	unsetenv("CLIMPORT_VERSION");
	unsetenv("CLIMPORT_IMAGE2D_FROM_BUFFER");
	unsetenv("CLIMPORT_DISABLE");
	unsetenv("CLIMPORT_VERIFY");
	/* A probe process would load a second stub, and kept results would ignore stub_set(). */
	setenv("CLIMPORT_PROBE", "here", 1);
	setenv("XDG_CACHE_HOME", "/proc/nothing", 1);
	memset(&fix, 0, sizeof(fix));
	pages_free();
	alive_before = stub_live_all();
}

static void fixture_open_program(void)
{
	const char *text = source;
	cl_int err;

	fix.program = cl.clCreateProgramWithSource(fix.context, 1, &text, NULL, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	EXPECT_EQ(cl.clBuildProgram(fix.program, 0, NULL, NULL, NULL, NULL), CL_SUCCESS);
}

void fixture_open(void)
{
	cl_int err;

	layer_init(layer_copy(), stub_get(STUB_CL12) ? &stub_dispatch_12 : &stub_dispatch, &cl);
	EXPECT_EQ(cl.clGetPlatformIDs(1, &fix.platform, NULL), CL_SUCCESS);
	EXPECT_EQ(cl.clGetDeviceIDs(fix.platform, CL_DEVICE_TYPE_ALL, 4, fix.device,
				    &fix.num_devices),
		  CL_SUCCESS);
	fix.context =
		cl.clCreateContext(NULL, fix.num_devices, fix.device, fixture_note, NULL, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	fix.queue = fixture_create_queue(CL_QUEUE_PROFILING_ENABLE);
	fixture_open_program();
	fix.import = (import_function)cl.clGetExtensionFunctionAddress("clImportMemoryARM");
	EXPECT(fix.import);
}

static bool fixture_is_clean(void *arg)
{
	(void)arg;
	return stub_live_all() <= alive_before && !fake_dmabuf_open_brackets();
}

static void fixture_print_left(void)
{
	static const char *const names[STUB_NUM_KINDS] = {
		"free",	   "platform", "device", "context", "queue",	     "memory object",
		"sampler", "program",  "kernel", "event",   "command buffer"
	};

	for (int kind = STUB_CONTEXT; kind < STUB_NUM_KINDS; kind++)
		if (stub_live(kind))
			printf("# left: %ld x %s\n", stub_live(kind), names[kind]);
	printf("# left: %d open brackets\n", fake_dmabuf_open_brackets());
}

bool fixture_is_unmapped(void *arg)
{
	(void)arg;
	return !process_count_mappings("fake-dmabuf");
}

bool fixture_mapped_at_most(void *count)
{
	return process_count_mappings("fake-dmabuf") <= *(int *)count;
}

void fixture_release(void)
{
	cl.clReleaseProgram(fix.program);
	cl.clReleaseCommandQueue(fix.queue);
	cl.clReleaseContext(fix.context);
}

void fixture_close(void)
{
	bool clean;

	fixture_release();
	clean = process_settles(fixture_is_clean, NULL);
	if (!clean)
		fixture_print_left();
	EXPECT(clean);
}

cl_mem fixture_import_host(cl_mem_flags flags, void *memory, size_t size)
{
	cl_int err = 1;
	cl_mem mem = fix.import(fix.context, flags, NULL, memory, size, &err);

	if (err)
		printf("# %s\n", fix.notice);
	EXPECT_EQ(err, CL_SUCCESS);
	EXPECT(mem);
	return mem;
}

cl_mem fixture_import_dmabuf(int fd, size_t size)
{
	cl_int err = 1;
	cl_mem mem = fix.import(fix.context, CL_MEM_READ_WRITE, fixture_dma_buf, &fd, size, &err);

	if (err)
		printf("# %s\n", fix.notice);
	EXPECT_EQ(err, CL_SUCCESS);
	EXPECT(mem);
	return mem;
}

bool fixture_is_import(cl_mem mem)
{
	return cl.clEnqueueFillBuffer(fix.queue, mem, NULL, 0, 0, 4, 0, NULL, NULL) ==
	       CL_INVALID_OPERATION;
}

bool fixture_device_reports(cl_device_id device, const char *begin)
{
	char text[512] = "";

	EXPECT_EQ(cl.clGetDeviceInfo(device, CL_DEVICE_EXTENSIONS, sizeof(text), text, NULL),
		  CL_SUCCESS);
	return strstr(text, begin);
}

cl_mem fixture_create_sub_buffer(cl_mem parent, size_t origin, size_t size)
{
	const cl_buffer_region region = { origin, size };
	cl_int err;
	cl_mem mem = cl.clCreateSubBuffer(parent, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &err);

	EXPECT_EQ(err, CL_SUCCESS);
	return mem;
}

cl_mem fixture_create_image(cl_mem_object_type type, cl_mem buffer, size_t width, size_t height,
			    size_t pitch)
{
	const cl_image_format format = { CL_RGBA, CL_UNSIGNED_INT8 };
	const cl_image_desc desc = {
		.image_type = type,
		.image_width = width,
		.image_height = height,
		.image_row_pitch = pitch,
		.mem_object = buffer,
	};
	cl_int err;
	cl_mem mem = cl.clCreateImage(fix.context, CL_MEM_READ_WRITE, &format, &desc, NULL, &err);

	EXPECT_EQ(err, CL_SUCCESS);
	return mem;
}

cl_mem fixture_try_image(cl_mem_flags flags, cl_mem buffer, cl_int *err)
{
	const cl_image_format format = { CL_RGBA, CL_UNSIGNED_INT8 };
	const cl_image_desc desc = {
		.image_type = CL_MEM_OBJECT_IMAGE2D,
		.image_width = 4,
		.image_height = 4,
		.image_row_pitch = 64,
		.mem_object = buffer,
	};

	return cl.clCreateImage(fix.context, flags, &format, &desc, NULL, err);
}

cl_int fixture_import_error(cl_context context, cl_mem_flags flags,
			    const cl_import_properties_arm *properties, void *memory, size_t size)
{
	cl_int err = 1;

	EXPECT(!fix.import(context, flags, properties, memory, size, &err));
	EXPECT(err < 0);
	return err;
}

cl_kernel fixture_create_kernel(const char *name)
{
	cl_int err;
	cl_kernel kernel = cl.clCreateKernel(fix.program, name, &err);

	EXPECT_EQ(err, CL_SUCCESS);
	return kernel;
}

cl_kernel fixture_create_increment(cl_mem mem)
{
	cl_kernel kernel = fixture_create_kernel("increment");

	EXPECT_EQ(cl.clSetKernelArg(kernel, 0, sizeof(mem), &mem), CL_SUCCESS);
	return kernel;
}

cl_int fixture_enqueue(cl_command_queue queue, cl_kernel kernel, cl_uint num, const cl_event *list,
		       cl_event *event)
{
	const size_t one = 1;

	return cl.clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &one, NULL, num, list, event);
}

void fixture_increment(cl_mem mem)
{
	cl_kernel kernel = fixture_create_increment(mem);

	EXPECT_EQ(fixture_enqueue(fix.queue, kernel, 0, NULL, NULL), CL_SUCCESS);
	EXPECT_EQ(cl.clFinish(fix.queue), CL_SUCCESS);
	cl.clReleaseKernel(kernel);
}

cl_command_queue fixture_create_queue(cl_command_queue_properties properties)
{
	cl_int err;
	cl_command_queue queue =
		cl.clCreateCommandQueue(fix.context, fix.device[0], properties, &err);

	EXPECT_EQ(err, CL_SUCCESS);
	return queue;
}

cl_int fixture_event_status(cl_event event)
{
	cl_int status = 99;

	EXPECT_EQ(cl.clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status),
				    &status, NULL),
		  CL_SUCCESS);
	return status;
}
