/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that uses much of the extension, on a driver that may misbehave (layer.c):
 *
 *	program import|native [START|END N]
 *
 * Each call may fail.  No call may hang, crash, report success without having succeeded, or leave
 * descriptors behind.  A step ends at the first error.  If a step has no error, its data is
 * checked.
 *
 * "native" runs the steps on the driver's own buffers over the memory, so failures of "native" are
 * the driver's.  With an edge and a number, the Nth DMA_BUF_IOCTL_SYNC of the edge fails.
 *
 * Exit status: 0, 1 after a line with the failure, 3 if the SYNC was never called.
 */
#include <CL/cl_ext.h>
#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "fake_dmabuf.h"

enum { PAGE = 4096, SIZE = 4 * PAGE, WIDTH = 32, HEIGHT = 32, OBJECTS = 64 };

static const char source[] =
	"kernel void increment(global uchar *a) { a[get_global_id(0)]++; }\n"
	"kernel void copy(global const uchar *from, global uchar *to)\n"
	"{ to[get_global_id(0)] = from[get_global_id(0)]; }\n"
	"kernel void picture(read_only image2d_t from, global uchar4 *to)\n"
	"{ int2 at = (int2)(get_global_id(0), get_global_id(1));\n"
	"  to[at.y * get_global_size(0) + at.x] = convert_uchar4(read_imageui(from, at)); }\n";

static bool native;
static __typeof__(&clImportMemoryARM) import_memory;
static cl_device_id device;
static cl_context context;
static cl_command_queue in_order, out_of_order;
static cl_program program;
static unsigned char *host, *frame, *other; /* memory: malloc'ed, and of two dma-bufs */
static int frame_fd, other_fd;
static cl_mem of_host, of_frame, of_other;

static const char *step;
static bool failed; /* a call of the step returned an error */
static int errors;

/* The objects of the step, released at the step's end. */
static cl_event events[OBJECTS];
static cl_kernel kernels[OBJECTS];
static cl_mem mems[OBJECTS];
static int num_events, num_kernels, num_mems;

__attribute__((format(printf, 1, 2), noreturn)) static void step_fail(const char *format, ...)
{
	va_list args;

	printf("%s: ", step);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("\n");
	fflush(stdout);
	_exit(1);
}

static void *now_doing(const char *call)
{
	if (getenv("CHAOS_VERBOSE"))
		fprintf(stderr, "%s: %s\n", step, call);
	return NULL;
}

/* Whether the call @call succeeded.  After an error, the step ends. */
static bool step_check(const char *call, cl_int err)
{
	if (err > 0)
		step_fail("%s returns %d", call, err);
	if (err) {
		printf("%s: %.60s: error %d\n", step, call, err);
		failed = true;
		errors++;
	}
	return !err;
}

