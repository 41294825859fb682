/* SPDX-License-Identifier: Apache-2.0 */
/* Options, injected faults, records of calls, and the trace. */
#include "internal.h"

#include "fake/fork.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

#define MAX_ARGS 14
#define MAX_TRACE 4096

static const struct {
	const char *name;
	int64_t value;
} option_info[STUB_NUM_OPTIONS] = {
	[STUB_PLATFORMS] = { "STUB_PLATFORMS", 1 },
	[STUB_DEVICES] = { "STUB_DEVICES", 1 },
	[STUB_CL12] = { "STUB_CL12", 0 },
	[STUB_COPYING] = { "STUB_COPYING", 0 },
	[STUB_COPYING_MAP] = { "STUB_COPYING_MAP", 0 },
	[STUB_LOST_WRITES] = { "STUB_LOST_WRITES", 0 },
	[STUB_STALE_READS] = { "STUB_STALE_READS", 0 },
	[STUB_ZERO_COPY_ALIGN] = { "STUB_ZERO_COPY_ALIGN", 1 },
	[STUB_COPYING_IMAGES] = { "STUB_COPYING_IMAGES", 0 },
	[STUB_NATIVE] = { "STUB_NATIVE", 0 },
	[STUB_ASYNC_DESTRUCTOR] = { "STUB_ASYNC_DESTRUCTOR", 0 },
	[STUB_NO_IMAGE1D_DESTRUCTOR] = { "STUB_NO_IMAGE1D_DESTRUCTOR", 0 },
	[STUB_ADDRESS_REUSE] = { "STUB_ADDRESS_REUSE", 0 },
	[STUB_IMAGE2D_FROM_BUFFER] = { "STUB_IMAGE2D_FROM_BUFFER", 0 },
	[STUB_LAZY] = { "STUB_LAZY", 0 },
	[STUB_CALLBACK_DELAY] = { "STUB_CALLBACK_DELAY", 0 },
	[STUB_NO_CALLBACK] = { "STUB_NO_CALLBACK", 0 },
	[STUB_CALLBACK_LATE] = { "STUB_CALLBACK_LATE", 0 },
	[STUB_CALLBACK_COMPLETE] = { "STUB_CALLBACK_COMPLETE", 0 },
	[STUB_NO_FAILURE_CALLBACK] = { "STUB_NO_FAILURE_CALLBACK", 0 },
	[STUB_OPAQUE] = { "STUB_OPAQUE", 0 },
	[STUB_KHR_DMABUF] = { "STUB_KHR_DMABUF", 0 },
	[STUB_KHR_HABITS] = { "STUB_KHR_HABITS", 0 },
	[STUB_OPAQUE_COPIES] = { "STUB_OPAQUE_COPIES", 0 },
	[STUB_OPAQUE_DIES] = { "STUB_OPAQUE_DIES", 0 },
	[STUB_OPAQUE_WRONG] = { "STUB_OPAQUE_WRONG", 0 },
	[STUB_MAX_ALLOC] = { "STUB_MAX_ALLOC", INT64_C(1) << 32 },
	[STUB_TRAILING_SPACE] = { "STUB_TRAILING_SPACE", 0 },
	[STUB_NO_IMAGES] = { "STUB_NO_IMAGES", 0 },
	[STUB_NO_FAILURE_BEHIND] = { "STUB_NO_FAILURE_BEHIND", 0 },
	[STUB_ENQUEUE_DELAY] = { "STUB_ENQUEUE_DELAY", 0 },
	[STUB_KERNEL_FAIL] = { "STUB_KERNEL_FAIL", 0 },
	[STUB_FAULT_DELAY] = { "STUB_FAULT_DELAY", 0 },
	[STUB_FAILED_HANDLE] = { "STUB_FAILED_HANDLE", 0 },
	[STUB_NO_CONTEXT_DEVICES] = { "STUB_NO_CONTEXT_DEVICES", 0 },
	[STUB_FAULT_STAYS] = { "STUB_FAULT_STAYS", 0 },
	[STUB_NO_NATIVE_KERNEL] = { "STUB_NO_NATIVE_KERNEL", 0 },
	[STUB_GPU] = { "STUB_GPU", 0 },
	[STUB_HANG] = { "STUB_HANG", 0 },
	[STUB_HANG_FLUSH] = { "STUB_HANG_FLUSH", 0 },
	[STUB_NO_CALLS_IN_CALLBACKS] = { "STUB_NO_CALLS_IN_CALLBACKS", 0 },
	[STUB_NO_CONTEXT_CALLBACKS] = { "STUB_NO_CONTEXT_CALLBACKS", 0 },
	[STUB_OWN_REFERENCES] = { "STUB_OWN_REFERENCES", 0 },
	[STUB_FINISH_EARLY] = { "STUB_FINISH_EARLY", 0 },
	[STUB_COPYING_READ_ONLY] = { "STUB_COPYING_READ_ONLY", 0 },
	[STUB_COPYING_WRITE_ONLY] = { "STUB_COPYING_WRITE_ONLY", 0 },
	[STUB_COPYING_FIRST_LAUNCH] = { "STUB_COPYING_FIRST_LAUNCH", 0 },
	[STUB_COPYING_ABOVE] = { "STUB_COPYING_ABOVE", 0 },
	[STUB_COPYING_FILES] = { "STUB_COPYING_FILES", 0 },
	[STUB_COPYING_SHARED] = { "STUB_COPYING_SHARED", 0 },
	[STUB_COPYING_DMABUFS] = { "STUB_COPYING_DMABUFS", 0 },
	[STUB_COPYING_UNWRITABLE] = { "STUB_COPYING_UNWRITABLE", 0 },
	[STUB_COPYING_IMAGES_READ_ONLY] = { "STUB_COPYING_IMAGES_READ_ONLY", 0 },
	[STUB_COPYING_HOST_ACCESS] = { "STUB_COPYING_HOST_ACCESS", 0 },
	[STUB_COPYING_SEVERAL] = { "STUB_COPYING_SEVERAL", 0 },
	[STUB_COPYING_CONTEXTS] = { "STUB_COPYING_CONTEXTS", 0 },
	[STUB_COPYING_TMPFS] = { "STUB_COPYING_TMPFS", 0 },
	[STUB_COPYING_IMAGES_ABOVE] = { "STUB_COPYING_IMAGES_ABOVE", 0 },
	[STUB_COPYING_IMAGES_ALIGN] = { "STUB_COPYING_IMAGES_ALIGN", 1 },
	[STUB_COPYING_IMAGES_TIGHT] = { "STUB_COPYING_IMAGES_TIGHT", 0 },
	[STUB_COPYING_IMAGES_ROWS] = { "STUB_COPYING_IMAGES_ROWS", 1 },
	[STUB_DROP_DELAY] = { "STUB_DROP_DELAY", 0 },
	[STUB_TWO_FAILURES_ABORT] = { "STUB_TWO_FAILURES_ABORT", 0 },
	[STUB_FAILED_COMPLETE] = { "STUB_FAILED_COMPLETE", 0 },
	[STUB_PIN_LIMIT] = { "STUB_PIN_LIMIT", 0 },
	[STUB_STACK] = { "STUB_STACK", 0 },
	[STUB_FORKS] = { "STUB_FORKS", 0 },
	[STUB_COMMAND_PROPERTIES] = { "STUB_COMMAND_PROPERTIES", 0 },
	[STUB_COMMAND_ARRAYS] = { "STUB_COMMAND_ARRAYS", 0 },
	[STUB_COMMAND_NAMED] = { "STUB_COMMAND_NAMED", 3 },
	[STUB_NOTHING_FAIL] = { "STUB_NOTHING_FAIL", 0 },
	[STUB_UNNAMED] = { "STUB_UNNAMED", 0 },
	[STUB_IMAGES_AT_ROOT] = { "STUB_IMAGES_AT_ROOT", 0 },
	[STUB_IMAGES_ALIGN] = { "STUB_IMAGES_ALIGN", 1 },
	[STUB_ANY_POINTER] = { "STUB_ANY_POINTER", 0 },
	[STUB_IMAGES_PACKED] = { "STUB_IMAGES_PACKED", 0 },
	[STUB_UNALIGNED_FAIL] = { "STUB_UNALIGNED_FAIL", 0 },
	[STUB_NATIVE_TYPES] = { "STUB_NATIVE_TYPES", 3 },
	[STUB_NATIVE_NAMED] = { "STUB_NATIVE_NAMED", 0 },
	[STUB_NATIVE_LACKING] = { "STUB_NATIVE_LACKING", 0 },
	[STUB_ANY_PITCH] = { "STUB_ANY_PITCH", 0 },
	[STUB_IMAGE1D_OF_PART] = { "STUB_IMAGE1D_OF_PART", 0 },
	[STUB_PARENTS] = { "STUB_PARENTS", STUB_PARENTS_RIGHT },
	[STUB_LAST_FIRST] = { "STUB_LAST_FIRST", 0 },
	[STUB_PAGES_ALONE] = { "STUB_PAGES_ALONE", 0 },
	[STUB_PART_AT_PAGE] = { "STUB_PART_AT_PAGE", 0 },
	[STUB_IMAGES_END] = { "STUB_IMAGES_END", 0 },
	[STUB_IMAGES_END_OF] = { "STUB_IMAGES_END_OF", 7 },
	[STUB_PRELOADED] = { "STUB_PRELOADED", 0 },
	[STUB_ADDS_VARIABLE] = { "STUB_ADDS_VARIABLE", 0 },
};

