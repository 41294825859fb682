/* SPDX-License-Identifier: Apache-2.0 */
#include "opencl.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "harness.h"
#include "util/cl_names.h"

struct opencl opencl;

static struct opencl_note own_note;
struct opencl_note *opencl_note = &own_note;

static const char *const names[OPENCL_CALLS] = {
	[OPENCL_clImportMemoryARM] = "clImportMemoryARM",
	[OPENCL_clEnqueueAcquireExternalMemObjectsKHR] = "clEnqueueAcquireExternalMemObjectsKHR",
	[OPENCL_clEnqueueReleaseExternalMemObjectsKHR] = "clEnqueueReleaseExternalMemObjectsKHR",
#define STATUS(name) [OPENCL_##name] = #name,
#define HANDLE STATUS
#include "opencl_functions.h"
#undef STATUS
#undef HANDLE
};

/* The places of the functions in struct opencl. */
static const size_t places[OPENCL_CALLS] = {
#define STATUS(name) [OPENCL_##name] = offsetof(struct opencl, name),
#define HANDLE STATUS
#include "opencl_functions.h"
#undef STATUS
#undef HANDLE
};

static void *opencl_handle_of(const char *library, char *why, size_t room)
{
	static const char *const usual[] = { "libOpenCL.so.1", "libOpenCL.so" };
	void *handle;

	if (library) {
		handle = dlopen(library, RTLD_LAZY | RTLD_GLOBAL);
		if (!handle)
			snprintf(why, room, "%s", dlerror());
		return handle;
	}
	for (size_t i = 0; i < sizeof(usual) / sizeof(usual[0]); i++) {
		handle = dlopen(usual[i], RTLD_LAZY | RTLD_GLOBAL);
		if (handle)
			return handle;
		snprintf(why, room, "%s", dlerror());
	}
	return NULL;
}

/* Drivers without exports give the addresses of their functions by this function. */
static void *(*address_of)(const char *name);

static void *opencl_find(void *handle, const char *name)
{
	void *address = dlsym(handle, name);

	return address || !address_of ? address : address_of(name);
}

bool opencl_open(const char *library, char *why, size_t room)
{
	void *handle = opencl_handle_of(library, why, room), *address;

	if (!handle)
		return false;
	address = dlsym(handle, "clGetExtensionFunctionAddress");
	memcpy(&address_of, &address, sizeof(address_of));
	for (size_t i = OPENCL_EXTENSIONS + 1; i < OPENCL_CALLS; i++) {
		address = opencl_find(handle, names[i]);
		memcpy((char *)&opencl + places[i], &address, sizeof(address));
	}
	if (opencl.clGetPlatformIDs && opencl.clGetPlatformInfo && opencl.clGetDeviceIDs)
		return true;
	snprintf(why, room, "%s is no OpenCL library: there is no function clGetPlatformIDs",
		 library ? library : "libOpenCL.so");
	return false;
}

void opencl_enter(enum opencl_call call, bool is_there)
{
	atomic_store(&opencl_note->call, call);
	atomic_store(&opencl_note->is_inside, is_there);
	atomic_store(&opencl_note->data_is_wrong, false);
	if (!is_there)
		test_skip("the OpenCL library has no %s", names[call]);
	if (strncmp(names[call], "clGet", strlen("clGet")))
		atomic_store(&opencl_note->has_effects, true);
	if (!strncmp(names[call], "clEnqueue", strlen("clEnqueue")) &&
	    !atomic_load(&opencl_note->depth))
		atomic_store(&opencl_note->has_commands, true);
}

cl_int opencl_leave(enum opencl_call call, cl_int error)
{
	atomic_store(&opencl_note->call, call);
	atomic_store(&opencl_note->error, error);
	atomic_store(&opencl_note->is_inside, false);
	return error;
}

void *opencl_leave_with(enum opencl_call call, void *handle)
{
	opencl_leave(call, handle ? CL_SUCCESS : 1);
	return handle;
}

void opencl_begin_aside(void)
{
	atomic_fetch_add(&opencl_note->depth, 1);
}

void opencl_end_aside(void)
{
	atomic_fetch_sub(&opencl_note->depth, 1);
}

void opencl_reset_note(void)
{
	atomic_store(&opencl_note->call, OPENCL_NO_CALL);
	atomic_store(&opencl_note->is_inside, false);
	atomic_store(&opencl_note->error, CL_SUCCESS);
	atomic_store(&opencl_note->depth, 0);
	atomic_store(&opencl_note->has_effects, false);
	atomic_store(&opencl_note->has_commands, false);
	atomic_store(&opencl_note->data_is_wrong, false);
}

void opencl_describe_note(const struct opencl_note *note, char *text, size_t room)
{
	unsigned int call = atomic_load(&note->call);
	int error = atomic_load(&note->error);
	const char *known = cl_error_known(error);

	if (call == OPENCL_NO_CALL || call >= OPENCL_CALLS)
		snprintf(text, room, "before the first call of OpenCL");
	else if (atomic_load(&note->is_inside))
		snprintf(text, room, "in %s", names[call]);
	else if (error == 1)
		snprintf(text, room, "after %s, which returned NULL", names[call]);
	else
		snprintf(text, room, "after %s, which returned %s (%d)", names[call],
			 known ? known : "an unknown error", error);
}
