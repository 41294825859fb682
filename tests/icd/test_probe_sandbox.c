/* SPDX-License-Identifier: Apache-2.0 */
/* Extension queries by programs in a sandbox, or with few resources. */
#include "probe.h"

#include <errno.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* From now on the creation of a process kills the program.  New threads are allowed. */
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
	probe_get_platform();
	return forbid_processes() ? 77 : probe_is_silent();
}

static int query_sandboxed_kept(void)
{
	probe_get_platform();
	return forbid_processes() ? 77 : probe_query_platform();
}

/* A container installs a filter before the program starts. */
static bool enter_container(void)
{
	struct sock_filter code[] = { BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW) };
	const struct sock_fprog filter = { 1, code };

	return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
	       !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
}

static int query_sandboxed_twice(void)
{
	return enter_container() ? query_sandboxed() : 77;
}

static int query_contained(void)
{
	return enter_container() ? probe_query_platform() : 77;
}

TEST(sandbox,
     "If a program has forbidden itself new processes, a query does not kill the program, and a "
     "kept answer serves.")
{
	int status;

	probe_create_cache();
	status = probe_run_program(query_sandboxed);
	if (status == 77)
		test_skip("there is no seccomp");
	EXPECT_EQ(status, 0);
	EXPECT_EQ(probe_run_program(query_sandboxed_twice), 0);
	EXPECT_EQ(probe_run_answered(query_contained), 0); /* in a container a probe answers */
	EXPECT_EQ(probe_run_program(query_sandboxed_kept), 0);
}

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

/* From now on the system call @number gets @action. */
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

/* Returns 0 if the names are reported, and 1 if the names are missing. */
static int query_in_filter(void)
{
	char text[4096] = "", names[4096] = "";
	cl_platform_id platform = probe_get_platform();
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
	cl_platform_id platform = probe_get_platform();

	prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
	clGetPlatformInfo(platform, CL_PLATFORM_EXTENSIONS, sizeof(names), names, NULL);
	return (int)syscall(SYS_exit, strstr(names, "cl_arm_import") ? 0 : 1);
}

static int query_off_in_strict_mode(void)
{
	setenv("CLIMPORT_PROBE", "off", 1);
	return query_in_strict_mode();
}

