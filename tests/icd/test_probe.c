/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Extension queries of programs that import nothing: real processes, under the loader, over the
 * stub as an ICD.  Each test has a cache of its own.  What a query starts is seen by the files
 * that it leaves there, and by the process's threads and children.
 */
#include "harness.h"

#include <CL/cl.h>
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <CL/cl_ext.h>

#define THREADS 8

static char cache[64];
static bool on_pocl;

static int count_entries(const char *directory)
{
	DIR *dir = opendir(directory);
	int count = 0;

	while (dir && readdir(dir))
		count++;
	if (dir)
		closedir(dir);
	return count;
}

static void probe_remove_cache(void)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s", cache);
	if (*cache && system(command))
		printf("# %s is left\n", cache);
	*cache = '\0';
}

static void probe_create_cache(void)
{
	static bool registered;

	if (!registered)
		atexit(probe_remove_cache);
	registered = true;
	probe_remove_cache();
	strcpy(cache, "/tmp/climport-probe-XXXXXX");
	EXPECT(mkdtemp(cache));
	on_pocl = false;
}

/* For a real driver, PoCL. */
static void probe_create_cache_for_pocl(void)
{
	probe_create_cache();
	on_pocl = true;
}

/* Runs @program in a process that loads the layer and the driver anew. */
static int probe_run_program(int (*program)(void))
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		setenv("XDG_CACHE_HOME", cache, 1);
		if (!on_pocl)
			setenv("OCL_ICD_VENDORS", STUB_VENDORS, 1);
		setenv("OPENCL_LAYERS", LAYER_PATH, 1);
		alarm(60);
		_exit(program());
	}
	EXPECT(pid > 0);
	EXPECT_EQ(waitpid(pid, &status, 0), pid);
	if (WIFSIGNALED(status))
		printf("# signal %d\n", WTERMSIG(status));
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static double probe_clock(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/*
 * Runs a program that returns 1 without the name, where nothing is kept.  A query waits two seconds
 * for its probe: a machine that needs more is given another try, a query that ends sooner is not.
 */
static int run_answered(int (*program)(void))
{
	char forget[256];
	double start;
	int status;

	snprintf(forget, sizeof(forget), "rm -rf %s/climport %s/ran", cache, cache);
	for (int tries = 0; tries < 10; tries++) {
		start = probe_clock();
		status = probe_run_program(program);
		if (status != 1 || probe_clock() - start < 2)
			return status;
		EXPECT_EQ(system(forget), 0);
	}
	return status;
}

static cl_platform_id platform_get(void)
{
	cl_platform_id platform = NULL;

	return clGetPlatformIDs(1, &platform, NULL) ? NULL : platform;
}

static bool platform_reports(void)
{
	char text[4096] = "";

	clGetPlatformInfo(platform_get(), CL_PLATFORM_EXTENSIONS, sizeof(text), text, NULL);
	return strstr(text, "cl_arm_import_memory_host");
}

static bool probe_device_reports(void)
{
	char text[4096] = "";
	cl_device_id device;

	if (clGetDeviceIDs(platform_get(), CL_DEVICE_TYPE_ALL, 1, &device, NULL))
		return false;
	clGetDeviceInfo(device, CL_DEVICE_EXTENSIONS, sizeof(text), text, NULL);
	return strstr(text, "cl_arm_import_memory_host");
}

/* A thread that was joined is in /proc for a moment more. */
static bool threads_settle(int threads)
{
	for (int i = 0; i < 1000; i++) {
		if (count_entries("/proc/self/task") <= threads)
			return true;
		usleep(10000);
	}
	return false;
}

static void *do_nothing(void *arg)
{
	return arg;
}

/* The thread sanitizer starts a thread of its own at a program's first. */
static void start_sanitizer(void)
{
	pthread_t thread;

	if (!strcmp(SANITIZER, "thread") && !pthread_create(&thread, NULL, do_nothing, NULL))
		pthread_join(thread, NULL);
}

/* 0: the name is reported, and this process has one thread, no child and no new descriptor. */
static int platform_query(void)
{
	int fds, threads;

	platform_get();
	start_sanitizer();
	fds = count_entries("/proc/self/fd");
	threads = count_entries("/proc/self/task");
	if (!platform_reports())
		return 1;
	if (!threads_settle(threads))
		return 2;
	if (count_entries("/proc/self/fd") != fds)
		return 3;
	return waitpid(-1, NULL, __WALL | WNOHANG) < 0 && errno == ECHILD ? 0 : 4;
}

static int platform_is_silent(void)
{
	return platform_reports() ? 1 : 0;
}

static int kept_count(void)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/climport/results", cache);
	return count_entries(path);
}

TEST(first_query, "The first platform query is answered by a probe process; nothing of it stays.")
{
	probe_create_cache();
	EXPECT_EQ(run_answered(platform_query), 0);
	EXPECT(kept_count() > 2);
}

/* With no process to ask: what is kept answers. */
static int kept_query(void)
{
	setenv("CLIMPORT_PROBE", "off", 1);
	return platform_query();
}

TEST(kept_answer, "A later process is answered by what was kept.")
{
	probe_create_cache();
	EXPECT_EQ(probe_run_program(kept_query), 1);
	EXPECT_EQ(run_answered(platform_query), 0);
	EXPECT_EQ(probe_run_program(kept_query), 0);
}

static int device_query(void)
{
	return probe_device_reports() ? 0 : 1;
}

TEST(device_native, "A device query with native kernels needs no probe, and is kept.")
{
	probe_create_cache();
	setenv("CLIMPORT_PROBE", "off", 1);
	EXPECT_EQ(probe_run_program(device_query), 0);
	unsetenv("CLIMPORT_PROBE");
	EXPECT_EQ(kept_count(), 4);
}

TEST(device_compiled, "A device query without native kernels is answered by a probe process.")
{
	probe_create_cache();
	setenv("STUB_NO_NATIVE_KERNEL", "1", 1);
	setenv("CLIMPORT_PROBE", "off", 1);
	EXPECT_EQ(probe_run_program(device_query), 1);
	unsetenv("CLIMPORT_PROBE");
	EXPECT_EQ(run_answered(device_query), 0);
	unsetenv("STUB_NO_NATIVE_KERNEL");
}

