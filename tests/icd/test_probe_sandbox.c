/* SPDX-License-Identifier: Apache-2.0 */
/* Extension queries by programs in a sandbox: filters of system calls, containers, other roots. */
#include "probe.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/mount.h>
#include <sys/prctl.h>
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

TEST(foreign_home, "A query by root keeps nothing in another user's folder.")
{
	char path[128];

	probe_create_cache();
	if (geteuid() || chown(probe_cache, 65534, 65534))
		test_skip("only root can give a folder away");
	EXPECT_EQ(probe_run_answered(probe_query_platform), 0);
	snprintf(path, sizeof(path), "%s/climport", probe_cache);
	EXPECT_EQ(access(path, F_OK), -1);
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

/* The waiting process opens /dev/null three times, and the record's file. */
TEST(no_descriptors_kept,
     "The process that waits for a probe keeps none of the program's descriptors open.")
{
	probe_create_cache();
	probe_install_layer("ls /proc/$PPID/fd > $XDG_CACHE_HOME/ran; exit 1");
	EXPECT_EQ(probe_run_program(silent_with_descriptors), 0);
	EXPECT(probe_count_runs() == 4);
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
		alarm(TEST_HANG_S);
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

static char sandbox_notice[512];

static void CL_CALLBACK sandbox_note(const char *text, const void *info, size_t size, void *arg)
{
	(void)info;
	(void)size;
	(void)arg;
	snprintf(sandbox_notice, sizeof(sandbox_notice), "%s", text);
}

/* Returns 0 if the error of an import names the file. */
static int import_without_dev_null(void)
{
	static unsigned char memory[4096] __attribute__((aligned(4096)));
	cl_platform_id platform = probe_get_platform();
	__typeof__(&clImportMemoryARM) import;
	cl_context context;
	cl_device_id device;
	cl_int err;

	clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL);
	context = clCreateContext(NULL, 1, &device, sandbox_note, NULL, &err);
	import = (__typeof__(import))clGetExtensionFunctionAddressForPlatform(platform,
									      "clImportMemoryARM");
	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("none", "/dev", "tmpfs", 0, NULL))
		return 77;
	if (import(context, CL_MEM_READ_WRITE, NULL, memory, sizeof(memory), &err))
		return 1;
	clReleaseContext(context);
	return strstr(sandbox_notice, "/dev/null: No such file") ? 0 : 2;
}

TEST(no_dev_null, "Without /dev/null no probe is run, and an import's error says so.")
{
	int status;

	probe_create_cache();
	status = probe_run_program(import_without_dev_null);
	if (status == 77)
		test_skip("only root may mount");
	EXPECT_EQ(status, 0);
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
