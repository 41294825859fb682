/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A library of OpenCL for tests of the runner: the stub driver, which misbehaves in the way that the
 * variable BAD names.  Without BAD_ALWAYS the library misbehaves in processes alone that have imported
 * memory.
 */
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "stub.h"

static atomic_bool has_imported;
static atomic_int imports;

static bool bad_is(const char *way)
{
	const char *bad = getenv("BAD");

	return bad && !strcmp(bad, way) && (atomic_load(&has_imported) || getenv("BAD_ALWAYS"));
}

/* Writes the number of a process to the file of BAD_FILE. */
static void bad_write_number(pid_t process)
{
	const char *name = getenv("BAD_FILE");
	FILE *file = name ? fopen(name, "w") : NULL;

	if (!file)
		return;
	fprintf(file, "%d\n", (int)process);
	fclose(file);
}

_Noreturn static void bad_hang(void)
{
	sigset_t all;

	signal(SIGALRM, SIG_IGN);
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
	for (;;)
		pause();
}

/* The new process holds every descriptor of the driver's. */
static void bad_leave_process(void)
{
	pid_t child = fork();

	if (!child)
		bad_hang();
	bad_write_number(child);
}

static void bad_die_late(void)
{
	abort();
}

/* Once in a process. */
static void bad_die_at_exit(void)
{
	static atomic_bool will_die;

	if (bad_is("refuse wrongly and die late") && !atomic_exchange(&will_die, true))
		atexit(bad_die_late);
}

static void bad_print(void)
{
	printf("ok 1 - forged\nnot ok 2 - forged\n1..0\nBail out! forged\nwithout an end");
	fflush(stdout);
}

/* In a process with several imports: what one test does to later tests. */
static bool bad_is_later(const char *way)
{
	return bad_is(way) && atomic_load(&imports) > 1;
}

static void bad_misbehave(void)
{
	if (bad_is("print"))
		bad_print();
	if (bad_is("layers"))
		printf("layers: %s\n", getenv("OPENCL_LAYERS") ? getenv("OPENCL_LAYERS") : "none");
	if (bad_is("fork") || bad_is("fork and hang"))
		bad_leave_process();
	if (bad_is("hang"))
		bad_write_number(getpid());
	if (bad_is("hang") || bad_is("fork and hang"))
		bad_hang();
	if (bad_is("die") || bad_is_later("die later"))
		abort();
	if (bad_is("die in two ways"))
		raise(getenv("OPENCL_LAYERS") ? SIGABRT : SIGKILL);
	if (bad_is("exit"))
		exit(0);
	if (bad_is("die late"))
		atexit(bad_die_late);
}

STUB_API cl_int CL_API_CALL clGetPlatformIDs(cl_uint count, cl_platform_id *platforms,
					     cl_uint *found)
{
	if (bad_is("die first"))
		abort();
	if (bad_is("exit first"))
		exit(0);
	return stub_dispatch.clGetPlatformIDs(count, platforms, found);
}

STUB_API cl_int CL_API_CALL clReleaseContext(cl_context context)
{
	if (bad_is("exit at the end"))
		_exit(0);
	return stub_dispatch.clReleaseContext(context);
}

/* As a driver that looks at the pages of the host without asking whether they are mapped. */
static void bad_touch(const void *memory, size_t size)
{
	const volatile unsigned char *bytes = memory;

	for (size_t i = 0; memory && i < size; i += sysconf(_SC_PAGESIZE))
		(void)bytes[i];
}

/* A copy of the last memory of the host: of a driver that copies at the enqueue and at the end. */
static struct {
	unsigned char *host, *copy;
	size_t size;
} bad_copy;

static void *bad_begin_copy(void *memory, size_t size)
{
	bad_copy.host = memory;
	bad_copy.copy =
		mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	bad_copy.size = size;
	if (bad_copy.copy == MAP_FAILED)
		abort();
	return memcpy(bad_copy.copy, memory, size);
}

STUB_API cl_int CL_API_CALL clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel kernel,
						   cl_uint dimensions, const size_t *offset,
						   const size_t *global, const size_t *local,
						   cl_uint count, const cl_event *list,
						   cl_event *event)
{
	if (bad_copy.copy)
		memcpy(bad_copy.copy, bad_copy.host, bad_copy.size);
	return stub_dispatch.clEnqueueNDRangeKernel(queue, kernel, dimensions, offset, global,
						    local, count, list, event);
}