static int query_twice(void)
{
	return platform_reports() && probe_device_reports() ? platform_query() : 1;
}

TEST(not_kept, "Where nothing can be kept, the probe's answer comes all the same.")
{
	probe_create_cache();
	chmod(cache, 0500);
	strcpy(cache, "/proc/nothing");
	EXPECT_EQ(run_answered(query_twice), 0);
	*cache = '\0';
}

/* The driver works in a child that is forked after the query. */
static int fork_and_use(void)
{
	cl_device_id device;
	cl_context context;
	cl_command_queue queue;
	cl_int err;
	pid_t pid;
	int status;

	if (platform_query())
		return 1;
	pid = fork();
	if (!pid) {
		unsigned char byte = 5;
		cl_mem mem;

		if (clGetDeviceIDs(platform_get(), CL_DEVICE_TYPE_ALL, 1, &device, NULL))
			_exit(1);
		context = clCreateContext(NULL, 1, &device, NULL, NULL, &err);
		queue = clCreateCommandQueueWithProperties(context, device, NULL, &err);
		mem = clCreateBuffer(context, CL_MEM_READ_WRITE, 64, NULL, &err);
		_exit(clEnqueueWriteBuffer(queue, mem, CL_TRUE, 0, 1, &byte, 0, NULL, NULL) ||
		      !platform_reports() || !probe_device_reports());
	}
	return waitpid(pid, &status, 0) == pid && !status ? 0 : 2;
}

TEST(fork, "A child that is forked after a platform query can use the driver.")
{
	for (int round = 0; round < 10; round++) {
		probe_create_cache();
		EXPECT_EQ(run_answered(fork_and_use), 0);      /* asked of a probe */
		EXPECT_EQ(probe_run_program(fork_and_use), 0); /* kept */
	}
}

static int has_platform(void)
{
	return platform_get() ? 0 : 1;
}

TEST(fork_pocl,
     "The same with a driver that starts threads when it is asked for its devices: PoCL.")
{
	probe_create_cache_for_pocl();
	if (probe_run_program(has_platform))
		test_skip("no OpenCL driver is installed");
	for (int round = 0; round < 5; round++) {
		probe_create_cache_for_pocl();
		EXPECT_EQ(run_answered(fork_and_use), 0);
		EXPECT_EQ(probe_run_program(fork_and_use), 0);
	}
}

/* Host memory is taken, dma-bufs are not. */
static int device_basic(void)
{
	char text[8192] = "";
	cl_device_id device;

	setenv("POCL_DEVICES", "basic", 1);
	setenv("CLIMPORT_PROBE", "off", 1);
	if (clGetDeviceIDs(platform_get(), CL_DEVICE_TYPE_ALL, 1, &device, NULL))
		return 1;
	clGetDeviceInfo(device, CL_DEVICE_EXTENSIONS, sizeof(text), text, NULL);
	if (!strstr(text, "cl_arm_import_memory_host"))
		return 2;
	return strstr(text, "cl_arm_import_memory_dma_buf") ? 3 : 0;
}

TEST(pocl_basic,
     "PoCL's device basic, which deadlocks when a user event is completed too early, hangs nobody.")
{
	probe_create_cache_for_pocl();
	if (probe_run_program(has_platform))
		test_skip("no OpenCL driver is installed");
	if (probe_run_program(device_basic) == 1)
		test_skip("PoCL has no device basic");
	for (int round = 0; round < 30; round++) {
		probe_create_cache_for_pocl();
		EXPECT_EQ(probe_run_program(device_basic), 0);
	}
}

static atomic_int signals;

static void note_signal(int signal)
{
	(void)signal;
	signals++;
}

static int with_handler(void)
{
	struct sigaction action = { .sa_handler = note_signal };
	int ret;

	sigaction(SIGCHLD, &action, NULL);
	ret = platform_query();
	return ret ? ret : signals;
}

static int with_ignored(void)
{
	signal(SIGCHLD, SIG_IGN);
	return platform_query();
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
	reports = platform_reports();
	stop = true;
	pthread_join(thread, NULL);
	return !reports + 2 * reaped;
}

TEST(unseen, "A program with a SIGCHLD handler, one that ignores it, and one that waits for any "
	     "child see no probe.")
{
	probe_create_cache();
	EXPECT_EQ(run_answered(with_handler), 0);
	probe_create_cache();
	EXPECT_EQ(run_answered(with_ignored), 0);
	probe_create_cache();
	EXPECT_EQ(run_answered(with_reaper), 0);
}

static int as_subreaper(void)
{
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	return platform_query();
}

TEST(subreaper, "A program that is given orphans is left no zombie.")
{
	probe_create_cache();
	EXPECT_EQ(run_answered(as_subreaper), 0);
}

/* Runs @program below a process that is given orphans, and has the one child that it knows. */
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
	return below_init(platform_query);
}

TEST(init, "An init that knows its own children alone is left no zombie of a probe.")
{
	probe_create_cache();
	EXPECT_EQ(run_answered(query_below_init), 0);
}

/* From now on a new process ends this one; a new thread does not. */
static int forbid_processes(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args)),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, CLONE_THREAD, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog filter = { sizeof(code) / sizeof(code[0]), code };

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
}

static int query_sandboxed(void)
{
	platform_get();
	return forbid_processes() ? 77 : platform_is_silent();
}

static int query_sandboxed_kept(void)
{
	platform_get();
	return forbid_processes() ? 77 : platform_query();
}

/* As a container's filter, which is there before the program. */
static int query_sandboxed_twice(void)
{
	struct sock_filter code[] = { BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW) };
	const struct sock_fprog filter = { 1, code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter))
		return 77;
	return query_sandboxed();
}

static int query_contained(void)
{
	struct sock_filter code[] = { BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW) };
	const struct sock_fprog filter = { 1, code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter))
		return 77;
	return platform_query();
}

