/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Extension queries by programs without imports.  A probe process answers the queries, and the
 * program does not notice the probe.
 */
#include "probe.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS 8

TEST(first_query,
     "A probe process answers the first platform query, and leaves no process, thread or "
     "descriptor.")
{
	probe_create_cache();
	EXPECT_EQ(probe_run_answered(probe_query_platform), 0);
	EXPECT(probe_count_kept() > 2);
}

TEST(files, "climport-probe gets the files of the program's loader and driver.")
{
	char script[1024];
	Dl_info loader;

	EXPECT(dladdr((void *)clGetPlatformIDs, &loader));
	snprintf(script, sizeof(script),
		 "[ \"$1\" -ef %s ] && [ \"$2\" -ef " STUB_PATH " ] && exec " PROBE_ANSWERS,
		 loader.dli_fname);
	probe_create_cache();
	probe_install_layer(script);
	EXPECT_EQ(probe_run_answered(probe_query_with_installed), 0);
}

TEST(no_loader,
     "A file with the loader's code that exports no OpenCL is passed over: the system's is taken.")
{
	probe_create_cache();
	probe_install_layer("exec " PROBE_PATH " libm.so.6 \"$2\" \"$3\" ${4+\"$4\"}");
	EXPECT_EQ(probe_run_answered(probe_query_with_installed), 0);
}

/* The file for the loader has the driver's name alone, and this program has loaded the driver. */
static int query_driver_by_name(void)
{
	char vendors[128], file[160];
	FILE *icd;

	snprintf(vendors, sizeof(vendors), "%s/vendors", probe_cache);
	snprintf(file, sizeof(file), "%s/stub.icd", vendors);
	mkdir(vendors, 0700);
	icd = fopen(file, "we");
	if (!icd || !dlopen(STUB_PATH, RTLD_NOW | RTLD_LOCAL))
		return 1;
	fprintf(icd, "%s\n", strrchr(STUB_PATH, '/') + 1);
	fclose(icd);
	setenv("OCL_ICD_VENDORS", vendors, 1);
	return probe_query_platform();
}

TEST(driver_by_name,
     "A driver that the loader finds only because the program has loaded it is tested, too.")
{
	probe_create_cache();
	EXPECT_EQ(probe_run_answered(query_driver_by_name), 0);
}

typedef __typeof__(&clImportMemoryARM) import_function;

/* The error of an import, and whether the names are reported: NAMES_REPORTED is added. */
#define NAMES_REPORTED 100

static int import_without_tests(void)
{
	import_function import = (import_function)clGetExtensionFunctionAddressForPlatform(
		probe_get_platform(), "clImportMemoryARM");
	static unsigned char memory[4096];
	cl_device_id device;
	cl_context context;
	cl_int err = 1;
	bool reports;

	setenv("CLIMPORT_PROBE", "off", 1);
	reports = probe_platform_reports() && probe_device_reports();
	if (!import || clGetDeviceIDs(probe_get_platform(), CL_DEVICE_TYPE_ALL, 1, &device, NULL))
		return -1;
	context = clCreateContext(NULL, 1, &device, NULL, NULL, &err);
	if (context)
		import(context, CL_MEM_READ_WRITE, NULL, memory, sizeof(memory), &err);
	return reports * NAMES_REPORTED - err;
}

TEST(off,
     "With CLIMPORT_PROBE=off the names are missing and imports are CL_OUT_OF_RESOURCES, unless "
     "a record is kept.")
{
	probe_create_cache();
	EXPECT_EQ(probe_run_program(import_without_tests), -CL_OUT_OF_RESOURCES);
	EXPECT_EQ(probe_count_kept(), 0);
	EXPECT_EQ(probe_run_answered(probe_query_platform), 0);
	EXPECT_EQ(probe_run_program(import_without_tests), NAMES_REPORTED);
}

static const struct kernels {
	const char *name, *lacks_native;
} kernels[] = { { "native", "0" }, { "compiled", "1" } };