static cl_int bad_end_copy(cl_int error)
{
	if (bad_copy.copy)
		memcpy(bad_copy.host, bad_copy.copy, bad_copy.size);
	return error;
}

STUB_API cl_int CL_API_CALL clWaitForEvents(cl_uint count, const cl_event *list)
{
	return bad_end_copy(stub_dispatch.clWaitForEvents(count, list));
}

STUB_API cl_mem CL_API_CALL clCreateBuffer(cl_context context, cl_mem_flags flags, size_t size,
					   void *memory, cl_int *error)
{
	bad_die_at_exit();
	if (bad_is("touch"))
		bad_touch(memory, size);
	if ((bad_is("copy at the enqueue") && memory) ||
	    (bad_is("copy inside of pages") && (uintptr_t)memory % sysconf(_SC_PAGESIZE)))
		memory = bad_begin_copy(memory, size);
	return stub_dispatch.clCreateBuffer(context, flags, size, memory, error);
}

STUB_API cl_int CL_API_CALL clFinish(cl_command_queue queue)
{
	cl_int error;

	bad_misbehave();
	error = bad_end_copy(stub_dispatch.clFinish(queue));
	return bad_is("fail") || bad_is_later("fail later") ? CL_OUT_OF_RESOURCES : error;
}

/* Kernels see a size of at most 100 bytes. */
STUB_API cl_int CL_API_CALL clSetKernelArg(cl_kernel kernel, cl_uint i, size_t size,
					   const void *value)
{
	const cl_uint most = 100;
	cl_uint wanted = 0;

	if (size == sizeof(wanted))
		memcpy(&wanted, value, size);
	if (bad_is("short loops") && i == 1 && wanted > most)
		value = &most;
	return stub_dispatch.clSetKernelArg(kernel, i, size, value);
}

/* The device has the types of memory, and not the name of the extension. */
STUB_API cl_int CL_API_CALL clGetDeviceInfo(cl_device_id device, cl_device_info what, size_t room,
					    void *out, size_t *size)
{
	const char *base = "cl_arm_import_memory ";
	cl_int error = stub_dispatch.clGetDeviceInfo(device, what, room, out, size);
	char *name;

	if (!error && out && what == CL_DRIVER_VERSION && bad_is("print in names"))
		*(char *)out = '\n';
	if (error || !out || what != CL_DEVICE_EXTENSIONS || !bad_is("no name"))
		return error;
	name = strstr(out, base);
	if (name)
		memset(name, ' ', strlen(base));
	return error;
}

/* As a driver whose threads map their stacks during an import. */
static bool bad_is_unmapped(void *memory)
{
	uintptr_t page = sysconf(_SC_PAGESIZE);
	unsigned char vector;

	(void)mmap(NULL, page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return mincore((void *)((uintptr_t)memory / page * page), page, &vector) && errno == ENOMEM;
}

static cl_mem CL_API_CALL bad_import(cl_context context, cl_mem_flags flags,
				     const cl_import_properties_arm *properties, void *memory,
				     size_t size, cl_int *error)
{
	atomic_store(&has_imported, true);
	atomic_fetch_add(&imports, 1);
	(void)properties;
	bad_die_at_exit();
	if (!memory || (bad_is("map") && bad_is_unmapped(memory))) {
		if (error)
			*error = memory ? CL_INVALID_OPERATION : CL_INVALID_VALUE;
		if (error && bad_is("refuse wrongly and die late"))
			*error = CL_OUT_OF_RESOURCES;
		return NULL;
	}
	return clCreateBuffer(context,
			      flags | (bad_is("copy") ? CL_MEM_COPY_HOST_PTR : CL_MEM_USE_HOST_PTR),
			      size, memory, error);
}

STUB_API void *CL_API_CALL clGetExtensionFunctionAddressForPlatform(cl_platform_id platform,
								    const char *name)
{
	(void)platform;
	return strcmp(name, "clImportMemoryARM") ? NULL : (void *)(uintptr_t)bad_import;
}