TEST(sandbox, "A program that has forbidden itself new processes is not killed by a query, and "
	      "is answered by what is kept.")
{
	int status;

	probe_create_cache();
	status = probe_run_program(query_sandboxed);
	if (status == 77)
		test_skip("there is no seccomp");
	EXPECT_EQ(status, 0);
	EXPECT_EQ(probe_run_program(query_sandboxed_twice), 0);
	EXPECT_EQ(run_answered(query_contained), 0); /* in a container a probe is asked */
	EXPECT_EQ(probe_run_program(query_sandboxed_kept), 0);
}

static int query_without_descriptors(void)
{
	const struct rlimit few = { 64, 64 };

	platform_get();
	setrlimit(RLIMIT_NOFILE, &few);
	while (dup(1) >= 0)
		;
	return platform_reports() ? 0 : 1;
}

TEST(no_descriptors, "A program without a free descriptor is answered by a probe all the same.")
{
	probe_create_cache();
	EXPECT_EQ(run_answered(query_without_descriptors), 0);
}

/* Limits of processes do not hold for root. */
static int without_processes(void)
{
	const struct rlimit none = { 0, 0 };

	platform_get();
	if (!getuid() && (setgid(65534) || setuid(65534)))
		return 77;
	setrlimit(RLIMIT_NPROC, &none);
	return platform_is_silent();
}

TEST(no_processes, "Where no process can be made the name is not reported, and the query works.")
{
	int status;

	probe_create_cache();
	chmod(cache, 0777);
	status = probe_run_program(without_processes);
	if (status == 77)
		test_skip("the user cannot be changed");
	EXPECT_EQ(status, 0);
}

static void *query_thread(void *arg)
{
	*(bool *)arg = platform_reports();
	return NULL;
}

static int from_threads(void)
{
	pthread_t thread[THREADS];
	bool reports[THREADS];
	int missing = 0;

	platform_get();
	for (int i = 0; i < THREADS; i++)
		pthread_create(&thread[i], NULL, query_thread, &reports[i]);
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	for (int i = 0; i < THREADS; i++)
		missing += !reports[i];
	return missing ? 1 : 0;
}

static int count_lines(const char *path)
{
	FILE *file = fopen(path, "re");
	int lines = 0, c;

	while (file && (c = fgetc(file)) != EOF)
		lines += c == '\n';
	if (file)
		fclose(file);
	return lines;
}

/* A folder with the layer, and a shell script for climport-probe. */
static void probe_install_layer(const char *script, char *layer, size_t size)
{
	char command[1024];

	snprintf(layer, size, "%s/lib/icd/libCLImportMemoryLayer.so", cache);
	snprintf(
		command, sizeof(command),
		"mkdir -p %s/lib/icd %s/lib/tools && cp %s %s && cat > %s/lib/tools/climport-probe "
		"<<'EOF'\n#!/bin/sh\n%s\nEOF\nchmod +x %s/lib/tools/climport-probe",
		cache, cache, LAYER_PATH, layer, cache, script, cache);
	EXPECT_EQ(system(command), 0);
}

static char other_layer[256];

static int silent_with_other(void)
{
	int ret = 0;

	setenv("OPENCL_LAYERS", other_layer, 1);
	platform_get();
	for (int i = 0; i < 100 && !ret; i++) /* a process that waited each time had 60 seconds */
		ret = platform_is_silent();
	return ret;
}

static int query_with_other(void)
{
	setenv("OPENCL_LAYERS", other_layer, 1);
	return platform_query();
}

static int probe_count_runs(void)
{
	char ran[128];

	snprintf(ran, sizeof(ran), "%s/ran", cache);
	return count_lines(ran);
}

/* @files are kept.  A probe that this machine does not end in two seconds is one that hangs. */
static void expect_silent(const char *script, int files)
{
	double start;

	probe_create_cache();
	probe_install_layer(script, other_layer, sizeof(other_layer));
	start = probe_clock();
	EXPECT_EQ(probe_run_program(silent_with_other), 0);
	if (files || probe_clock() - start < 2)
		EXPECT_EQ(kept_count(), files ? files + 2 : 0);
	EXPECT(probe_count_runs() <= 1);
}

TEST(broken_probe, "A probe that is missing, crashes, hangs or answers nonsense costs the name "
		   "this time, no more.")
{
	expect_silent("echo ran >> $XDG_CACHE_HOME/ran; kill -KILL $$", 0);
	expect_silent("echo ran >> $XDG_CACHE_HOME/ran; head -c 9000 /dev/zero >&3; exit 127", 0);
	expect_silent("echo ran >> $XDG_CACHE_HOME/ran; echo takes 3 4000000000 3 end >&3", 0);
	expect_silent("echo ran >> $XDG_CACHE_HOME/ran; echo takes 3 1 3 >&3", 0);
	expect_silent("rm $0; exit 127", 0);
	EXPECT_EQ(probe_run_program(silent_with_other), 0); /* it is gone now */
}

/* Each kept file after @command, which has it as $f. */
static void kept_damage(const char *command)
{
	char text[512];

	snprintf(text, sizeof(text), "for f in %s/climport/results/*; do %s; done", cache, command);
	EXPECT_EQ(system(text), 0);
}

/* The probe may write its line when its asker has given it up. */
static void expect_probes(int count)
{
	for (int i = 0; i < 6000 && probe_count_runs() < count; i++)
		usleep(10000);
	EXPECT_EQ(probe_count_runs(), count);
}

static const char *const unanswering[] = {
	"echo ran >> $XDG_CACHE_HOME/ran; exit 1",
	"echo ran >> $XDG_CACHE_HOME/ran; kill -SEGV $$",
	"echo ran >> $XDG_CACHE_HOME/ran; exec sleep 4",
	"echo ran >> $XDG_CACHE_HOME/ran; printf 'takes 3 1 3' >&3",
};

#define UNANSWERING (sizeof(unanswering) / sizeof(unanswering[0]))

