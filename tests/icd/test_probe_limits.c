/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Extension queries and imports by programs with few resources: descriptors, processes, stack,
 * thread-specific keys, and threads that are cancelled.
 */
#include "probe.h"

#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static int query_without_descriptors(void)
{
	const struct rlimit few = { 64, 64 };

	probe_get_platform();
	setrlimit(RLIMIT_NOFILE, &few);
	while (dup(1) >= 0)
		;
	return probe_platform_reports() ? 0 : 1;
}

TEST(no_descriptors, "A probe answers a program without a free descriptor.")
{
	probe_create_cache();
	EXPECT_EQ(probe_run_answered(query_without_descriptors), 0);
}

/* The limit on processes does not apply to root. */
static int without_processes(void)
{
	const struct rlimit none = { 0, 0 };

	probe_get_platform();
	if (!getuid() && (setgid(65534) || setuid(65534)))
		return 77;
	setrlimit(RLIMIT_NPROC, &none);
	return probe_is_silent();
}

TEST(no_processes, "If no process can be created, the query works and the name is missing.")
{
	int status;

	probe_create_cache();
	chmod(probe_cache, 0777);
	status = probe_run_program(without_processes);
	if (status == 77)
		test_skip("the user cannot be changed");
	EXPECT_EQ(status, 0);
}

static int silent_with_cores(void)
{
	struct rlimit limit;

	getrlimit(RLIMIT_CORE, &limit);
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_CORE, &limit);
	return probe_silent_with_installed();
}

TEST(no_core, "A probe that crashes leaves no core file.")
{
	probe_create_cache();
	probe_install_layer("[ $(ulimit -c) = 0 ] && echo ran >> $XDG_CACHE_HOME/ran; exit 1");
	EXPECT_EQ(probe_run_program(silent_with_cores), 0);
	EXPECT_EQ(probe_count_runs(), 1);
}

static atomic_bool returned;

static void *query_cancelled(void *unused)
{
	pthread_cancel(pthread_self());
	probe_platform_reports();
	probe_device_reports();
	returned = true;
	return unused;
}

static int cancel_in_query(void)
{
	pthread_t thread;

	alarm(TEST_HANG_S);
	probe_get_platform();
	pthread_create(&thread, NULL, query_cancelled, NULL);
	pthread_join(thread, NULL);
	if (!returned)
		return 2;
	return probe_platform_reports() ? 0 : 1;
}

TEST(cancelled,
     "If a thread is cancelled before the first query, the query ends, and later queries work.")
{
	probe_create_cache();
	EXPECT_EQ(probe_run_answered(cancel_in_query), 0);
	EXPECT_EQ(probe_run_program(cancel_in_query), 0);
}

typedef __typeof__(&clImportMemoryARM) import_function;

static unsigned char host_memory[1 << 20] __attribute__((aligned(4096)));
static cl_device_id used_device;
static import_function used_import;

static void use_driver(void)
{
	clGetDeviceIDs(probe_get_platform(), CL_DEVICE_TYPE_ALL, 1, &used_device, NULL);
	used_import = (import_function)clGetExtensionFunctionAddressForPlatform(
		probe_get_platform(), "clImportMemoryARM");
}

/* Returns 0 if an import can be made and released. */
static int import_bytes(cl_context context, size_t size)
{
	cl_int err;
	cl_mem mem = used_import(context, CL_MEM_READ_WRITE, NULL, host_memory, size, &err);

	return mem ? clReleaseMemObject(mem) : err;
}

static int import_in_new_context(void)
{
	cl_int err;
	cl_context context = clCreateContext(NULL, 1, &used_device, NULL, NULL, &err);

	return import_bytes(context, 4096) || clReleaseContext(context);
}

static void *query_platform_quietly(void *unused)
{
	static char text[4096];

	clGetPlatformInfo(probe_get_platform(), CL_PLATFORM_EXTENSIONS, sizeof(text), text, NULL);
	return unused;
}