#define TRY(call)                             \
	do {                                  \
		now_doing(#call);             \
		if (!step_check(#call, call)) \
			return;               \
	} while (0)

/* Creates @object by a call with errcode_ret &err.  Success without an object fails the program. */
#define TRY_MAKE(object, call)                                          \
	do {                                                            \
		cl_int err = 1;                                         \
                                                                        \
		now_doing(#call);                                       \
		(object) = call;                                        \
		if (!step_check(#call, err)) {                          \
			(object) = NULL;                                \
			return;                                         \
		}                                                       \
		if (!(object))                                          \
			step_fail("%s: success, and no object", #call); \
	} while (0)

static void step_begin(const char *name)
{
	step = name;
	failed = false;
}

static void step_finish(void)
{
	while (num_events)
		clReleaseEvent(events[--num_events]);
	while (num_kernels)
		clReleaseKernel(kernels[--num_kernels]);
	while (num_mems)
		clReleaseMemObject(mems[--num_mems]);
}

/* Many programs ask for a GPU first.  PoCL returns an object together with the error. */
static void try_gpu(cl_platform_id platform)
{
	const cl_context_properties properties[] = { CL_CONTEXT_PLATFORM,
						     (cl_context_properties)platform, 0 };
	cl_int err = CL_SUCCESS;
	cl_context gpu = clCreateContextFromType(properties, CL_DEVICE_TYPE_GPU, NULL, NULL, &err);

	if (!err)
		clReleaseContext(gpu);
}

static void program_open_device(void)
{
	cl_platform_id platform;

	TRY(clGetPlatformIDs(1, &platform, NULL));
	TRY(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL));
	import_memory = (__typeof__(import_memory))clGetExtensionFunctionAddressForPlatform(
		platform, "clImportMemoryARM");
	if (!native && !import_memory)
		step_fail("no clImportMemoryARM: is OPENCL_LAYERS set?");
	try_gpu(platform);
	TRY_MAKE(context, clCreateContext(NULL, 1, &device, NULL, NULL, &err));
}

static void program_open_queues(void)
{
	const cl_queue_properties properties[] = { CL_QUEUE_PROPERTIES,
						   CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE |
							   CL_QUEUE_PROFILING_ENABLE,
						   0 };

	TRY_MAKE(in_order, clCreateCommandQueueWithProperties(context, device, NULL, &err));
	TRY_MAKE(out_of_order,
		 clCreateCommandQueueWithProperties(context, device, properties, &err));
}

static void program_build_kernels(void)
{
	const char *text = source;

	TRY_MAKE(program, clCreateProgramWithSource(context, 1, &text, NULL, &err));
	TRY(clBuildProgram(program, 1, &device, NULL, NULL, NULL));
}

static cl_mem program_import_memory(void *at, size_t size, cl_int *err)
{
	return native ? clCreateBuffer(context, CL_MEM_USE_HOST_PTR, size, at, err)
		      : import_memory(context, CL_MEM_READ_WRITE, NULL, at, size, err);
}

static cl_mem program_import_dmabuf(int fd, void *at, size_t size, cl_int *err)
{
	static const cl_import_properties_arm consistent[] = {
		CL_IMPORT_TYPE_ARM, CL_IMPORT_TYPE_DMA_BUF_ARM,
		CL_IMPORT_DMA_BUF_DATA_CONSISTENCY_WITH_HOST_ARM, CL_TRUE, 0
	};

	return native ? clCreateBuffer(context, CL_MEM_USE_HOST_PTR, size, at, err)
		      : import_memory(context, CL_MEM_READ_WRITE, consistent, &fd, size, err);
}

static void program_open_memory(void)
{
	TRY_MAKE(of_host, program_import_memory(host, SIZE, &err));
	TRY_MAKE(of_frame, program_import_dmabuf(frame_fd, frame, SIZE, &err));
	TRY_MAKE(of_other, program_import_dmabuf(other_fd, other, SIZE, &err));
}

static void program_close_memory(void)
{
	if (of_other)
		clReleaseMemObject(of_other);
	if (of_frame)
		clReleaseMemObject(of_frame);
	if (of_host)
		clReleaseMemObject(of_host);
	of_host = of_frame = of_other = NULL;
}

static void program_close_rest(void)
{
	if (program)
		clReleaseProgram(program);
	if (out_of_order)
		clReleaseCommandQueue(out_of_order);
	if (in_order)
		clReleaseCommandQueue(in_order);
	if (context)
		clReleaseContext(context);
}

static bool all_are(const unsigned char *memory, size_t size, unsigned char value)
{
	for (size_t i = 0; i < size; i++)
		if (memory[i] != value)
			return false;
	return true;
}

static void expect_all(const char *what, const unsigned char *memory, size_t size,
		       unsigned char value)
{
	for (size_t i = 0; i < size; i++)
		if (memory[i] != value)
			step_fail("%s: byte %zu is %d, expected %d, and all calls succeeded", what,
				  i, memory[i], value);
}

/* Enqueues a kernel with one or two arguments.  The kernel's event is the last of @events. */
static void program_enqueue(cl_command_queue queue, const char *name, cl_mem a, cl_mem b,
			    size_t size, cl_uint num_wait, const cl_event *wait)
{
	cl_kernel kernel;
	cl_event event = NULL;

	TRY_MAKE(kernel, clCreateKernel(program, name, &err));
	kernels[num_kernels++] = kernel;
	TRY(clSetKernelArg(kernel, 0, sizeof(a), &a));
	if (b)
		TRY(clSetKernelArg(kernel, 1, sizeof(b), &b));
	TRY(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &size, NULL, num_wait, wait, &event));
	if (!event)
		step_fail("%s is enqueued without an event", name);
	events[num_events++] = event;
}

static cl_event last_event(void)
{
	return events[num_events - 1];
}

static void check_event(cl_event event)
{
	cl_int status = 99;

	TRY(clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status,
			   NULL));
	if (status > CL_COMPLETE)
		step_fail("an event that was waited for has status %d", status);
	step_check("the event", status);
}

/* Waits for the last event.  On success, all events so far must be complete. */
static void wait_last(void)
{
	cl_event event = last_event();

	TRY(clWaitForEvents(1, &event));
	for (int i = 0; i < num_events && !failed; i++)
		check_event(events[i]);
}

/* Two kernels in a row on @mem. */
static void step_in_order(const char *name, cl_mem mem, unsigned char *memory)
{
	step_begin(name);
	memset(memory, 7, SIZE);
	program_enqueue(in_order, "increment", mem, NULL, SIZE, 0, NULL);
	if (!failed)
		program_enqueue(in_order, "increment", mem, NULL, SIZE, 0, NULL);
	if (!failed)
		wait_last();
	step_check("clFinish", clFinish(in_order));
	if (!failed)
		expect_all(name, memory, SIZE, 9);
	step_finish();
}

static void make_user_event(void)
{
	TRY_MAKE(events[num_events], clCreateUserEvent(context, &err));
	num_events++;
}

/* Copies host memory to a dma-buf and then to the other dma-buf, behind a user event. */
static void step_out_of_order(void)
{
	cl_event user = NULL;

	step_begin("out of order");
	memset(host, 21, SIZE);
	memset(frame, 0, SIZE);
	memset(other, 0, SIZE);
	make_user_event();
	if (failed)
		return step_finish();
	user = last_event();
	program_enqueue(out_of_order, "copy", of_host, of_frame, SIZE, 1, &user);
	if (!failed)
		program_enqueue(out_of_order, "copy", of_frame, of_other, SIZE, 1, &events[1]);
	if (!failed)
		clFlush(out_of_order);
	step_check("clSetUserEventStatus", clSetUserEventStatus(user, CL_COMPLETE));
	if (num_events > 2)
		wait_last();
	step_check("clFinish", clFinish(out_of_order));
	if (!failed)
		expect_all("the second copy", other, SIZE, 21);
	step_finish();
}

/* A command with a failed wait list does not run, and a wait for the command returns. */
static void step_failing_list(const char *name, cl_command_queue queue)
{
	cl_event user = NULL;

	step_begin(name);
	memset(frame, 33, SIZE);
	make_user_event();
	if (failed)
		return step_finish();
	user = last_event();
	program_enqueue(queue, "increment", of_frame, NULL, SIZE, 1, &user);
	if (!failed)
		program_enqueue(queue, "increment", of_frame, NULL, SIZE, 1, &events[1]);
	step_check("clSetUserEventStatus", clSetUserEventStatus(user, -77));
	if (num_events > 1) {
		cl_event event = last_event();
		cl_int err = clWaitForEvents(1, &event);

		if (!err)
			step_fail("clWaitForEvents succeeds for a command whose wait list failed");
	}
	clFinish(queue);
	if (!all_are(frame, SIZE, 33))
		step_fail("a command ran although its wait list failed");
	failed = false;
	step_finish();
}

/* Makes an image on a part of the dma-buf, and releases the part at once, as FFmpeg does. */
static void make_picture(void)
{
	const cl_image_format format = { CL_RGBA, CL_UNSIGNED_INT8 };
	const cl_buffer_region region = { PAGE, WIDTH * HEIGHT * 4 };
	cl_image_desc desc = { .image_type = CL_MEM_OBJECT_IMAGE2D,
			       .image_width = WIDTH,
			       .image_height = HEIGHT };
	cl_mem part;

	if (native) {
		TRY_MAKE(mems[num_mems], clCreateImage(context, CL_MEM_USE_HOST_PTR, &format, &desc,
						       frame + PAGE, &err));
		num_mems++;
		return;
	}
	TRY_MAKE(part, clCreateSubBuffer(of_frame, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &err));
	mems[num_mems++] = part;
	desc.mem_object = part;
	desc.image_row_pitch = WIDTH * 4;
	TRY_MAKE(mems[num_mems],
		 clCreateImage(context, CL_MEM_READ_WRITE, &format, &desc, NULL, &err));
	clReleaseMemObject(part);
	mems[num_mems - 1] = mems[num_mems];
}

static void program_enqueue_picture(void)
{
	const size_t size[] = { WIDTH, HEIGHT };
	cl_kernel kernel;

	TRY_MAKE(kernel, clCreateKernel(program, "picture", &err));
	kernels[num_kernels++] = kernel;
	TRY(clSetKernelArg(kernel, 0, sizeof(cl_mem), &mems[0]));
	TRY(clSetKernelArg(kernel, 1, sizeof(cl_mem), &of_host));
	TRY(clEnqueueNDRangeKernel(in_order, kernel, 2, NULL, size, NULL, 0, NULL,
				   &events[num_events]));
	num_events++;
}

static void step_picture(void)
{
	step_begin("picture");
	memset(frame, 55, SIZE);
	memset(host, 0, SIZE);
	make_picture();
	if (!failed)
		program_enqueue_picture();
	if (!failed)
		wait_last();
	step_check("clFinish", clFinish(in_order));
	if (!failed)
		expect_all("the picture", host, WIDTH * HEIGHT * 4, 55);
	step_finish();
}

static atomic_int called;

static void CL_CALLBACK on_complete(cl_event event, cl_int status, void *arg)
{
	(void)event;
	(void)arg;
	atomic_store(&called, status ? status : 1);
}

/* If the driver drops callbacks, the application's callback is dropped too. */
static void step_callback(void)
{
	const char *chaos = getenv("CHAOS");
	const struct timespec ms = { 0, 1000000 };

	step_begin("callback");
	atomic_store(&called, 0);
	program_enqueue(in_order, "increment", of_frame, NULL, SIZE, 0, NULL);
	if (!failed)
		step_check("clSetEventCallback",
			   clSetEventCallback(last_event(), CL_COMPLETE, on_complete, NULL));
	if (!failed)
		wait_last();
	step_check("clFinish", clFinish(in_order));
	for (int i = 0; !failed && !called && i < 10000; i++)
		nanosleep(&ms, NULL); /* time: between two looks */
	if (!failed && !called && !(chaos && !strncmp(chaos, "drop", 4)))
		step_fail("the callback of a command that is complete never came");
	step_finish();
}

/* Releases an import while commands use the import. */
static void step_released(void)
{
	cl_mem mem = NULL;

	step_begin("released");
	memset(other, 3, SIZE);
	now_doing("import");
	mems[0] = program_import_dmabuf(other_fd, other, SIZE, &(cl_int){ 1 });
	if (!mems[0])
		return step_finish();
	mem = mems[0];
	for (int i = 0; i < 4 && !failed; i++)
		program_enqueue(in_order, "increment", mem, NULL, SIZE, 0, NULL);
	clReleaseMemObject(mem);
	while (num_kernels)
		clReleaseKernel(kernels[--num_kernels]);
	if (!failed)
		wait_last();
	step_check("clFinish", clFinish(in_order));
	if (!failed)
		expect_all("an import that was released", other, SIZE, 7);
	step_finish();
}

static void write_and_read(void)
{
	static unsigned char sent[SIZE], seen[SIZE];

	memset(sent, 99, SIZE);
	memset(seen, 0, SIZE);
	TRY(clEnqueueWriteBuffer(in_order, of_frame, CL_TRUE, 0, SIZE, sent, 0, NULL, NULL));
	expect_all("a blocking write", frame, SIZE, 99);
	program_enqueue(in_order, "increment", of_frame, NULL, SIZE, 0, NULL);
	if (failed)
		return;
	TRY(clEnqueueReadBuffer(in_order, of_frame, CL_TRUE, 0, SIZE, seen, 1, events, NULL));
	expect_all("a blocking read", seen, SIZE, 100);
}

static void map_and_unmap(void)
{
	unsigned char *at;

	memset(other, 11, SIZE);
	TRY_MAKE(at, clEnqueueMapBuffer(in_order, of_other, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0,
					SIZE, 0, NULL, NULL, &err));
	expect_all("a map", at, SIZE, 11);
	memset(at, 12, SIZE);
	TRY(clEnqueueUnmapMemObject(in_order, of_other, at, 0, NULL, &events[num_events]));
	num_events++;
	wait_last();
	if (!failed)
		expect_all("an unmap", other, SIZE, 12);
}

/* In version 1.0.0 the host's commands on imports fail. */
static bool may_read(void)
{
	const char *version = getenv("CLIMPORT_VERSION");

	return native || (version && !strcmp(version, "1.1.0"));
}

static void step_host_access(void)
{
	if (!may_read())
		return;
	step_begin("host access");
	write_and_read();
	step_check("clFinish", clFinish(in_order));
	step_finish();
	step_begin("map");
	map_and_unmap();
	step_check("clFinish", clFinish(in_order));
	step_finish();
}

static void step_failing_read(void)
{
	unsigned char to[4];
	cl_event read = NULL;
	cl_int err;

	step_begin("failing read");
	make_user_event();
	if (failed || !may_read())
		return step_finish();
	err = clEnqueueReadBuffer(out_of_order, of_frame, CL_FALSE, 0, sizeof(to), to, 1, events,
				  &read);
	clSetUserEventStatus(events[0], -5);
	if (!err && !clWaitForEvents(1, &read))
		step_fail("clWaitForEvents succeeds for a read whose wait list failed");
	if (!err)
		clReleaseEvent(read);
	step_finish();
}

static void run_steps(void)
{
	step_in_order("in order, host memory", of_host, host);
	step_in_order("in order, dma-buf", of_frame, frame);
	step_out_of_order();
	step_picture();
	step_callback();
	step_released();
	step_host_access();
}

static void run_failing_steps(void)
{
	step_failing_read();
	step_failing_list("failing list", in_order);
	step_failing_list("failing list, out of order", out_of_order);
}

/* Counts the descriptors of dma-bufs, with the program's own two. */
static int program_count_dmabufs(void)
{
	char path[300], target[300];
	DIR *dir = opendir("/proc/self/fd");
	int count = 0;

	for (struct dirent *entry = readdir(dir); entry; entry = readdir(dir)) {
		snprintf(path, sizeof(path), "/proc/self/fd/%s", entry->d_name);
		memset(target, 0, sizeof(target));
		if (readlink(path, target, sizeof(target) - 1) > 0)
			count += strstr(target, "fake-dmabuf-") != NULL;
	}
	closedir(dir);
	return count;
}

/*
 * A thread of the layer closes all descriptors of released imports, soon.  PoCL calls back for no
 * failed command, and keeps the command's memory until the end.  CHAOS_LEAVES is set for faults
 * that let commands fail.
 */
static void check_descriptors(void)
{
	const struct timespec ms = { 0, 1000000 };
	int left = 0;

	step_begin("descriptors");
	for (int i = 0; i < 10000; i++) {
		left = program_count_dmabufs();
		if (left <= 2)
			return;
		nanosleep(&ms, NULL); /* time: between two looks */
	}
	step_fail("%d descriptors of dma-bufs are left", left - 2);
}

static void *map_dmabuf(const char *name, int *fd)
{
	void *at;

	*fd = fake_dmabuf_create(name, SIZE);
	at = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
	if (*fd < 0 || at == MAP_FAILED) {
		perror("no dma-buf");
		exit(2);
	}
	return at;
}

int main(int argc, char **argv)
{
	bool sync = argc == 4, leaves = getenv("CHAOS_LEAVES") != NULL;

	native = argc > 1 && !strcmp(argv[1], "native");
	host = aligned_alloc(PAGE, SIZE);
	frame = map_dmabuf("frame", &frame_fd);
	other = map_dmabuf("other", &other_fd);
	step_begin("open");
	program_open_device();
	if (!failed)
		program_open_queues();
	if (!failed)
		program_build_kernels();
	if (sync)
		fake_dmabuf_fail_nth(argv[2], EIO, (unsigned int)atoi(argv[3]));
	for (int i = 0; i < 2 && !failed; i++) {
		program_open_memory();
		if (!failed && i == 0)
			run_steps();
		else if (!failed)
			run_failing_steps();
		program_close_memory();
		if (!leaves && i == 0)
			check_descriptors();
	}
	step_begin("end");
	program_close_rest();
	printf("%d errors\n", errors);
	return sync && !fake_dmabuf_failed() ? 3 : 0;
}