/* One that hangs is asked by the first process alone. */
TEST(unanswered, "A probe that crashes, hangs or answers nothing is not tried again for a while.")
{
	for (size_t i = 0; i < UNANSWERING; i++) {
		expect_silent(unanswering[i], 1);
		expect_probes(1);
		EXPECT_EQ(probe_run_program(silent_with_other), 0);
		EXPECT_EQ(probe_count_runs(), 1);
		kept_damage("touch -d '2 hours ago' $f");
		EXPECT_EQ(probe_run_program(silent_with_other), 0);
		expect_probes(2);
	}
}

static __typeof__(posix_spawn) *real_posix_spawn;
static bool spawns_slowly;

/* The layer's, too, which calls this in a process that shares its memory. */
__attribute__((visibility("default"), no_sanitize("address", "thread", "undefined"))) int
posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
	    const posix_spawnattr_t *attributes, char *const argv[], char *const envp[])
{
	const struct timespec pause = { 3, 0 };

	if (spawns_slowly)
		syscall(SYS_nanosleep, &pause, NULL);
	return real_posix_spawn(pid, path, actions, attributes, argv, envp);
}

__attribute__((constructor)) static void find_posix_spawn(void)
{
	real_posix_spawn = (__typeof__(posix_spawn) *)dlsym(RTLD_NEXT, "posix_spawn");
}

static int silent_and_slow(void)
{
	spawns_slowly = true;
	return platform_is_silent();
}

TEST(not_started, "A probe that a busy machine does not start in two seconds is asked by the next "
		  "process.")
{
	probe_create_cache();
	EXPECT_EQ(probe_run_program(silent_and_slow), 0);
	/* Nothing is kept, or by now what the late probe says: no refusal in either case. */
	EXPECT_EQ(run_answered(platform_query), 0);
}

TEST(clock_set_back, "A failed probe is not tried again when the clock was set back a bit, and is "
		     "when it was set back by hours.")
{
	expect_silent(unanswering[0], 1);
	expect_probes(1);
	kept_damage("touch -d 'now 10 minutes' $f");
	EXPECT_EQ(probe_run_program(silent_with_other), 0);
	EXPECT_EQ(probe_count_runs(), 1);
	kept_damage("touch -d 'now 2 hours' $f");
	EXPECT_EQ(probe_run_program(silent_with_other), 0);
	expect_probes(2);
}

static int device_is_silent(void)
{
	return probe_device_reports() ? 1 : 0;
}

/* What is kept says that the driver takes nothing: one that was mended since, let us say. */
static void expect_aged(int (*silent)(void), int (*reported)(void))
{
	probe_create_cache();
	EXPECT_EQ(run_answered(reported), 0);
	kept_damage("sed -i '2s/^takes.*/takes 0 1 0 end/; 2s/^[0-9]*$/0/' $f");
	EXPECT_EQ(probe_run_program(silent), 0);
	kept_damage("touch -d '50 minutes ago' $f");
	EXPECT_EQ(probe_run_program(silent), 0);
	kept_damage("touch -d '2 hours ago' $f");
	EXPECT_EQ(run_answered(reported), 0);
}

TEST(negative_age, "That a driver takes nothing is believed for an hour, of a platform and of a "
		   "device.")
{
	expect_aged(platform_is_silent, platform_query);
	expect_aged(device_is_silent, device_query);
}

static int kept_with_other(void)
{
	setenv("OPENCL_LAYERS", other_layer, 1);
	setenv("CLIMPORT_PROBE", "off", 1);
	return platform_query();
}

TEST(late_answer, "An answer that comes too late for its asker is kept for the next process.")
{
	char script[1024];
	int status = 1;

	probe_create_cache();
	snprintf(script, sizeof(script), "sleep 3; exec %s \"$@\"", PROBE_PATH);
	probe_install_layer(script, other_layer, sizeof(other_layer));
	EXPECT_EQ(probe_run_program(silent_with_other), 0);
	for (int i = 0; i < 200 && status; i++) {
		status = probe_run_program(kept_with_other);
		usleep(50000);
	}
	EXPECT_EQ(status, 0);
}

static int query_after_device(void)
{
	setenv("OPENCL_LAYERS", other_layer, 1);
	return probe_device_reports() && platform_reports() ? 0 : 1;
}

TEST(known_devices, "Where no probe answers, a platform reports what this process knows of its "
		    "devices.")
{
	probe_create_cache();
	probe_install_layer("exec sleep 4", other_layer, sizeof(other_layer));
	EXPECT_EQ(probe_run_program(query_after_device), 0);
	EXPECT_EQ(probe_run_program(silent_with_other), 0);
}

/* The answer of a fork handler does not matter: that there is one does. */
static void query_in_handler(void)
{
	platform_reports();
}

static void *query_forever(void *unused)
{
	platform_reports();
	return unused;
}

/* The handlers are older than the layer's, and a thread is in its query. */
static int fork_in_query(void)
{
	pthread_t thread;
	int status;
	pid_t pid;

	setenv("OPENCL_LAYERS", other_layer, 1);
	pthread_atfork(query_in_handler, query_in_handler, query_in_handler);
	platform_get();
	pthread_create(&thread, NULL, query_forever, NULL);
	while (!probe_count_runs())
		usleep(1000);
	pid = fork();
	if (!pid)
		_exit(0);
	if (waitpid(pid, &status, 0) != pid || status)
		return 2;
	platform_reports();
	pthread_join(thread, NULL);
	return 0;
}

TEST(fork_in_query, "Handlers of fork() may query a platform while a thread is in its first query.")
{
	if (*SANITIZER)
		test_skip("PoCL does not run with sanitizers, and the stub has fork handlers of "
			  "its own");
	probe_create_cache_for_pocl();
	if (probe_run_program(has_platform))
		test_skip("no OpenCL driver is installed");
	probe_install_layer("echo ran >> $XDG_CACHE_HOME/ran; exec sleep 4", other_layer,
			    sizeof(other_layer));
	EXPECT_EQ(probe_run_program(fork_in_query), 0);
}

/* From now on a call of @number is answered as @action says. */
static void filter_call(unsigned int number, unsigned int action)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, action),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = { sizeof(code) / sizeof(code[0]), code };

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