static void *query_device_quietly(void *unused)
{
	static char text[4096];

	clGetDeviceInfo(used_device, CL_DEVICE_EXTENSIONS, sizeof(text), text, NULL);
	return unused;
}

static void *import_quietly(void *unused)
{
	return import_in_new_context() ? NULL : unused;
}

/* The guard page region is larger than any stack frame, so an overflow is a fault. */
static int on_small_stack(void *(*call)(void *))
{
	pthread_attr_t attr;
	pthread_t thread;
	void *ret = NULL;

	use_driver();
	pthread_attr_init(&attr);
	pthread_attr_setguardsize(&attr, 1 << 20);
	pthread_attr_setstacksize(&attr, (size_t)sysconf(_SC_THREAD_STACK_MIN));
	if (pthread_create(&thread, &attr, call, host_memory) || pthread_join(thread, &ret))
		return 9;
	return ret ? 0 : 1;
}

static int small_platform_query(void)
{
	return on_small_stack(query_platform_quietly);
}

static int small_device_query(void)
{
	return on_small_stack(query_device_quietly);
}

static int small_import(void)
{
	return on_small_stack(import_quietly);
}

/* Calls on the smallest stack of a thread. */
static const struct small_call {
	const char *name;
	int (*program)(void);
} small_calls[] = { { "platform", small_platform_query },
		    { "device", small_device_query },
		    { "import", small_import } };

/* The log needs stack of its own. */
static const struct small_setting {
	const char *name, *log;
} small_settings[] = { { "quiet", "off" }, { "log", "debug" } };

TEST_EACH_PAIR(small_stack, struct small_call, small_calls, struct small_setting, small_settings,
	       "A query and an import need no more stack than the smallest that a thread has.")
{
	if (*SANITIZER)
		test_skip("the sanitizers' frames are larger");
	probe_create_cache();
	setenv("CLIMPORT_LOG", column->log, 1);
	for (int time = 0; time < 2; time++) /* a probe answers, and a kept record */
		EXPECT_EQ(probe_run_answered(row->program), 0);
	unsetenv("CLIMPORT_LOG");
}

static int import_twice(void)
{
	cl_context context;
	cl_int err;
	int waits;

	probe_use_installed_layer();
	use_driver();
	context = clCreateContext(NULL, 1, &used_device, NULL, NULL, &err);
	if (import_bytes(context, 4096) != CL_OUT_OF_RESOURCES)
		return 1;
	waits = probe_count_waits();
	if (import_bytes(context, 4096) != CL_OUT_OF_RESOURCES)
		return 2;
	return clReleaseContext(context) || probe_count_waits() != waits ? 3 : 0;
}

TEST(import_hangs,
     "While climport-probe hangs, one import waits for it, and later ones fail at once.")
{
	probe_create_cache();
	probe_install_layer("echo ran >> $XDG_CACHE_HOME/ran; " PROBE_HANGS);
	EXPECT_EQ(probe_run_given_up(import_twice, probe_has_run), 0);
}

/* The import waits: the first probe may end. */
static bool first_may_end;

/* Nothing is waited for in between: the first probe ends, and the second starts. */
static bool second_has_run(void)
{
	char end[128];

	snprintf(end, sizeof(end), "%s/end", probe_cache);
	if (first_may_end && access(end, F_OK))
		fclose(fopen(end, "we"));
	return probe_count_runs() == 2 || (!first_may_end && probe_count_runs() == 1);
}

static int import_behind_query(void)
{
	int waits;

	probe_use_installed_layer();
	if (probe_platform_reports())
		return 1;
	use_driver();
	waits = probe_count_waits();
	first_may_end = true;
	if (!import_in_new_context())
		return 2;
	return probe_count_runs() != 2 || probe_count_waits() - waits != 1 ? 3 : 0;
}