TEST_EACH(device, struct kernels, kernels, "A probe process answers the first device query.")
{
	probe_create_cache();
	setenv("STUB_NO_NATIVE_KERNEL", row->lacks_native, 1);
	EXPECT_EQ(probe_run_answered(probe_query_device), 0);
	setenv("CLIMPORT_PROBE", "off", 1);
	EXPECT_EQ(probe_run_program(probe_query_device), 0);
	unsetenv("CLIMPORT_PROBE");
	unsetenv("STUB_NO_NATIVE_KERNEL");
}

/* What a device reports: host memory, and dma-bufs. */
enum { REPORTS_HOST = 1, REPORTS_DMABUF = 2 };

static int device_query_types(void)
{
	char text[8192] = "";
	cl_device_id device;

	if (clGetDeviceIDs(probe_get_platform(), CL_DEVICE_TYPE_ALL, 1, &device, NULL))
		return -1;
	clGetDeviceInfo(device, CL_DEVICE_EXTENSIONS, sizeof(text), text, NULL);
	return (strstr(text, "cl_arm_import_memory_host") ? REPORTS_HOST : 0) +
	       (strstr(text, "cl_arm_import_memory_dma_buf") ? REPORTS_DMABUF : 0);
}

TEST(user_events,
     "A device whose driver crashes in the self-test of user events takes host memory, "
     "and no dma-bufs.")
{
	probe_create_cache();
	setenv("STUB_FINISH_EARLY", "2", 1);
	EXPECT_EQ(probe_run_answered(device_query_types), REPORTS_HOST);
	unsetenv("STUB_FINISH_EARLY");
	EXPECT_EQ(probe_run_answered(device_query_types), REPORTS_HOST | REPORTS_DMABUF);
}

/* Uses the driver in a child, forked after a query. */
static int fork_and_use(void)
{
	cl_device_id device;
	cl_context context;
	cl_command_queue queue;
	cl_int err;
	pid_t pid;
	int status;

	if (probe_query_platform())
		return 1;
	pid = fork();
	if (!pid) {
		unsigned char byte = 5;
		cl_mem mem;

		if (clGetDeviceIDs(probe_get_platform(), CL_DEVICE_TYPE_ALL, 1, &device, NULL))
			_exit(1);
		context = clCreateContext(NULL, 1, &device, NULL, NULL, &err);
		queue = clCreateCommandQueueWithProperties(context, device, NULL, &err);
		mem = clCreateBuffer(context, CL_MEM_READ_WRITE, 64, NULL, &err);
		_exit(clEnqueueWriteBuffer(queue, mem, CL_TRUE, 0, 1, &byte, 0, NULL, NULL) ||
		      !probe_platform_reports() || !probe_device_reports());
	}
	return waitpid(pid, &status, 0) == pid && !status ? 0 : 2;
}

TEST(fork, "A child that is forked after a platform query can use the driver.")
{
	for (int round = 0; round < 10; round++) {
		probe_create_cache();
		EXPECT_EQ(probe_run_answered(fork_and_use), 0); /* a probe answers */
		EXPECT_EQ(probe_run_program(fork_and_use), 0);	/* a kept answer */
	}
}

TEST(fork_pocl,
     "If a driver starts threads in device queries, as PoCL does, a forked child can use the "
     "driver.")
{
	probe_create_cache_for_pocl();
	if (probe_run_program(probe_has_platform))
		test_skip("no OpenCL driver is installed");
	for (int round = 0; round < 5; round++) {
		probe_create_cache_for_pocl();
		EXPECT_EQ(probe_run_answered(fork_and_use), 0);
		EXPECT_EQ(probe_run_program(fork_and_use), 0);
	}
}

static int device_basic(void)
{
	setenv("POCL_DEVICES", "basic", 1);
	return device_query_types();
}

TEST(pocl_basic, "PoCL's device basic, which deadlocks if a user event is completed too early, "
		 "takes host memory "
		 "and no dma-bufs.")
{
	probe_create_cache_for_pocl();
	if (probe_run_program(probe_has_platform))
		test_skip("no OpenCL driver is installed");
	if (probe_run_program(device_basic) < 0)
		test_skip("PoCL has no device basic");
	for (int round = 0; round < 30; round++) {
		probe_create_cache_for_pocl();
		EXPECT_EQ(probe_run_answered(device_basic), REPORTS_HOST);
	}
}

