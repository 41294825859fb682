/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OpenCL for the examples and benchmarks: a device that imports memory, and a queue.
 *
 * A call that fails ends the program, with "NAME: FAILED: reason" as its last line and
 * exit status 1, so no function returns an error.  For a single thread.
 */
#ifndef EXAMPLES_SESSION_H
#define EXAMPLES_SESSION_H

#include <CL/cl.h>
#include <CL/cl_ext.h>
#include <stddef.h>

struct session {
	cl_platform_id platform;
	cl_device_id device;
	cl_context context;
	cl_command_queue queue; /* in order, with profiling */
	__typeof__(&clImportMemoryARM) import;
	char platform_name[128], platform_version[256], device_name[128];
};

/* The program's name, for the last line. */
extern const char *session_program;

__attribute__((format(printf, 1, 2))) _Noreturn void session_fail(const char *format, ...);

/* Fails unless @err is CL_SUCCESS.  @what names the called function. */
void session_check(cl_int err, const char *what);

/*
 * Opens the first device that reports cl_arm_import_memory, of platforms whose name contains
 * @platform; NULL: of any platform.  The queue is asked for the names.
 */
void session_open(struct session *s, const char *platform);
void session_close(struct session *s);

/* "platform: ..." and "device: ..." */
void session_print(const struct session *s);

cl_kernel session_kernel(const struct session *s, const char *source, const char *name);

/* clCreateBuffer(). */
cl_mem session_buffer(const struct session *s, cl_mem_flags flags, size_t size, void *host);

/* clImportMemoryARM(): the memory or the descriptor stays the caller's. */
cl_mem session_import_host(const struct session *s, cl_mem_flags flags, void *memory, size_t size);
cl_mem session_import_dmabuf(const struct session *s, cl_mem_flags flags, int fd, size_t size);

/* clReleaseMemObject(). */
void session_release(cl_mem mem);

#endif
