/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu.h"

#include <dlfcn.h>

struct gpu gpu;
struct session ours;

/* The kernels of the stub driver have equal names and arguments. */
static const char source[] =
	"kernel void vector_add(global uint *out, global const uint *a, global const uint *b)\n"
	"{ size_t i = get_global_id(0); out[i] = a[i] + b[i]; }\n"
	"kernel void increment(global uchar *a)\n"
	"{ a[get_global_id(0)]++; }\n";

static const char *gpu_platform_string(cl_platform_id platform, cl_platform_info name)
{
	static char text[256];

	text[0] = '\0';
	clGetPlatformInfo(platform, name, sizeof(text), text, NULL);
	return text;
}

static const char *gpu_device_string(cl_device_info name)
{
	static char text[8192];

	text[0] = '\0';
	clGetDeviceInfo(gpu.device, name, sizeof(text), text, NULL);
	return text;
}

static bool gpu_find_platform(const char *name)
{
	cl_platform_id platforms[16];
	cl_uint count = 0;

	clGetPlatformIDs(16, platforms, &count);
	for (cl_uint i = 0; i < count && i < 16; i++) {
		printf("# platform: %s\n", gpu_platform_string(platforms[i], CL_PLATFORM_NAME));
		if (!gpu.platform &&
		    strstr(gpu_platform_string(platforms[i], CL_PLATFORM_NAME), name))
			gpu.platform = platforms[i];
	}
	return gpu.platform;
}

static void gpu_read_device(void)
{
	cl_bool unified = CL_TRUE;
	cl_uint bits = 0;

	gpu.is_nvidia = strstr(gpu_platform_string(gpu.platform, CL_PLATFORM_NAME), "NVIDIA");
	gpu.has_uuid =
		!clGetDeviceInfo(gpu.device, CL_DEVICE_UUID_KHR, sizeof(gpu.uuid), gpu.uuid, NULL);
	clGetDeviceInfo(gpu.device, CL_DEVICE_HOST_UNIFIED_MEMORY, sizeof(unified), &unified, NULL);
	clGetDeviceInfo(gpu.device, CL_DEVICE_MEM_BASE_ADDR_ALIGN, sizeof(bits), &bits, NULL);
	gpu.align = bits / 8;
	gpu.is_opaque = !unified && strstr(gpu_device_string(CL_DEVICE_EXTENSIONS),
					   "cl_khr_external_memory_opaque_fd");
}

bool gpu_choose(const char *name)
{
	if (!gpu_find_platform(name)) {
		printf("# no platform has '%s' in its name\n", name);
		return false;
	}
	if (clGetDeviceIDs(gpu.platform, CL_DEVICE_TYPE_ALL, 1, &gpu.device, NULL)) {
		printf("# the platform has no device\n");
		return false;
	}
	gpu_read_device();
	gpu.import = (import_function)clGetExtensionFunctionAddressForPlatform(gpu.platform,
									       "clImportMemoryARM");
	if (!gpu.import)
		printf("# the platform has no clImportMemoryARM: does this OpenCL loader load "
		       "OPENCL_LAYERS?\n");
	return gpu.import;
}

void gpu_describe(void)
{
	Dl_info loader = { .dli_fname = "?" };

	dladdr((void *)&clGetPlatformIDs, &loader);
	printf("platform:    %s, %s\n", gpu_platform_string(gpu.platform, CL_PLATFORM_NAME),
	       gpu_device_string(CL_DEVICE_VERSION));
	printf("device:      %s\n", gpu_device_string(CL_DEVICE_NAME));
	printf("driver:      %s\n", gpu_device_string(CL_DRIVER_VERSION));
	printf("loader:      %s\n", loader.dli_fname);
	printf("alignment:   %zu bytes\n", gpu.align);
	printf("imports are: %s\n", gpu.is_opaque ? "opaque descriptors" : "host memory in place");
}

static void CL_CALLBACK gpu_keep_notice(const char *text, const void *data, size_t size, void *arg)
{
	struct session *s = arg;

	(void)data;
	(void)size;
	snprintf(s->notice, sizeof(s->notice), "%s", text);
}