static atomic_int handled;

static void handler_note(int signal)
{
	(void)signal;
	handled++;
}

static int with_handler(void)
{
	struct sigaction action = { .sa_handler = handler_note };
	int ret;

	sigaction(SIGCHLD, &action, NULL);
	ret = probe_query_platform();
	return ret ? ret : handled;
}

static int with_ignored(void)
{
	signal(SIGCHLD, SIG_IGN);
	return probe_query_platform();
}

static atomic_bool stop, reaped;

static void *reap_children(void *arg)
{
	(void)arg;
	while (!stop)
		if (waitpid(-1, NULL, 0) > 0)
			reaped = true;
	return NULL;
}

static int with_reaper(void)
{
	pthread_t thread;
	bool reports;

	pthread_create(&thread, NULL, reap_children, NULL);
	reports = probe_platform_reports();
	stop = true;
	pthread_join(thread, NULL);
	return !reports + 2 * reaped;
}

/* Programs with their own treatment of children. */
static const struct parent {
	const char *name;
	int (*query)(void);
} parents[] = { { "handler", with_handler },
		{ "ignored", with_ignored },
		{ "reaper", with_reaper } };

TEST_EACH(unseen, struct parent, parents,
	  "A program that handles SIGCHLD, ignores SIGCHLD or waits for any child sees no probe.")
{
	probe_create_cache();
	EXPECT_EQ(probe_run_answered(row->query), 0);
}

static int as_subreaper(void)
{
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	return probe_query_platform();
}

TEST(subreaper, "A program that adopts orphans gets no zombie from a probe.")
{
	probe_create_cache();
	EXPECT_EQ(probe_run_answered(as_subreaper), 0);
}

/* Runs @program as the only expected child of a process that adopts orphans. */
static int below_init(int (*program)(void))
{
	int status;
	pid_t pid;

	prctl(PR_SET_CHILD_SUBREAPER, 1);
	pid = fork();
	if (!pid)
		_exit(program());
	if (waitpid(pid, &status, 0) != pid || status)
		return 1;
	return waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD ? 0 : 2;
}

static int query_below_init(void)
{
	return below_init(probe_query_platform);
}

TEST(init, "An init process that expects only its own children gets no zombie from a probe.")
{
	probe_create_cache();
	EXPECT_EQ(probe_run_answered(query_below_init), 0);
}

static void *query_thread(void *arg)
{
	*(bool *)arg = probe_platform_reports();
	return NULL;
}

static int from_threads(void)
{
	pthread_t thread[THREADS];
	bool reports[THREADS];
	int missing = 0;

	probe_get_platform();
	for (int i = 0; i < THREADS; i++)
		pthread_create(&thread[i], NULL, query_thread, &reports[i]);
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	for (int i = 0; i < THREADS; i++)
		missing += !reports[i];
	return missing ? 1 : 0;
}

/* The query in a fork handler must return; the answer does not matter. */
static void query_in_handler(void)
{
	probe_platform_reports();
}

static void *query_forever(void *unused)
{
	probe_platform_reports();
	return unused;
}

/* The program's handlers are older than the layer's, and a thread is in a query at the fork. */
static int fork_in_query(void)
{
	pthread_t thread;
	int status;
	pid_t pid;

	probe_use_installed_layer();
	pthread_atfork(query_in_handler, query_in_handler, query_in_handler);
	probe_get_platform();
	pthread_create(&thread, NULL, query_forever, NULL);
	while (!probe_count_runs())
		usleep(1000); /* time: between two looks at the file */
	pid = fork();
	if (!pid)
		_exit(0);
	if (waitpid(pid, &status, 0) != pid || status)
		return 2;
	probe_platform_reports();
	pthread_join(thread, NULL);
	return 0;
}

TEST(fork_in_query,
     "Fork handlers can query a platform while a thread is in the program's first query.")
{
	if (*SANITIZER)
		test_skip("PoCL does not run with sanitizers, and the stub has fork handlers of "
			  "its own");
	probe_create_cache_for_pocl();
	if (probe_run_program(probe_has_platform))
		test_skip("no OpenCL driver is installed");
	probe_install_layer("echo ran >> $XDG_CACHE_HOME/ran; " PROBE_HANGS);
	EXPECT_EQ(probe_run_program(fork_in_query), 0);
}