/* 0 with the name, 1 without. */
static int query_in_filter(void)
{
	char text[4096] = "", names[4096] = "";
	cl_platform_id platform = platform_get();
	cl_device_id device;

	clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL);
	filter_call(SYS_openat, SECCOMP_RET_KILL_PROCESS);
	clGetDeviceInfo(device, CL_DEVICE_EXTENSIONS, sizeof(text), text, NULL);
	clGetPlatformInfo(platform, CL_PLATFORM_EXTENSIONS, sizeof(names), names, NULL);
	clGetExtensionFunctionAddressForPlatform(platform, "clImportMemoryARM");
	return strstr(text, "cl_arm_import") && strstr(names, "cl_arm_import") ? 0 : 1;
}

static int query_in_strict_mode(void)
{
	char names[4096] = "";
	cl_platform_id platform = platform_get();

	prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
	clGetPlatformInfo(platform, CL_PLATFORM_EXTENSIONS, sizeof(names), names, NULL);
	return (int)syscall(SYS_exit, strstr(names, "cl_arm_import") ? 0 : 1);
}

static int query_off_in_strict_mode(void)
{
	setenv("CLIMPORT_PROBE", "off", 1);
	return query_in_strict_mode();
}

TEST(sandboxed_files,
     "A query of a program that may open no files any more is answered by what was kept.")
{
	if (*SANITIZER)
		test_skip("the sanitizers make system calls of their own");
	probe_create_cache();
	EXPECT_EQ(probe_run_program(query_in_filter), 1);
	EXPECT_EQ(probe_run_program(query_off_in_strict_mode), 1);
	EXPECT_EQ(run_answered(platform_query), 0);
	EXPECT_EQ(probe_run_program(query_in_filter), 0);
	EXPECT_EQ(probe_run_program(query_in_strict_mode), 0);
	EXPECT_EQ(probe_run_program(query_off_in_strict_mode), 0);
}

static int silent_with_ignored(void)
{
	signal(SIGCHLD, SIG_IGN);
	return silent_with_other();
}

TEST(crash_ignored, "A driver that crashes its probe is left alone also by programs that ignore "
		    "SIGCHLD.")
{
	probe_create_cache();
	probe_install_layer("echo ran >> $XDG_CACHE_HOME/ran; kill -SEGV $$", other_layer,
			    sizeof(other_layer));
	EXPECT_EQ(probe_run_program(silent_with_ignored), 0);
	EXPECT_EQ(probe_run_program(silent_with_ignored), 0);
	EXPECT_EQ(probe_count_runs(), 1);
}

static int silent_with_cores(void)
{
	struct rlimit limit;

	getrlimit(RLIMIT_CORE, &limit);
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_CORE, &limit);
	return silent_with_other();
}

TEST(no_core, "A probe that crashes leaves no core file.")
{
	probe_create_cache();
	probe_install_layer("[ $(ulimit -c) = 0 ] && echo ran >> $XDG_CACHE_HOME/ran; exit 1",
			    other_layer, sizeof(other_layer));
	EXPECT_EQ(probe_run_program(silent_with_cores), 0);
	EXPECT_EQ(probe_count_runs(), 1);
}

static int silent_with_limit(void)
{
	const struct rlimit few = { 64, 64 };

	setrlimit(RLIMIT_NOFILE, &few);
	return silent_with_other();
}

TEST(limits,
     "A probe that fails in a process with a resource limit fails for those with that limit.")
{
	probe_create_cache();
	probe_install_layer("echo ran >> $XDG_CACHE_HOME/ran; exit 1", other_layer,
			    sizeof(other_layer));
	EXPECT_EQ(probe_run_program(silent_with_limit), 0);
	EXPECT_EQ(probe_run_program(silent_with_limit), 0);
	EXPECT_EQ(probe_count_runs(), 1);
	EXPECT_EQ(probe_run_program(silent_with_other), 0);
	EXPECT_EQ(probe_count_runs(), 2);
}

TEST(foreign_home, "A query as root makes no folder in another user's.")
{
	char path[128];

	probe_create_cache();
	if (geteuid() || chown(cache, 65534, 65534))
		test_skip("only root can give a folder away");
	EXPECT_EQ(run_answered(platform_query), 0);
	snprintf(path, sizeof(path), "%s/climport", cache);
	EXPECT_EQ(access(path, F_OK), -1);
}

static atomic_bool returned;

static void *query_cancelled(void *unused)
{
	pthread_cancel(pthread_self());
	platform_reports();
	probe_device_reports();
	returned = true;
	return unused;
}

static int cancel_in_query(void)
{
	pthread_t thread;

	alarm(30);
	platform_get();
	pthread_create(&thread, NULL, query_cancelled, NULL);
	pthread_join(thread, NULL);
	if (!returned)
		return 2;
	return platform_reports() ? 0 : 1;
}

TEST(cancelled,
     "A thread that is cancelled before its first query ends it, and others have theirs.")
{
	probe_create_cache();
	EXPECT_EQ(run_answered(cancel_in_query), 0);
	EXPECT_EQ(probe_run_program(cancel_in_query), 0);
}

static int child_of_hang(void)
{
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	if (silent_with_other())
		return 1;
	return waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD ? 0 : 2;
}

TEST(init_hang, "A program that is given orphans is given none while a driver hangs.")
{
	probe_create_cache();
	probe_install_layer("exec sleep 4", other_layer, sizeof(other_layer));
	EXPECT_EQ(probe_run_program(child_of_hang), 0);
}

static void expect_probed_each_time(void)
{
	char ran[128];

	snprintf(ran, sizeof(ran), "%s/ran", cache);
	for (int time = 0; time < 2; time++) {
		unlink(ran);
		EXPECT_EQ(run_answered(query_with_other), 0);
		EXPECT_EQ(probe_count_runs(), 1);
	}
}