void gpu_session_open(struct session *s)
{
	const cl_context_properties properties[] = { CL_CONTEXT_PLATFORM,
						     (cl_context_properties)gpu.platform, 0 };
	const char *text = source;
	cl_int err;

	s->notice[0] = '\0';
	s->context = clCreateContext(properties, 1, &gpu.device, gpu_keep_notice, s, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	s->queue = gpu_session_queue(s, 0);
	s->program = clCreateProgramWithSource(s->context, 1, &text, NULL, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	EXPECT_EQ(clBuildProgram(s->program, 1, &gpu.device, "", NULL, NULL), CL_SUCCESS);
}

void gpu_session_close(struct session *s)
{
	EXPECT_EQ(clFinish(s->queue), CL_SUCCESS);
	clReleaseProgram(s->program);
	clReleaseCommandQueue(s->queue);
	clReleaseContext(s->context);
}

cl_command_queue gpu_session_queue(const struct session *s, cl_command_queue_properties properties)
{
	const cl_queue_properties list[] = { CL_QUEUE_PROPERTIES, properties, 0 };
	cl_command_queue queue;
	cl_int err;

	queue = clCreateCommandQueueWithProperties(s->context, gpu.device, list, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	return queue;
}

static cl_mem gpu_check_mem(const struct session *s, cl_mem mem, cl_int err)
{
	if (err)
		printf("# %s\n", s->notice[0] ? s->notice : "no reason given");
	EXPECT_EQ(err, CL_SUCCESS);
	EXPECT(mem);
	return mem;
}

cl_mem gpu_import_host(struct session *s, void *memory, size_t size)
{
	cl_int err;
	cl_mem mem = gpu.import(s->context, CL_MEM_READ_WRITE, NULL, memory, size, &err);

	return gpu_check_mem(s, mem, err);
}

cl_mem gpu_import_dmabuf(struct session *s, const struct climport_dmabuf *dmabuf)
{
	cl_int err;
	cl_mem mem = climport_create_buffer(s->context, CL_MEM_READ_WRITE, NULL, dmabuf, &err);

	return gpu_check_mem(s, mem, err);
}

cl_mem gpu_create_native(const struct session *s, size_t size)
{
	cl_int err;
	cl_mem mem = clCreateBuffer(s->context, CL_MEM_READ_WRITE, size, NULL, &err);

	return gpu_check_mem(s, mem, err);
}

cl_mem gpu_create_part(cl_mem mem, size_t origin, size_t size)
{
	const cl_buffer_region region = { origin, size };
	cl_int err;
	cl_mem sub = clCreateSubBuffer(mem, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &err);

	return gpu_check_mem(&ours, sub, err);
}

cl_int gpu_import_error(cl_mem_flags flags, const cl_import_properties_arm *properties,
			void *memory, size_t size)
{
	cl_int err = CL_SUCCESS;
	cl_mem mem;

	ours.notice[0] = '\0';
	mem = gpu.import(ours.context, flags, properties, memory, size, &err);
	printf("# error %d: %s\n", err, ours.notice);
	EXPECT(!mem);
	return err;
}

bool gpu_notice_has(const char *text)
{
	return strstr(ours.notice, text);
}

void gpu_import_good(void)
{
	struct host h;
	unsigned char before[PAGE];
	cl_mem mem;

	host_alloc(&h, HOST_MMAP, PAGE);
	random_fill(h.seen, PAGE);
	memcpy(before, h.seen, PAGE);
	mem = gpu_import_host(&ours, h.memory, PAGE);
	gpu_increment(&ours, ours.queue, mem, PAGE, AT_ONCE, NULL);
	EXPECT_EQ(clFinish(ours.queue), CL_SUCCESS);
	EXPECT(is_added(h.seen, before, PAGE, 1));
	clReleaseMemObject(mem);
	host_free(&h);
}

static cl_int gpu_enqueue(const struct session *s, cl_command_queue queue, const char *name,
			  const cl_mem *mem, cl_uint args, size_t count, struct after after,
			  cl_event *event)
{
	cl_int err;
	cl_kernel kernel = clCreateKernel(s->program, name, &err);

	for (cl_uint i = 0; i < args && !err; i++)
		err = clSetKernelArg(kernel, i, sizeof(cl_mem), &mem[i]);
	if (!err)
		err = clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &count, NULL, after.count,
					     after.count ? after.events : NULL, event);
	if (kernel)
		clReleaseKernel(kernel);
	return err;
}

void gpu_add(const struct session *s, cl_command_queue queue, const cl_mem mem[3], size_t count,
	     struct after after, cl_event *event)
{
	EXPECT_EQ(gpu_enqueue(s, queue, "vector_add", mem, 3, count, after, event), CL_SUCCESS);
}

void gpu_increment(const struct session *s, cl_command_queue queue, cl_mem mem, size_t count,
		   struct after after, cl_event *event)
{
	EXPECT_EQ(gpu_enqueue(s, queue, "increment", &mem, 1, count, after, event), CL_SUCCESS);
}

cl_int gpu_increment_quietly(const struct session *s, cl_command_queue queue, cl_mem mem,
			     size_t count)
{
	cl_int err = gpu_enqueue(s, queue, "increment", &mem, 1, count, AT_ONCE, NULL);

	return err ? err : clFinish(queue);
}