static int child_of_hang(void)
{
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	if (probe_silent_with_installed())
		return 1;
	return waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD ? 0 : 2;
}

TEST(init_hang, "If a driver hangs, a program that adopts orphans gets no orphan from the probe.")
{
	probe_create_cache();
	probe_install_layer(PROBE_HANGS);
	EXPECT_EQ(probe_run_program(child_of_hang), 0);
}

static const struct end {
	const char *name, *script, *sentence;
} ends[] = {
	{ "crash", "exit 139",
	  "the process that tests the driver died as the driver started: Segmentation fault" },
	{ "no_memory", "exit 137",
	  "the process that tests the driver died as the driver started: Killed" },
	{ "no_signal", "exit 200", "climport-probe ended with status 200" },
	{ "lost", "exit 126", "climport-probe did not find the platform again, or had no memory" },
	{ "hang", "exit 255", "the driver hangs when it starts" },
	{ "status", "exit 3", "climport-probe ended with status 3" },
	{ "killed", "kill -9 $$", "climport-probe was ended by signal 9" },
}, *end_now;

static char end_message[512];

static void CL_CALLBACK end_note(const char *message, const void *info, size_t size, void *unused)
{
	(void)info, (void)size, (void)unused;
	snprintf(end_message, sizeof(end_message), "%s", message);
}

static int end_import(void)
{
	static char memory[4096] __attribute__((aligned(4096)));
	import_function import;
	cl_context context;
	cl_device_id device;
	cl_int err;

	probe_use_installed_layer();
	import = (import_function)clGetExtensionFunctionAddressForPlatform(probe_get_platform(),
									   "clImportMemoryARM");
	if (clGetDeviceIDs(probe_get_platform(), CL_DEVICE_TYPE_ALL, 1, &device, NULL))
		return 1;
	context = clCreateContext(NULL, 1, &device, end_note, NULL, &err);
	if (!import || err)
		return 2;
	import(context, CL_MEM_READ_WRITE, NULL, memory, sizeof(memory), &err);
	clReleaseContext(context);
	if (err != CL_OUT_OF_RESOURCES)
		return -err;
	return strstr(end_message, end_now->sentence) ? 0 : 3;
}

TEST_EACH(end, struct end, ends,
	  "An import says how climport-probe ended that has found out nothing.")
{
	probe_create_cache();
	probe_install_layer(row->script);
	end_now = row;
	EXPECT_EQ(probe_run_answered(end_import), 0);
}

static int query_threads_with_installed(void)
{
	probe_use_installed_layer();
	return from_threads();
}

TEST(one_probe, "Eight threads that query at once start one probe.")
{
	probe_create_cache();
	EXPECT_EQ(probe_run_answered(from_threads), 0);
	probe_create_cache();
	/* time: a slow probe, for no check */
	probe_install_layer("echo ran >> $XDG_CACHE_HOME/ran; sleep 0.2; " PROBE_ANSWERS);
	EXPECT_EQ(probe_run_answered(query_threads_with_installed), 0);
	EXPECT_EQ(probe_count_runs(), 1);
}

TEST(clean_process,
     "A probe inherits no descriptor, no signal mask and no other layer from the program.")
{
	probe_create_cache();
	/* The lines appear at once: on a loaded machine a probe that was given up may still write. */
	probe_install_layer(
		"lines=$XDG_CACHE_HOME/ran.$$; ls /proc/self/fd | wc -l > $lines; "
		"grep SigBlk /proc/self/status | grep -qv '[1-9a-f]$' && echo unblocked >> $lines; "
		"[ $OPENCL_LAYERS = $(realpath $0 | sed "
		"s,tools/climport-probe,icd/libCLImportMemoryLayer.so,) ] && echo alone >> $lines; "
		"mv $lines $XDG_CACHE_HOME/ran; " PROBE_ANSWERS);
	EXPECT_EQ(probe_run_answered(probe_query_with_installed), 0);
	EXPECT_EQ(probe_count_runs(), 3);
}