TEST(sandboxed_files, "If a program may not open files any more, a kept answer serves.")
{
	if (*SANITIZER)
		test_skip("the sanitizers make system calls of their own");
	probe_create_cache();
	EXPECT_EQ(probe_run_program(query_in_filter), 1);
	EXPECT_EQ(probe_run_program(query_off_in_strict_mode), 1);
	EXPECT_EQ(probe_run_answered(probe_query_platform), 0);
	EXPECT_EQ(probe_run_program(query_in_filter), 0);
	EXPECT_EQ(probe_run_program(query_in_strict_mode), 0);
	EXPECT_EQ(probe_run_program(query_off_in_strict_mode), 0);
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

static int silent_with_limit(void)
{
	const struct rlimit few = { 64, 64 };

	setrlimit(RLIMIT_NOFILE, &few);
	return probe_silent_with_installed();
}

TEST(limits,
     "If a probe fails under a resource limit, the failure is kept for processes with the same "
     "limit.")
{
	probe_create_cache();
	probe_install_layer("echo ran >> $XDG_CACHE_HOME/ran; exit 1");
	EXPECT_EQ(probe_run_program(silent_with_limit), 0);
	EXPECT_EQ(probe_run_program(silent_with_limit), 0);
	EXPECT_EQ(probe_count_runs(), 1);
	EXPECT_EQ(probe_run_program(probe_silent_with_installed), 0);
	EXPECT_EQ(probe_count_runs(), 2);
}

TEST(foreign_home, "A query by root creates no folder in another user's folder.")
{
	char path[128];

	probe_create_cache();
	if (geteuid() || chown(probe_cache, 65534, 65534))
		test_skip("only root can give a folder away");
	EXPECT_EQ(probe_run_answered(probe_query_platform), 0);
	snprintf(path, sizeof(path), "%s/climport", probe_cache);
	EXPECT_EQ(access(path, F_OK), -1);
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

	alarm(30);
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

/*
 * With native kernels the program tests the device, and with compiled kernels a probe tests the
 * device.  The log needs stack of its own.
 */
static const struct small_setting {
	const char *name;
	bool is_compiled, is_logged;
} small_settings[] = {
	{ "native", false, false },
	{ "compiled", true, false },
	{ "native_log", false, true },
	{ "compiled_log", true, true },
};

TEST_EACH_PAIR(small_stack, struct small_call, small_calls, struct small_setting, small_settings,
	       "A query and an import need no more stack than the smallest that a thread has.")
{
	if (*SANITIZER)
		test_skip("the sanitizers' frames are larger");
	probe_create_cache();
	if (column->is_compiled)
		setenv("STUB_NO_NATIVE_KERNEL", "1", 1);
	if (column->is_logged)
		setenv("CLIMPORT_LOG", "debug", 1);
	for (int time = 0; time < 2; time++)
		EXPECT_EQ(probe_run_program(row->program), 0);
	unsetenv("STUB_NO_NATIVE_KERNEL");
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

TEST(cancelled_import, "If a thread is cancelled before imports of nine classes, the imports work.")
{
	probe_create_cache();
	EXPECT_EQ(probe_run_program(cancel_in_import), 0);
	EXPECT_EQ(probe_run_program(cancel_in_import), 0);
}

static int without_close_range(void)
{
	filter_call(SYS_close_range, SECCOMP_RET_ERRNO | EPERM);
	return probe_query_platform();
}

TEST(no_close_range, "If the kernel or a container refuses close_range(), a probe answers.")
{
	probe_create_cache();
	EXPECT_EQ(probe_run_answered(without_close_range), 0);
}

static int silent_with_descriptors(void)
{
	for (int i = 0; i < 16; i++)
		dup(1);
	filter_call(SYS_close_range, SECCOMP_RET_ERRNO | EPERM);
	return probe_silent_with_installed();
}

/* The waiting process opens a descriptor itself, and two for a moment. */
TEST(no_descriptors_kept,
     "The process that waits for a probe keeps none of the program's descriptors open.")
{
	probe_create_cache();
	probe_install_layer("ls /proc/$PPID/fd > $XDG_CACHE_HOME/ran; exit 1");
	EXPECT_EQ(probe_run_program(silent_with_descriptors), 0);
	EXPECT(probe_count_runs() == 1 || probe_count_runs() == 2);
}

static void *wait_for_ever(void *unused)
{
	pause();
	return unused;
}

static atomic_int abort_signals;

static void abort_note(int signal)
{
	(void)signal;
	abort_signals++;
}

/* Returns 0 if a program with several threads queried, and then ended by abort(). */
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
		signal(SIGABRT, abort_note); /* as compilers in drivers do */
		filter_call(SYS_close_range, SECCOMP_RET_ERRNO | EPERM);
		probe_platform_reports();
		signal(SIGABRT, SIG_DFL);
		if (abort_signals)
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

/* A probe's processes each call setsid(). */
static int filtered_probe(void)
{
	filter_call(SYS_setsid, SECCOMP_RET_KILL_PROCESS);
	return probe_is_silent();
}

TEST(killed_probe,
     "If a program's system call filter kills the probe, no answer is kept for other programs.")
{
	probe_create_cache();
	EXPECT_EQ(probe_run_program(filtered_probe), 0);
	EXPECT_EQ(probe_count_kept(), 0);
	EXPECT_EQ(probe_run_answered(probe_query_platform), 0);
}

static int silent_with_filter(void)
{
	filter_call(SYS_setsid, SECCOMP_RET_ALLOW);
	return probe_silent_with_installed();
}

TEST(filtered,
     "If a probe fails under a system call filter, the failure is kept for processes with as many "
     "filters.")
{
	probe_create_cache();
	probe_install_layer("echo ran >> $XDG_CACHE_HOME/ran; exit 1");
	EXPECT_EQ(probe_run_program(silent_with_filter), 0);
	EXPECT_EQ(probe_run_program(silent_with_filter), 0);
	EXPECT_EQ(probe_count_runs(), 1);
	EXPECT_EQ(probe_run_program(probe_silent_with_installed), 0);
	EXPECT_EQ(probe_count_runs(), 2);
}

/* Enters a new root, in which other users may have placed a file at the probe's path. */
static bool enter_jail(void)
{
	char command[1024];

	snprintf(command, sizeof(command),
		 "mkdir %s/jail && mount -t tmpfs none %s/jail && cd %s/jail && "
		 "mkdir -p usr dev ./%s && mount --bind /usr usr && mount --bind %s ./%s && "
		 ": > dev/null && cp -d /bin /lib /lib64 . 2>/dev/null",
		 probe_cache, probe_cache, probe_cache, probe_cache, probe_cache, probe_cache);
	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    system(command))
		return false;
	snprintf(command, sizeof(command), "%s/jail", probe_cache);
	return !chroot(command) && !chdir("/");
}

static int silent_in_jail(void)
{
	probe_use_installed_layer();
	probe_get_platform();
	if (!enter_jail())
		return 77;
	return system("exit 3") == 3 << 8 ? probe_is_silent() : 78;
}

TEST(jail, "A program that changed its root after loading the layer runs no probe.")
{
	int status;

	probe_create_cache();
	probe_install_layer("echo ran >> $XDG_CACHE_HOME/ran; exit 1");
	status = probe_run_program(silent_in_jail);
	if (status == 77)
		test_skip("only root may mount");
	EXPECT_EQ(status, 0);
	EXPECT_EQ(probe_count_runs(), 0);
}

TEST(writable_probe,
     "If more users can write the probe's file than the layer's, the probe is not run.")
{
	char command[128];

	probe_create_cache();
	probe_install_layer("echo ran >> $XDG_CACHE_HOME/ran; exit 1");
	snprintf(command, sizeof(command), "chmod o+w %s/lib/tools/climport-probe", probe_cache);
	EXPECT_EQ(system(command), 0);
	EXPECT_EQ(probe_run_program(probe_silent_with_installed), 0);
	EXPECT_EQ(probe_count_runs(), 0);
	snprintf(command, sizeof(command), "chmod o-w %s/lib/tools/climport-probe", probe_cache);
	EXPECT_EQ(system(command), 0);
	EXPECT_EQ(probe_run_program(probe_silent_with_installed), 0);
	EXPECT_EQ(probe_count_runs(), 1);
}

#ifdef SYS_readlink
static int query_without_links(void)
{
	filter_call(SYS_readlink, SECCOMP_RET_KILL_PROCESS);
	return probe_query_platform();
}

TEST(killed_readlink,
     "A probe answers a program that starts under a filter that kills for readlink().")
{
	if (*SANITIZER)
		test_skip("the sanitizers make system calls of their own");
	probe_create_cache();
	EXPECT_EQ(probe_run_answered(query_without_links), 0);
}
#endif