TEST(import_hangs_twice,
     "An import that finds a probe under way, and then asks for one that hangs, waits once.")
{
	probe_create_cache();
	probe_install_layer(
		"echo ran >> $XDG_CACHE_HOME/ran; "
		"test $(wc -l < $XDG_CACHE_HOME/ran) = 2 || while test ! -e $XDG_CACHE_HOME/end; "
		"do "
		"test -d $XDG_CACHE_HOME || exit 1; sleep 0.01; done; " /* time: between two looks */
		"test $(wc -l < $XDG_CACHE_HOME/ran) = 2 || exit 1; " PROBE_HANGS);
	EXPECT_EQ(probe_run_given_up(import_behind_query, second_has_run), 0);
}

static char own_value;
static bool is_harmed;

static void own_destroy(void *value)
{
	is_harmed |= value != &own_value;
}

static void *own_query(void *keys)
{
	const pthread_key_t *key = keys;

	for (int i = 0; i < PTHREAD_KEYS_MAX; i++)
		pthread_setspecific(key[i], &own_value);
	probe_platform_reports();
	probe_device_reports();
	use_driver();
	is_harmed |= import_in_new_context();
	for (int i = 0; i < PTHREAD_KEYS_MAX; i++)
		is_harmed |= pthread_getspecific(key[i]) != &own_value;
	return NULL;
}

/* The first keys may belong to the sanitizer or the C library. */
static int without_keys(void)
{
	static pthread_key_t key[PTHREAD_KEYS_MAX];
	pthread_t thread;
	int count = 0;

	while (count < PTHREAD_KEYS_MAX && !pthread_key_create(&key[count], own_destroy))
		count++;
	for (int i = count; i < PTHREAD_KEYS_MAX; i++)
		key[i] = key[0];
	pthread_create(&thread, NULL, own_query, key);
	pthread_join(thread, NULL);
	return is_harmed;
}

TEST(no_keys,
     "If a program uses all thread-specific keys, the keys keep their values and imports work.")
{
	probe_create_cache();
	EXPECT_EQ(probe_run_program(without_keys), 0);
	EXPECT_EQ(probe_run_program(without_keys), 0);
}

static void *import_cancelled(void *unused)
{
	cl_context context;
	int before;
	cl_int err;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
	context = clCreateContext(NULL, 1, &used_device, NULL, NULL, &err);
	pthread_cancel(pthread_self());
	pthread_setcancelstate(before, NULL);
	for (size_t size = 4096; size <= sizeof(host_memory); size *= 2)
		if (import_bytes(context, size))
			return NULL;
	clReleaseContext(context);
	returned = true;
	return unused;
}

static int cancel_in_import(void)
{
	pthread_t thread;

	use_driver();
	pthread_create(&thread, NULL, import_cancelled, NULL);
	pthread_join(thread, NULL);
	return returned ? 0 : 1;
}

TEST(cancelled_import, "If a thread is cancelled before imports of nine sizes, the imports work.")
{
	probe_create_cache();
	EXPECT_EQ(probe_run_program(cancel_in_import), 0);
	EXPECT_EQ(probe_run_program(cancel_in_import), 0);
}

static int silent_in_real_time(void)
{
	const struct sched_param priority = { .sched_priority = 10 };

	return sched_setscheduler(0, SCHED_FIFO, &priority) ? 77 : probe_silent_with_installed();
}

TEST(real_time, "The probe of a program with real-time priority runs without real-time priority.")
{
	int status;

	probe_create_cache();
	probe_install_layer(
		"[ $(cut -d' ' -f41 /proc/$$/stat) = 0 ] && echo ran >> $XDG_CACHE_HOME/ran; "
		"exit 1");
	status = probe_run_program(silent_in_real_time);
	if (status == 77)
		test_skip("there is no right to real time");
	EXPECT_EQ(status, 0);
	EXPECT_EQ(probe_count_runs(), 1);
}