#define F(name) #name,
#define N F
#define X F
#define V F
static const char *const function_name[F_COUNT] = {
#include "functions.h"
};
#undef V
#undef X
#undef N
#undef F

static _Atomic int64_t options[STUB_NUM_OPTIONS];
static atomic_ulong calls[F_COUNT], calls_all;

/* The next fault. fault_left counts down to the fault, and is 0 if no fault is set. */
static atomic_ulong fault_left;
static atomic_int fault_function, fault_code, fault_happened;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
FORK_SAFE(lock, 101);
static uintptr_t last_args[F_COUNT][MAX_ARGS]; /* guarded by lock, like all variables below */
static char *trace[MAX_TRACE];
static int num_trace;

void stub_set(enum stub_option option, int64_t value)
{
	atomic_store(&options[option], value);
}

int64_t stub_get(enum stub_option option)
{
	return atomic_load(&options[option]);
}

static int function_number(const char *name)
{
	for (int f = 0; f < F_COUNT; f++)
		if (!strcmp(function_name[f], name))
			return f;
	fprintf(stderr, "stub: there is no function %s\n", name);
	abort();
}

void stub_fail(const char *function, unsigned long nth, cl_int code)
{
	atomic_store(&fault_happened, 0);
	atomic_store(&fault_function, function ? function_number(function) : -1);
	atomic_store(&fault_code, code);
	atomic_store(&fault_left, nth);
}