/* The test in the caller would refuse. */
TEST(no_library, "A driver whose library cannot be told is tested by a probe, too.")
{
	probe_create_cache();
	probe_install_layer("echo ran >> $XDG_CACHE_HOME/ran; echo takes 7 1 7 end >&3",
			    other_layer, sizeof(other_layer));
	setenv("STUB_COPYING", "1", 1);
	setenv("STUB_UNNAMED", "2", 1);
	expect_probed_each_time();
	EXPECT_EQ(kept_count(), 0);
	unsetenv("STUB_COPYING");
	probe_create_cache();
	EXPECT_EQ(run_answered(platform_query), 0); /* the probe itself finds the platform */
	EXPECT_EQ(probe_run_program(kept_query), 1);
	unsetenv("STUB_UNNAMED");
}

TEST(other_function, "A driver that does not name clIcdGetPlatformIDsKHR is known by another "
		     "function, and its answer is kept.")
{
	probe_create_cache();
	setenv("STUB_UNNAMED", "1", 1);
	EXPECT_EQ(run_answered(platform_query), 0);
	EXPECT_EQ(probe_run_program(kept_query), 0);
	unsetenv("STUB_UNNAMED");
}

static int threads_with_other(void)
{
	setenv("OPENCL_LAYERS", other_layer, 1);
	return from_threads();
}

TEST(one_probe, "Eight threads that query at once start one probe.")
{
	probe_create_cache();
	EXPECT_EQ(run_answered(from_threads), 0);
	probe_create_cache();
	probe_install_layer("echo ran >> $XDG_CACHE_HOME/ran; sleep 0.2; echo takes 7 1 7 end >&3",
			    other_layer, sizeof(other_layer));
	EXPECT_EQ(run_answered(threads_with_other), 0);
	EXPECT_EQ(probe_count_runs(), 1);
}

TEST(clean_process, "A probe has no descriptor, no signal mask and no other layer of its parent's.")
{
	probe_create_cache();
	probe_install_layer(
		"ls /proc/self/fd | wc -l > $XDG_CACHE_HOME/ran; "
		"grep SigBlk /proc/self/status | grep -qv '[1-9a-f]$' && echo unblocked >> "
		"$XDG_CACHE_HOME/ran; [ $OPENCL_LAYERS = $(realpath $0 | sed "
		"s,tools/climport-probe,icd/libCLImportMemoryLayer.so,) ] && echo alone >> "
		"$XDG_CACHE_HOME/ran; echo takes 7 1 7 end >&3",
		other_layer, sizeof(other_layer));
	EXPECT_EQ(run_answered(query_with_other), 0);
	EXPECT_EQ(probe_count_runs(), 3);
}

TEST(damaged_answers,
     "A kept file that is cut off, damaged, a FIFO or writable by others is not believed.")
{
	static const char *const commands[] = {
		"truncate -s -3 $f",
		"sed -i '2s/.*/takes nonsense/' $f",
		"sed -i '2s/.*/takes 4294967295 99/' $f",
		": > $f",
		"rm $f; mkfifo $f",
		"rm $f; mkdir $f",
		"chmod 0666 $f",
		"mv $f $f.x; ln -s $f.x $f",
	};

	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		probe_create_cache();
		EXPECT_EQ(run_answered(platform_query), 0);
		EXPECT_EQ(probe_run_program(kept_query), 0);
		kept_damage(commands[i]);
		EXPECT_EQ(probe_run_program(kept_query), 1);
	}
}

TEST(foreign_answers, "A kept file of another user is not believed.")
{
	if (getuid())
		test_skip("only root can give files away");
	probe_create_cache();
	EXPECT_EQ(run_answered(platform_query), 0);
	kept_damage("chown 12345 $f");
	EXPECT_EQ(probe_run_program(kept_query), 1);
}

TEST(another_choice, "Another choice of devices by the environment is asked anew.")
{
	static const char *const choices[] = {
		"POCL_DEVICES",		 "HSA_ENABLE_SDMA", "AMD_DEBUG",
		"INTEL_DEBUG",		 "IGC_EnableX",	    "NEOReadDebugKeys",
		"LIBGL_ALWAYS_SOFTWARE", "RADEON_THREAD",   "NV_X",
	};

	probe_create_cache();
	EXPECT_EQ(run_answered(platform_query), 0);
	for (size_t i = 0; i < sizeof(choices) / sizeof(choices[0]); i++) {
		setenv(choices[i], "1", 1);
		EXPECT_EQ(probe_run_program(kept_query), 1);
		unsetenv(choices[i]);
	}
	setenv("CLIMPORT_LOG", "off", 1);
	EXPECT_EQ(probe_run_program(kept_query), 0);
	unsetenv("CLIMPORT_LOG");
}

TEST(another_choice_of_two,
     "Two variables that change together to the same value are another choice.")
{
	static const char *const pairs[][2] = {
		{ "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES" },
		{ "CUDA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL" },
		{ "CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES" },
		{ "POCL_AFFINITY", "CL_NO_ZERO_COPY" },
	};
	static const char *const values[] = { "0", "1", "2", "4", "8" };

	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		probe_create_cache();
		for (size_t v = 0; v < sizeof(values) / sizeof(values[0]); v++) {
			setenv(pairs[i][0], values[v], 1);
			setenv(pairs[i][1], values[v], 1);
			EXPECT_EQ(probe_run_program(kept_query), 1);
			EXPECT_EQ(probe_run_program(platform_query), 0);
			EXPECT_EQ(probe_run_program(kept_query), 0);
		}
		unsetenv(pairs[i][0]);
		unsetenv(pairs[i][1]);
	}
}

TEST(another_key, "Intel's debug keys, whose names have nothing in common, are part of the choice "
		  "where they are read.")
{
	probe_create_cache();
	setenv("NEOReadDebugKeys", "1", 1);
	EXPECT_EQ(run_answered(platform_query), 0);
	EXPECT_EQ(probe_run_program(kept_query), 0);
	setenv("DisableZeroCopyForUseHostPtr", "1", 1);
	EXPECT_EQ(probe_run_program(kept_query), 1);
	unsetenv("NEOReadDebugKeys");
	unsetenv("DisableZeroCopyForUseHostPtr");
}

