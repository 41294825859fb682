/* SPDX-License-Identifier: Apache-2.0 */
#include "session.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PLATFORMS = 16, DEVICES = 64 };

const char *session_program = "example";

void session_fail(const char *format, ...)
{
	va_list args;

	printf("%s: FAILED: ", session_program);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
	exit(1);
}

void session_check(cl_int err, const char *what)
{
	if (err)
		session_fail("%s: OpenCL error %d", what, err);
}

static int session_can_import(cl_device_id device)
{
	char extensions[16384] = "";

	return !clGetDeviceInfo(device, CL_DEVICE_EXTENSIONS, sizeof(extensions), extensions,
				NULL) &&
	       strstr(extensions, "cl_arm_import_memory");
}

static int session_choose_device(struct session *s, cl_platform_id platform)
{
	cl_device_id devices[DEVICES];
	cl_uint count = 0;

	if (clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, DEVICES, devices, &count))
		return 0;
	for (cl_uint i = 0; i < count && i < DEVICES; i++) {
		if (!session_can_import(devices[i]))
			continue;
		s->platform = platform;
		s->device = devices[i];
		return 1;
	}
	return 0;
}

static void session_choose_platform(struct session *s, const char *wanted)
{
	cl_platform_id platforms[PLATFORMS];
	cl_uint count = 0;
	char name[256];

	session_check(clGetPlatformIDs(PLATFORMS, platforms, &count), "clGetPlatformIDs");
	for (cl_uint i = 0; i < count && i < PLATFORMS; i++) {
		session_check(
			clGetPlatformInfo(platforms[i], CL_PLATFORM_NAME, sizeof(name), name, NULL),
			"CL_PLATFORM_NAME");
		if ((!wanted || strstr(name, wanted)) && session_choose_device(s, platforms[i]))
			return;
	}
	session_fail("no device of %s reports cl_arm_import_memory: start this with climport run",
		     wanted ? wanted : "any platform");
}

/* The queue's own answers, because the queue does the work. */
static void read_names(struct session *s)
{
	cl_device_id device = NULL;
	cl_platform_id platform = NULL;

	session_check(
		clGetCommandQueueInfo(s->queue, CL_QUEUE_DEVICE, sizeof(device), &device, NULL),
		"CL_QUEUE_DEVICE");
	session_check(clGetDeviceInfo(device, CL_DEVICE_NAME, sizeof(s->device_name),
				      s->device_name, NULL),
		      "CL_DEVICE_NAME");
	session_check(
		clGetDeviceInfo(device, CL_DEVICE_PLATFORM, sizeof(platform), &platform, NULL),
		"CL_DEVICE_PLATFORM");
	session_check(clGetPlatformInfo(platform, CL_PLATFORM_NAME, sizeof(s->platform_name),
					s->platform_name, NULL),
		      "CL_PLATFORM_NAME");
	session_check(clGetPlatformInfo(platform, CL_PLATFORM_VERSION, sizeof(s->platform_version),
					s->platform_version, NULL),
		      "CL_PLATFORM_VERSION");
	if (device != s->device || platform != s->platform)
		session_fail("the queue is one of %s, %s", s->platform_name, s->device_name);
}

void session_open(struct session *s, const char *platform)
{
	const cl_queue_properties profiling[] = { CL_QUEUE_PROPERTIES, CL_QUEUE_PROFILING_ENABLE,
						  0 };
	cl_int err;

	memset(s, 0, sizeof(*s));
	session_choose_platform(s, platform);
	s->context = clCreateContext(NULL, 1, &s->device, NULL, NULL, &err);
	session_check(err, "clCreateContext");
	s->queue = clCreateCommandQueueWithProperties(s->context, s->device, profiling, &err);
	session_check(err, "clCreateCommandQueueWithProperties");
	s->import = (__typeof__(s->import))clGetExtensionFunctionAddressForPlatform(
		s->platform, "clImportMemoryARM");
	if (!s->import)
		session_fail("the platform has no clImportMemoryARM");
	read_names(s);
}

void session_close(struct session *s)
{
	clReleaseCommandQueue(s->queue);
	clReleaseContext(s->context);
}

void session_print(const struct session *s)
{
	printf("platform: %s, %s\ndevice:   %s\n", s->platform_name, s->platform_version,
	       s->device_name);
}

cl_kernel session_kernel(const struct session *s, const char *source, const char *name)
{
	cl_int err;
	cl_kernel kernel;
	cl_program program = clCreateProgramWithSource(s->context, 1, &source, NULL, &err);

	session_check(err, "clCreateProgramWithSource");
	session_check(clBuildProgram(program, 1, &s->device, "-cl-std=CL1.2", NULL, NULL),
		      "clBuildProgram");
	kernel = clCreateKernel(program, name, &err);
	session_check(err, "clCreateKernel");
	clReleaseProgram(program); /* the kernel keeps the program */
	return kernel;
}

cl_mem session_buffer(const struct session *s, cl_mem_flags flags, size_t size, void *host)
{
	cl_int err;
	cl_mem mem = clCreateBuffer(s->context, flags, size, host, &err);

	session_check(err, "clCreateBuffer");
	return mem;
}

static cl_mem session_import_fd(const struct session *s, cl_import_properties_arm type,
				cl_mem_flags flags, void *memory, size_t size)
{
	const cl_import_properties_arm properties[] = { CL_IMPORT_TYPE_ARM, type, 0 };
	cl_int err;
	cl_mem mem = s->import(s->context, flags, properties, memory, size, &err);

	session_check(err, "clImportMemoryARM");
	return mem;
}

cl_mem session_import_host(const struct session *s, cl_mem_flags flags, void *memory, size_t size)
{
	return session_import_fd(s, CL_IMPORT_TYPE_HOST_ARM, flags, memory, size);
}

cl_mem session_import_dmabuf(const struct session *s, cl_mem_flags flags, int fd, size_t size)
{
	return session_import_fd(s, CL_IMPORT_TYPE_DMA_BUF_ARM, flags, &fd, size);
}

void session_release(cl_mem mem)
{
	session_check(clReleaseMemObject(mem), "clReleaseMemObject");
}