int stub_failed(void)
{
	return atomic_load(&fault_happened);
}

static bool can_fail(enum function f)
{
	const char *name = function_name[f];

	return strncmp(name, "clRetain", 8) && strncmp(name, "clRelease", 9) &&
	       strncmp(name, "clGetExtensionFunction", 22) && strncmp(name, "clIcd", 5) &&
	       strncmp(name, "clUnload", 8) && f != F_clSetUserEventStatus;
}

static cl_int control_take_fault(enum function f)
{
	unsigned long left = atomic_load(&fault_left);

	int only = atomic_load(&fault_function);

	if (!left || (only >= 0 ? only != (int)f : !can_fail(f)))
		return CL_SUCCESS;
	while (left && !(left == 1 && stub_get(STUB_FAULT_STAYS)) &&
	       !atomic_compare_exchange_weak(&fault_left, &left, left - 1))
		;
	if (left != 1)
		return CL_SUCCESS;
	sleep_ms(stub_get(STUB_FAULT_DELAY));
	atomic_store(&fault_happened, 1);
	stub_trace("fault %s", function_name[f]);
	return atomic_load(&fault_code);
}

static _Thread_local bool control_is_in_callback;

void call_back_mem(void(CL_CALLBACK *notify)(cl_mem, void *), cl_mem mem, void *data)
{
	bool was_in_callback = control_is_in_callback;

	control_is_in_callback = true;
	notify(mem, data);
	control_is_in_callback = was_in_callback;
}

static void control_check_callback(void)
{
	if (!control_is_in_callback || !stub_get(STUB_NO_CALLS_IN_CALLBACKS))
		return;
	fprintf(stderr, "a destructor callback calls the driver\n");
	abort();
}

