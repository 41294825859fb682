/* SPDX-License-Identifier: Apache-2.0 */
/* How the memory monitor starts its threads. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness.h"
#include "monitor_fixture.h"
#include "process.h"
#include "thread_fixture.h"

#define SIZE ((size_t)1 << 20)
#define PATIENCE_S 60

static void start_in_child(void (*body)(void))
{
	monitor_fixture_needed();
	test_in_child(body);
}

/* What systemd's list @system-service lacks: SystemCallFilter= ends a process that calls these. */
static const int outside_services[] = {
	SYS_acct,
	SYS_adjtimex,
	SYS_bpf,
	SYS_chroot,
	SYS_clock_adjtime,
	SYS_clock_settime,
	SYS_delete_module,
	SYS_fanotify_init,
	SYS_fanotify_mark,
	SYS_finit_module,
	SYS_fsconfig,
	SYS_fsmount,
	SYS_fsopen,
	SYS_fspick,
	SYS_init_module,
	SYS_kexec_load,
	SYS_lookup_dcookie,
	SYS_mincore,
	SYS_mount,
	SYS_mount_setattr,
	SYS_move_mount,
	SYS_open_by_handle_at,
	SYS_open_tree,
	SYS_perf_event_open,
	SYS_pidfd_getfd,
	SYS_pivot_root,
	SYS_pkey_alloc,
	SYS_pkey_free,
	SYS_pkey_mprotect,
	SYS_ptrace,
	SYS_quotactl,
	SYS_reboot,
	SYS_seccomp,
	SYS_setdomainname,
	SYS_sethostname,
	SYS_settimeofday,
	SYS_swapoff,
	SYS_swapon,
	SYS_syslog,
	SYS_umount2,
	SYS_vhangup,
};

/* The list @resources, which many services do without. */
static const int resources[] = {
	SYS_ioprio_set,	       SYS_mbind,	  SYS_migrate_pages,  SYS_move_pages,
	SYS_sched_setaffinity, SYS_sched_setattr, SYS_sched_setparam, SYS_sched_setscheduler,
	SYS_set_mempolicy,     SYS_setpriority,
};

struct service {
	const char *name;
	const int *without;
	int count;
};

#define COUNT(array) ((int)(sizeof(array) / sizeof(*(array))))

static const struct service services[] = {
	{ "system_service", outside_services, COUNT(outside_services) },
	{ "without_resources", resources, COUNT(resources) },
};

/* The filter of a service, which ends the process for each system call of the list. */
static void service_enter(const struct service *service)
{
	struct sock_filter code[2 * 64 + 2];
	struct sock_fprog filter = { 0, code };

	code[filter.len++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
							  offsetof(struct seccomp_data, nr));
	for (int i = 0; i < service->count; i++) {
		unsigned int number = (unsigned int)service->without[i];

		code[filter.len++] =
			(struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1);
		code[filter.len++] =
			(struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
	}
	code[filter.len++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter))
		_exit(77);
}

/* The program of the service: its filter is older than climport. */
static void service_main(void)
{
	struct watch watch;
	char *p;

	alarm(PATIENCE_S);
	p = monitor_fixture_map(SIZE);
	watch = monitor_fixture_watch(p, SIZE);
	EXPECT(!munmap(p, PAGE));
	EXPECT(!watch_is_current(&watch));
	watch_put(&watch);
	watch = monitor_fixture_watch(p + PAGE, SIZE - PAGE);
	watch_put(&watch);
	EXPECT_EQ(monitor_fixture_registered(p, SIZE), 0);
}

TEST_EACH(service, struct service, services,
	  "A service may have watches where a filter ends services for unusual system calls.")
{
	int status = -1;
	pid_t child;

	if (getenv("IN_SERVICE")) {
		service_main();
		return;
	}
	monitor_fixture_needed();
	fflush(stdout);
	child = fork();
	if (!child) {
		char test[64];

		snprintf(test, sizeof(test), "service_%s", row->name);
		setenv("IN_SERVICE", "1", 1);
		setenv("LSAN_OPTIONS", "detect_leaks=0", 1); /* calls ptrace() */
		dup2(STDERR_FILENO, STDOUT_FILENO);
		service_enter(row);
		execl("/proc/self/exe", "service", test, (char *)NULL);
		_exit(126);
	}
	EXPECT_EQ(waitpid(child, &status, 0), child);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		test_skip("no filters of system calls");
	EXPECT_EQ(status, 0);
}

static const struct monitor_thread {
	const char *name, *full_name;
} monitor_threads[] = {
	{ "watch", "climport-watch" },
	{ "stale", "climport-stale" },
	{ "guard", "climport-guard" },
};

static void start_watch(void *p)
{
	monitor_fixture_watch(p, SIZE);
}

static const struct thread_creator *start_creator;
static const struct monitor_thread *start_thread;

static void started_by_creator(void)
{
	thread_fixture_check(start_creator, start_watch, monitor_fixture_map(SIZE),
			     start_thread->full_name);
}

TEST_EACH_PAIR(start_free, struct thread_creator, thread_creators, struct monitor_thread,
	       monitor_threads,
	       "The threads of the monitor have the processors and the nice value of the process "
	       "and an ordinary policy, whatever the thread of the first watch has.")
{
	start_creator = row;
	start_thread = column;
	start_in_child(started_by_creator);
}

TEST_EACH(
	start_confined, struct thread_creator, thread_creators,
	"In a program that was started with a scheduling of its own, the reader of events has the "
	"same.")
{
	monitor_fixture_needed();
	if (!thread_fixture_is_started("start_confined", row->name, row->become))
		return;
	start_watch(monitor_fixture_map(SIZE));
	thread_fixture_expect_free("climport-watch");
}

/* Bytes of the address space. */
static size_t start_space(void)
{
	FILE *file = fopen("/proc/self/statm", "re");
	size_t pages = 0;

	EXPECT(file && fscanf(file, "%zu", &pages) == 1);
	fclose(file);
	return pages * PAGE;
}

static void begun_in_little_space(void)
{
	struct rlimit limit = { 0, RLIM_INFINITY };
	struct watch watch;
	char *p;

	alarm(PATIENCE_S);
	p = monitor_fixture_map(SIZE);
	monitor_is_available();
	limit.rlim_cur = start_space() + ((size_t)1 << 20);
	EXPECT(!setrlimit(RLIMIT_AS, &limit));
	EXPECT_EQ(monitor_watch((uintptr_t)p, SIZE, &watch), 0);
	watch_put(&watch);
}

TEST(small, "The threads of the monitor take less than a MiB of the address space.")
{
	if (strcmp(SANITIZER, ""))
		test_skip("a sanitizer has much data of each thread");
	start_in_child(begun_in_little_space);
}

static void without_space(void)
{
	struct rlimit limit = { start_space(), RLIM_INFINITY };
	int threads = process_count_threads();
	struct watch watch;
	char *p;

	alarm(PATIENCE_S);
	p = monitor_fixture_map(SIZE);
	EXPECT(!setrlimit(RLIMIT_AS, &limit));
	EXPECT(monitor_watch((uintptr_t)p, SIZE, &watch));
	limit.rlim_cur = RLIM_INFINITY;
	EXPECT(!setrlimit(RLIMIT_AS, &limit));
	EXPECT_EQ(process_count_threads(), threads);
	watch = monitor_fixture_watch(p, SIZE);
	watch_put(&watch);
}

TEST(shortage, "A lack of address space is an error of the call, and the next call tries again.")
{
	if (strcmp(SANITIZER, ""))
		test_skip("a sanitizer needs address space");
	start_in_child(without_space);
}