static int after_chdir(void)
{
	char folder[256], *end;

	snprintf(folder, sizeof(folder), "%s", LAYER_PATH);
	end = strrchr(folder, '/');
	*end = '\0';
	if (chdir(folder) || setenv("OPENCL_LAYERS", "./libCLImportMemoryLayer.so", 1))
		return 9;
	probe_get_platform();
	return chdir("/") ? 9 : probe_query_platform();
}

TEST(relative_layer,
     "A program that loads the layer by a relative path may change its directory before a query.")
{
	probe_create_cache();
	EXPECT_EQ(probe_run_answered(after_chdir), 0);
}

/* Makes two folders of the cache, and goes into the first; the second has files of the same names. */
static void folders_enter(char name[2][128])
{
	char command[2048];

	for (int i = 0; i < 2; i++)
		snprintf(name[i], 128, "%s/folder%d", probe_cache, i);
	snprintf(command, sizeof(command),
		 "mkdir %s %s && cp " STUB_PATH
		 " %s/driver.so && echo ./driver.so > %s/driver.icd && "
		 "touch %s/driver.so %s/loader.so",
		 name[0], name[1], name[0], name[0], name[1], name[1]);
	EXPECT_EQ(system(command), 0);
	EXPECT_EQ(chdir(name[0]), 0);
}

static int query_elsewhere_of_relative_driver(void)
{
	char folder[2][128];

	folders_enter(folder);
	setenv("OCL_ICD_VENDORS", folder[0], 1);
	probe_use_installed_layer();
	if (!probe_get_platform() || chdir(folder[1]))
		return 9;
	return probe_is_silent();
}

TEST(relative_driver, "climport-probe gets no driver that the program has loaded by a relative "
		      "name: the program may "
		      "have changed its directory.")
{
	probe_create_cache();
	probe_install_layer(
		"test -n \"$1\" -a -z \"$2\" && echo ran >> $XDG_CACHE_HOME/ran; exit 1");
	EXPECT_EQ(probe_run_answered(query_elsewhere_of_relative_driver), 0);
	EXPECT_EQ(probe_count_runs(), 1);
}

static int query_elsewhere_of_relative_loader(void)
{
	__typeof__(&clGetPlatformIDs) get_platforms;
	__typeof__(&clGetPlatformInfo) get_info;
	char folder[2][128], command[512], text[4096];
	cl_platform_id platform;
	Dl_info loader;
	void *copy;

	EXPECT(dladdr((void *)clGetPlatformIDs, &loader));
	folders_enter(folder);
	snprintf(command, sizeof(command), "cp %s loader.so", loader.dli_fname);
	EXPECT_EQ(system(command), 0);
	copy = dlopen("./loader.so", RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
	get_platforms = (__typeof__(get_platforms))dlsym(copy, "clGetPlatformIDs");
	get_info = (__typeof__(get_info))dlsym(copy, "clGetPlatformInfo");
	probe_use_installed_layer();
	if (chdir(folder[1]) || get_platforms(1, &platform, NULL))
		return 9;
	return get_info(platform, CL_PLATFORM_EXTENSIONS, sizeof(text), text, NULL);
}

TEST(relative_loader, "Nor does it get a loader by a relative name.")
{
	if (*SANITIZER)
		test_skip("the sanitizers bear no libraries with functions of their own");
	probe_create_cache();
	probe_install_layer(
		"test -z \"$1\" -a -n \"$2\" && echo ran >> $XDG_CACHE_HOME/ran; exit 1");
	EXPECT_EQ(probe_run_answered(query_elsewhere_of_relative_loader), 0);
	EXPECT_EQ(probe_count_runs(), 1);
}

static int query_by_link(void)
{
	char link[128];

	snprintf(link, sizeof(link), "%s/link.so", probe_cache);
	if (symlink(LAYER_PATH, link) && errno != EEXIST)
		return 9;
	setenv("OPENCL_LAYERS", link, 1);
	return probe_query_platform();
}

TEST(linked_layer, "A probe answers a program that loads the layer by a symbolic link.")
{
	probe_create_cache();
	EXPECT_EQ(probe_run_answered(query_by_link), 0);
}
