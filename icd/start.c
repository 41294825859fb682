/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/start.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "icd/layer.h"
#include "icd/text.h"

static char **start_noted; /* NULL: not noted, or no memory */

/* The sum of the variables behind the last call of a driver. */
static _Atomic(unsigned long long) start_seen;
static atomic_bool start_differs; /* by the program */

/* Set, Intel's driver reads dozens of variables whose names have nothing in common. */
#define NEO_READS_ALL "NEOReadDebugKeys"

/* Variables without influence, variables without inheritance by a probe process, and LD_PRELOAD. */
static bool is_ignored(const char *variable)
{
	static const char *const ignored[] = {
		"OPENCL_LAYERS=",
		"CLIMPORT_LOG=",
		"CLIMPORT_PROBE=",
		"LD_PRELOAD=",
	};

	for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
		if (!strncmp(variable, ignored[i], strlen(ignored[i])))
			return true;
	return false;
}

/* Variables by which drivers, and the layer, choose devices and ways of work. */
static bool chooses_devices(const char *variable)
{
	static const char *const prefixes[] = {
		"POCL_",  "CUDA_", "NVIDIA_", "NV_",	 "RUSTICL_",  "MESA_", "GALLIUM_",
		"LIBGL_", "DRI_",  "RADEON_", "AMD_",	 "HSA_",      "ROCR_", "HIP_",
		"GPU_",	  "LP_",   "ZE_",     "INTEL_",	 "IGC_",      "NEO",   "CL_",
		"OCL_",	  "CLVK_", "VK_",     "OPENCL_", "CLIMPORT_",
	};

	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
		if (!strncmp(variable, prefixes[i], strlen(prefixes[i])))
			return true;
	return false;
}

static char **start_now(void)
{
	static char *nothing[] = { NULL };

	return environ ? environ : nothing;
}

/* NULL: not set. */
static const char *start_value(const char *name, char **lines)
{
	const size_t length = strlen(name);

	for (; *lines; lines++)
		if (!strncmp(*lines, name, length) && (*lines)[length] == '=')
			return *lines + length + 1;
	return NULL;
}

/* The order of the variables does not matter. */
static unsigned long long start_sum_of(char **lines)
{
	const bool all = start_value(NEO_READS_ALL, lines);
	unsigned long long sum = 0;

	for (; *lines; lines++)
		if (!is_ignored(*lines) && (all || chooses_devices(*lines)))
			sum += text_summand(*lines);
	return sum;
}

static void start_free(char **lines)
{
	for (size_t i = 0; lines[i]; i++)
		free(lines[i]);
	free(lines);
}

/* NULL: no memory. */
static char **start_copy(char **lines)
{
	char **copy;
	size_t count = 0;

	while (lines && lines[count])
		count++;
	copy = calloc(count + 1, sizeof(*copy));
	if (!copy)
		return NULL;
	for (size_t i = 0; i < count; i++) {
		copy[i] = strdup(lines[i]);
		if (copy[i])
			continue;
		start_free(copy);
		return NULL;
	}
	return copy;
}

void start_note_environment(void)
{
	if (start_noted)
		return;
	start_noted = start_copy(environ);
	atomic_store(&start_seen, start_sum_of(start_now()));
}

bool start_is_changed(void)
{
	if (!atomic_load(&start_differs) &&
	    (!start_noted || start_sum_of(start_now()) != atomic_load(&start_seen)))
		atomic_store(&start_differs, true);
	return atomic_load(&start_differs);
}

char **start_environment(void)
{
	return start_is_changed() ? start_now() : start_noted;
}

unsigned long long start_sum(void)
{
	return start_sum_of(start_environment());
}

/* Calls in which drivers are known to change the environment, or may be. */
static struct {
	__typeof__(&clGetPlatformIDs) platforms;
	__typeof__(&clGetDeviceIDs) devices;
	__typeof__(&clCreateContext) context;
	__typeof__(&clCreateContextFromType) context_from_type;
	__typeof__(&clBuildProgram) program;
} below;

static void start_enter_driver(void)
{
	start_is_changed();
}

static void start_leave_driver(void)
{
	if (!atomic_load(&start_differs))
		atomic_store(&start_seen, start_sum_of(start_now()));
}

static cl_int CL_API_CALL start_clGetPlatformIDs(cl_uint count, cl_platform_id *platforms,
						 cl_uint *count_ret)
{
	cl_int err;

	start_enter_driver();
	err = below.platforms(count, platforms, count_ret);
	start_leave_driver();
	return err;
}

static cl_int CL_API_CALL start_clGetDeviceIDs(cl_platform_id platform, cl_device_type type,
					       cl_uint count, cl_device_id *devices,
					       cl_uint *count_ret)
{
	cl_int err;

	start_enter_driver();
	err = below.devices(platform, type, count, devices, count_ret);
	start_leave_driver();
	return err;
}

static cl_context CL_API_CALL start_clCreateContext(
	const cl_context_properties *properties, cl_uint count, const cl_device_id *devices,
	void(CL_CALLBACK *notify)(const char *, const void *, size_t, void *), void *user_data,
	cl_int *errcode_ret)
{
	cl_context context;

	start_enter_driver();
	context = below.context(properties, count, devices, notify, user_data, errcode_ret);
	start_leave_driver();
	return context;
}

static cl_context CL_API_CALL
start_clCreateContextFromType(const cl_context_properties *properties, cl_device_type type,
			      void(CL_CALLBACK *notify)(const char *, const void *, size_t, void *),
			      void *user_data, cl_int *errcode_ret)
{
	cl_context context;

	start_enter_driver();
	context = below.context_from_type(properties, type, notify, user_data, errcode_ret);
	start_leave_driver();
	return context;
}

static cl_int CL_API_CALL start_clBuildProgram(cl_program program, cl_uint count,
					       const cl_device_id *devices, const char *options,
					       void(CL_CALLBACK *notify)(cl_program, void *),
					       void *user_data)
{
	cl_int err;

	start_enter_driver();
	err = below.program(program, count, devices, options, notify, user_data);
	start_leave_driver();
	return err;
}

#define START_WATCH(entry, member)                                   \
	do {                                                         \
		below.member = target->entry;                        \
		target->entry = below.member ? start_##entry : NULL; \
	} while (0)

void start_watch_drivers(struct _cl_icd_dispatch *target)
{
	START_WATCH(clGetPlatformIDs, platforms);
	START_WATCH(clGetDeviceIDs, devices);
	START_WATCH(clCreateContext, context);
	START_WATCH(clCreateContextFromType, context_from_type);
	START_WATCH(clBuildProgram, program);
}

const char *start_variable(const char *name)
{
	return getauxval(AT_SECURE) ? NULL : start_value(name, start_environment());
}