/* Of a device: the driver has native kernels, so that there is no probe. */
TEST(another_device_choice, "A device's results hold for the environment that they were found in.")
{
	int before;

	probe_create_cache();
	EXPECT_EQ(probe_run_program(device_query), 0);
	before = kept_count();
	EXPECT_EQ(probe_run_program(device_query), 0);
	EXPECT_EQ(kept_count(), before);
	setenv("HSA_ENABLE_SDMA", "1", 1);
	EXPECT_EQ(probe_run_program(device_query), 0);
	unsetenv("HSA_ENABLE_SDMA");
	EXPECT(kept_count() > before);
}

static int with_layer_below(void)
{
	setenv("OPENCL_LAYERS", OTHER_LAYER_PATH ":" LAYER_PATH, 1);
	return kept_query();
}

static int probe_with_layer_below(void)
{
	setenv("OPENCL_LAYERS", OTHER_LAYER_PATH ":" LAYER_PATH, 1);
	return platform_query();
}

static int with_layer_above(void)
{
	setenv("OPENCL_LAYERS", LAYER_PATH ":" OTHER_LAYER_PATH, 1);
	return kept_query();
}

TEST(another_layer, "A layer below is part of the driver that a kept answer holds for; one above "
		    "is not.")
{
	probe_create_cache();
	EXPECT_EQ(run_answered(platform_query), 0);
	EXPECT_EQ(probe_run_program(with_layer_above), 0);
	EXPECT_EQ(probe_run_program(with_layer_below), 1);
	EXPECT_EQ(run_answered(probe_with_layer_below), 0);
	EXPECT_EQ(probe_run_program(with_layer_below), 0);
}

static int after_chdir(void)
{
	char folder[256], *end;

	snprintf(folder, sizeof(folder), "%s", LAYER_PATH);
	end = strrchr(folder, '/');
	*end = '\0';
	if (chdir(folder) || setenv("OPENCL_LAYERS", "./libCLImportMemoryLayer.so", 1))
		return 9;
	platform_get();
	return chdir("/") ? 9 : platform_query();
}

TEST(relative_layer, "A program that loads the layer by a relative path may change its directory.")
{
	probe_create_cache();
	EXPECT_EQ(run_answered(after_chdir), 0);
}

typedef __typeof__(&clImportMemoryARM) import_function;

static unsigned char host_memory[1 << 20] __attribute__((aligned(4096)));
static cl_device_id used_device;
static import_function used_import;

static void use_driver(void)
{
	clGetDeviceIDs(platform_get(), CL_DEVICE_TYPE_ALL, 1, &used_device, NULL);
	used_import = (import_function)clGetExtensionFunctionAddressForPlatform(
		platform_get(), "clImportMemoryARM");
}

/* 0: it is made, and gone. */
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

	clGetPlatformInfo(platform_get(), CL_PLATFORM_EXTENSIONS, sizeof(text), text, NULL);
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

/* A frame is no larger than the guard. */
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

/* With native kernels and compiled ones: a device query is answered here, and by a probe. */
static void expect_small(int (*program)(void))
{
	probe_create_cache();
	for (int time = 0; time < 2; time++)
		EXPECT_EQ(probe_run_program(program), 0);
	probe_create_cache();
	setenv("STUB_NO_NATIVE_KERNEL", "1", 1);
	for (int time = 0; time < 2; time++)
		EXPECT_EQ(probe_run_program(program), 0);
	unsetenv("STUB_NO_NATIVE_KERNEL");
}

TEST(small_stack, "A query and an import need no more stack than the smallest that a thread has.")
{
	if (*SANITIZER)
		test_skip("the sanitizers' frames are larger");
	expect_small(small_platform_query);
	expect_small(small_device_query);
	expect_small(small_import);
}

TEST(small_stack_log, "The same where each step is logged.")
{
	if (*SANITIZER)
		test_skip("the sanitizers' frames are larger");
	setenv("CLIMPORT_LOG", "debug", 1);
	expect_small(small_platform_query);
	expect_small(small_device_query);
	expect_small(small_import);
	unsetenv("CLIMPORT_LOG");
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
	platform_reports();
	probe_device_reports();
	use_driver();
	is_harmed |= import_in_new_context();
	for (int i = 0; i < PTHREAD_KEYS_MAX; i++)
		is_harmed |= pthread_getspecific(key[i]) != &own_value;
	return NULL;
}

/* The first keys may be the sanitizer's, or the C library's. */
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

TEST(no_keys, "A program that has all thread-specific keys keeps their values, and imports.")
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

TEST(cancelled_import, "A thread that is cancelled before its imports of nine classes makes them.")
{
	probe_create_cache();
	EXPECT_EQ(probe_run_program(cancel_in_import), 0);
	EXPECT_EQ(probe_run_program(cancel_in_import), 0);
}

static int without_close_range(void)
{
	filter_call(SYS_close_range, SECCOMP_RET_ERRNO | EPERM);
	return platform_query();
}

TEST(no_close_range, "A program whose kernel or container has no close_range() is answered.")
{
	probe_create_cache();
	EXPECT_EQ(run_answered(without_close_range), 0);
}

static int silent_with_descriptors(void)
{
	for (int i = 0; i < 16; i++)
		dup(1);
	filter_call(SYS_close_range, SECCOMP_RET_ERRNO | EPERM);
	return silent_with_other();
}

/* Its own are one, or two for a moment. */
TEST(no_descriptors_kept,
     "The process that waits for a probe keeps none of that program's descriptors open.")
{
	probe_create_cache();
	probe_install_layer("ls /proc/$PPID/fd > $XDG_CACHE_HOME/ran; exit 1", other_layer,
			    sizeof(other_layer));
	EXPECT_EQ(probe_run_program(silent_with_descriptors), 0);
	EXPECT(probe_count_runs() == 1 || probe_count_runs() == 2);
}

static void *wait_for_ever(void *unused)
{
	pause();
	return unused;
}