cl_int call_begin(enum function f, const uintptr_t *args, size_t count)
{
	control_check_callback();
	if (stub_get(STUB_FORKS))
		fake_fork();
	atomic_fetch_add(&calls[f], 1);
	if (can_fail(f))
		atomic_fetch_add(&calls_all, 1);
	pthread_mutex_lock(&lock);
	memset(last_args[f], 0, sizeof(last_args[f]));
	memcpy(last_args[f], args, count * sizeof(*args));
	pthread_mutex_unlock(&lock);
	return control_take_fault(f);
}

unsigned long stub_calls(const char *function)
{
	return atomic_load(function ? &calls[function_number(function)] : &calls_all);
}

uintptr_t stub_arg(const char *function, unsigned i)
{
	uintptr_t value;

	pthread_mutex_lock(&lock);
	value = last_args[function_number(function)][i];
	pthread_mutex_unlock(&lock);
	return value;
}

void stub_trace(const char *format, ...)
{
	char text[128];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	pthread_mutex_lock(&lock);
	if (num_trace < MAX_TRACE)
		trace[num_trace++] = strdup(text);
	pthread_mutex_unlock(&lock);
}

int stub_trace_find(const char *text, int from)
{
	int found = -1;

	pthread_mutex_lock(&lock);
	for (int i = from; i < num_trace && found < 0; i++)
		if (!strncmp(trace[i], text, strlen(text)))
			found = i;
	pthread_mutex_unlock(&lock);
	return found;
}

int stub_trace_count(const char *text)
{
	int count = 0;

	for (int i = stub_trace_find(text, 0); i >= 0; i = stub_trace_find(text, i + 1))
		count++;
	return count;
}

void stub_trace_clear(void)
{
	pthread_mutex_lock(&lock);
	while (num_trace)
		free(trace[--num_trace]);
	pthread_mutex_unlock(&lock);
}

void stub_trace_print(void)
{
	pthread_mutex_lock(&lock);
	for (int i = 0; i < num_trace; i++)
		printf("# %3d %s\n", i, trace[i]);
	pthread_mutex_unlock(&lock);
}

void stub_reset(void)
{
	for (int i = 0; i < STUB_NUM_OPTIONS; i++)
		stub_set(i, option_info[i].value);
	stub_fail(NULL, 0, CL_SUCCESS);
	atomic_store(&calls_all, 0);
	for (int f = 0; f < F_COUNT; f++)
		atomic_store(&calls[f], 0);
	pthread_mutex_lock(&lock);
	memset(last_args, 0, sizeof(last_args));
	pthread_mutex_unlock(&lock);
	stub_trace_clear();
}

static char driver_version[32]; /* set at load */

const char *stub_driver_version(void)
{
	return driver_version;
}

static void version_from_environment(void)
{
	unsigned long hash = 0;

	for (int i = 0; i < STUB_NUM_OPTIONS; i++)
		if (getenv(option_info[i].name))
			hash = (hash + (unsigned long)i + 1) * 1000003 +
			       strtoul(getenv(option_info[i].name), NULL, 0);
	snprintf(driver_version, sizeof(driver_version), "1.0 %lx", hash);
}

/* STUB_FAIL=[function:]N[:code] */
static void fail_from_environment(const char *text)
{
	char function[64] = "";
	unsigned long nth = 0;
	int code = CL_OUT_OF_RESOURCES;

	if (sscanf(text, "%lu:%d", &nth, &code) < 1 &&
	    sscanf(text, "%63[^:]:%lu:%d", function, &nth, &code) < 2)
		fprintf(stderr, "stub: STUB_FAIL=%s is not [function:]N[:code]\n", text);
	stub_fail(*function ? function : NULL, nth, code);
}

__attribute__((constructor)) static void control_init(void)
{
	const char *text;

	stub_reset();
	version_from_environment();
	for (int i = 0; i < STUB_NUM_OPTIONS; i++) {
		text = getenv(option_info[i].name);
		if (text)
			stub_set(i, strtoll(text, NULL, 0));
	}
	text = getenv("STUB_FAIL");
	if (text)
		fail_from_environment(text);
}