/* 0: the program, of several threads, queried, and ended itself by abort(). */
static int abort_after_query(void)
{
	pthread_t thread;
	int status = 0;
	pid_t pid;

	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("none", "/proc", "tmpfs", 0, NULL))
		return 77;
	pid = fork();
	if (!pid) {
		alarm(20);
		pthread_create(&thread, NULL, wait_for_ever, NULL);
		signal(SIGABRT, note_signal); /* as compilers in drivers do */
		filter_call(SYS_close_range, SECCOMP_RET_ERRNO | EPERM);
		platform_reports();
		signal(SIGABRT, SIG_DFL);
		if (signals)
			_exit(1);
		abort();
	}
	if (waitpid(pid, &status, 0) != pid)
		return 9;
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT ? 0 : 1;
}

TEST(abort, "A program without close_range() and /proc can abort() after a query.")
{
	int status;

	if (*SANITIZER)
		test_skip("the sanitizers need /proc");
	probe_create_cache();
	status = probe_run_program(abort_after_query);
	if (status == 77)
		test_skip("only root may mount");
	EXPECT_EQ(status, 0);
}

static int silent_in_real_time(void)
{
	const struct sched_param priority = { .sched_priority = 10 };

	return sched_setscheduler(0, SCHED_FIFO, &priority) ? 77 : silent_with_other();
}

TEST(real_time, "A probe of a program in real time is not run in real time.")
{
	int status;

	probe_create_cache();
	probe_install_layer(
		"[ $(cut -d' ' -f41 /proc/$$/stat) = 0 ] && echo ran >> $XDG_CACHE_HOME/ran; "
		"exit 1",
		other_layer, sizeof(other_layer));
	status = probe_run_program(silent_in_real_time);
	if (status == 77)
		test_skip("there is no right to real time");
	EXPECT_EQ(status, 0);
	EXPECT_EQ(probe_count_runs(), 1);
}

/* Each process of the probe's begins a session. */
static int filtered_probe(void)
{
	filter_call(SYS_setsid, SECCOMP_RET_KILL_PROCESS);
	return platform_is_silent();
}

TEST(killed_probe, "A probe that a process's filter of system calls kills says nothing to others.")
{
	probe_create_cache();
	EXPECT_EQ(probe_run_program(filtered_probe), 0);
	EXPECT_EQ(kept_count(), 0);
	EXPECT_EQ(run_answered(platform_query), 0);
}

static int silent_with_filter(void)
{
	filter_call(SYS_setsid, SECCOMP_RET_ALLOW);
	return silent_with_other();
}

TEST(filtered, "A probe that fails in a process with a filter of system calls fails for those with "
	       "as many.")
{
	probe_create_cache();
	probe_install_layer("echo ran >> $XDG_CACHE_HOME/ran; exit 1", other_layer,
			    sizeof(other_layer));
	EXPECT_EQ(probe_run_program(silent_with_filter), 0);
	EXPECT_EQ(probe_run_program(silent_with_filter), 0);
	EXPECT_EQ(probe_count_runs(), 1);
	EXPECT_EQ(probe_run_program(silent_with_other), 0);
	EXPECT_EQ(probe_count_runs(), 2);
}

/* Another root, in which others may have put what the probe's path leads to. */
static bool enter_jail(void)
{
	char command[1024];

	snprintf(command, sizeof(command),
		 "mkdir %s/jail && mount -t tmpfs none %s/jail && cd %s/jail && "
		 "mkdir -p usr dev ./%s && mount --bind /usr usr && mount --bind %s ./%s && "
		 ": > dev/null && cp -d /bin /lib /lib64 . 2>/dev/null",
		 cache, cache, cache, cache, cache, cache);
	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    system(command))
		return false;
	snprintf(command, sizeof(command), "%s/jail", cache);
	return !chroot(command) && !chdir("/");
}

static int silent_in_jail(void)
{
	setenv("OPENCL_LAYERS", other_layer, 1);
	platform_get();
	if (!enter_jail())
		return 77;
	return system("exit 3") == 3 << 8 ? platform_is_silent() : 78;
}

TEST(jail, "A program that has another root than when it loaded the layer runs no probe.")
{
	int status;

	probe_create_cache();
	probe_install_layer("echo ran >> $XDG_CACHE_HOME/ran; exit 1", other_layer,
			    sizeof(other_layer));
	status = probe_run_program(silent_in_jail);
	if (status == 77)
		test_skip("only root may mount");
	EXPECT_EQ(status, 0);
	EXPECT_EQ(probe_count_runs(), 0);
}

TEST(writable_probe, "A probe that others may write than the layer is not run.")
{
	char command[128];

	probe_create_cache();
	probe_install_layer("echo ran >> $XDG_CACHE_HOME/ran; exit 1", other_layer,
			    sizeof(other_layer));
	snprintf(command, sizeof(command), "chmod o+w %s/lib/tools/climport-probe", cache);
	EXPECT_EQ(system(command), 0);
	EXPECT_EQ(probe_run_program(silent_with_other), 0);
	EXPECT_EQ(probe_count_runs(), 0);
	snprintf(command, sizeof(command), "chmod o-w %s/lib/tools/climport-probe", cache);
	EXPECT_EQ(system(command), 0);
	EXPECT_EQ(probe_run_program(silent_with_other), 0);
	EXPECT_EQ(probe_count_runs(), 1);
}

static int query_by_link(void)
{
	char link[128];

	snprintf(link, sizeof(link), "%s/link.so", cache);
	if (symlink(LAYER_PATH, link) && errno != EEXIST)
		return 9;
	setenv("OPENCL_LAYERS", link, 1);
	return platform_query();
}

TEST(linked_layer, "A program that loads the layer by a link is answered by a probe.")
{
	probe_create_cache();
	EXPECT_EQ(run_answered(query_by_link), 0);
}

#ifdef SYS_readlink
static int query_without_links(void)
{
	filter_call(SYS_readlink, SECCOMP_RET_KILL_PROCESS);
	return platform_query();
}

TEST(killed_readlink, "A program that is started under a filter that kills for readlink() is "
		      "answered.")
{
	if (*SANITIZER)
		test_skip("the sanitizers make system calls of their own");
	probe_create_cache();
	EXPECT_EQ(run_answered(query_without_links), 0);
}
#endif
